"""Worker processes, forked from a server that has imported everything: each costs little."""

import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_context = multiprocessing.get_context("forkserver")


class WorkerDiedError(Exception):
    """The worker was gone before it answered."""


def start_fork_server(modules: Sequence[str]) -> None:
    """Start the fork server with ``modules``, none of which may open a channel or start a
    thread."""
    _context.set_forkserver_preload(["__main__", *modules])
    # Python 3.11 hands it a search path that it does not use.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        forkserver.ensure_running()
        # The imports, which take long on a busy machine, are not for the first test to wait for.
        first = _context.Process(target=os.getpid)
        first.start()
        first.join()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class WorkerProcess:
    """A worker, made by ``program`` (``module:callable``) with ``settings``, that answers
    commands: methods of what the program returns."""

    def __init__(self, program: str, settings: dict[str, Any], log: Path) -> None:
        self._connection, theirs = _context.Pipe()
        self.log = log
        self._process = _context.Process(
            target=serve, args=(theirs, program, settings, log), daemon=True
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def ready(self, seconds: float = 90) -> "WorkerProcess":
        """Returns once the program is up; raises what it raised."""
        self._reply(seconds)
        return self

    def send(self, command: str, *arguments: Any) -> None:
        """Begin a command; :meth:`reply` ends it."""
        with contextlib.suppress(BrokenPipeError):  # told by the reply
            self._connection.send((command, arguments))

    def reply(self, seconds: float = 60) -> Any:
        """What the command returned; raises what it raised, or :class:`WorkerDiedError`."""
        return self._reply(seconds)

    def ask(self, command: str, *arguments: Any, seconds: float = 60) -> Any:
        """A command, begun and ended."""
        self.send(command, *arguments)
        return self._reply(seconds)

    def kill(self) -> None:
        """SIGKILL, and wait for it."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def terminate(self) -> None:
        """SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.is_alive()

    def wait_dead(self, seconds: float = 60) -> None:
        """Until it is gone."""
        self._process.join(seconds)
        if self._process.is_alive():
            raise TimeoutError(f"the worker {self.pid} is still alive")

    def _reply(self, seconds: float) -> Any:
        try:
            if not self._connection.poll(seconds):
                raise TimeoutError(f"no answer in {seconds} s; its log:\n{self.log_text()}")
            is_ok, value = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise WorkerDiedError from error
        if not is_ok:
            raise value
        return value

    def log_text(self) -> str:
        """What it wrote to its standard output and error."""
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""


def serve(connection: Connection, program: str, settings: dict[str, Any], log: Path) -> None:
    """Be a worker: answer commands until the other end is gone."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, _, name = program.partition(":")
    try:
        target = getattr(importlib.import_module(module), name)(settings)
    except BaseException as error:
        connection.send((False, _portable(error)))
        return
    connection.send((True, None))
    while True:
        try:
            command, arguments = connection.recv()
        except EOFError:
            break
        try:
            answer: Any = (True, getattr(target, command)(*arguments))
        except BaseException as error:
            traceback.print_exc()
            answer = (False, _portable(error))
        connection.send(answer)
    sys.stdout.flush()
    # Threads of a frozen or endless step must not hold the process.
    os._exit(0)


def _portable(error: BaseException) -> BaseException:
    """``error``, or what says the same, without what cannot cross to another process."""
    try:
        _context_dumps(error)
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _context_dumps(value: Any) -> None:
    from multiprocessing.reduction import ForkingPickler

    copy = ForkingPickler.loads(bytes(ForkingPickler.dumps(value)))
    if str(copy) != str(value):
        raise ValueError("it changes on the way")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
