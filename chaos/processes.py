"""Lives of a program: processes that are forked from a server which has imported everything."""

import importlib
import json
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import forkserver

from chaos.trial import Trial

_LIFE_SECONDS = 60.0
_DETAIL_KEPT = 200

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONUNBUFFERED": "1",
}
"""Environment in which CrewAI neither calls home nor asks."""

_context = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Ending:
    """How a life of a program ended: it is ``done``, was ``killed``, stopped at an ``unknown``
    outcome, ``failed``, or ``hung`` and was killed for that."""

    how: str
    detail: str = ""


def start_server(modules: Sequence[str]) -> None:
    """Start the server, which imports ``modules``."""
    os.environ.update(QUIET)
    # The second is what takes longest of what CrewAI imports when a flow is made.
    _context.set_forkserver_preload([*modules, "lance_namespace"])
    # Python 3.11 hands it a search path that it does not use. And no trial uses what is warned of.
    changed = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "ignore:lancedb fork support:RuntimeWarning",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def live(setup: str, trial: Trial) -> Ending:
    """One life: ``chaos.setups.<setup>`` runs ``trial`` in a process of its own, to its end."""
    told = trial.directory / "ending.json"
    told.unlink(missing_ok=True)
    process = _context.Process(target=_serve, args=(setup, trial), daemon=True)
    process.start()
    process.join(_LIFE_SECONDS)
    is_hung = process.is_alive()
    process.kill()
    process.join()
    process.close()  # its exit code may have gone to another thread, which started a process
    if is_hung:
        return Ending("hung", f"no end in {_LIFE_SECONDS:.0f} s; see {_log(trial)}")
    if trial.kill is not None and trial.death.exists():
        return Ending("killed")
    if told.exists():
        return Ending(**json.loads(told.read_text()))
    return Ending("failed", f"ended without a word; see {_log(trial)}")


def _log(trial: Trial) -> str:
    return str(trial.directory / "log.txt")


def _serve(setup: str, trial: Trial) -> None:
    descriptor = os.open(_log(trial), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["CREWAI_STORAGE_DIR"] = str(trial.directory)
    try:
        importlib.import_module(f"chaos.setups.{setup}").run(trial)
        ending = Ending("done")
    except BaseException as error:  # a panic of native code is no Exception
        traceback.print_exc()
        how = "unknown" if type(error).__name__ == "EffectUnknownError" else "failed"
        text = " ".join(f"{type(error).__name__}: {error}".split())
        ending = Ending(how, text[:_DETAIL_KEPT])
    (trial.directory / "ending.json").write_text(json.dumps(ending.__dict__))
    sys.stdout.flush()
    # Threads that a framework leaves behind must not hold the process.
    os._exit(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
