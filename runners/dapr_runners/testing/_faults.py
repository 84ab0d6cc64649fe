"""Faults other than a kill of the program, each while a step is held at a point."""

import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dapr_runners.testing._lives import Case, Life, Running

if TYPE_CHECKING:
    from dapr_runners.testing._proxy import Disturbance, StateProxy

_AWAY_SECONDS = 2.0
"""How long the sidecar or its store is away, or disturbed."""

Fault = Callable[[Case, "StateProxy", Running], list[Running]]
"""What is done while a step of the program that runs is held, which lets it go on. Gives the other
processes of the program that it has started."""


def disturbed(case: Case, name: str, at: tuple[str, str, int]) -> list[Life] | None:
    """Lives of the program, with the fault ``name`` at a point; None when it did not get there."""
    from dapr_runners.testing._proxy import StateProxy

    with StateProxy(case.sidecar.address) as proxy:
        if name != "worker-frozen":  # it is the sidecar that has to find out
            case.grpc_port = proxy.port
        first = case.start(at, "hold")
        was_reached = case.wait_until_told(first, "held")
        others = FAULTS[name](case, proxy, first) if was_reached else []
        lives = [running.end() for running in (first, *others)]
        was_felt = proxy.disturbed > 0 or name not in _OF_STORE
    return lives if was_reached and was_felt else None


def _sidecar_killed(case: Case, proxy: "StateProxy", first: Running) -> list[Running]:
    case.sidecar.kill()
    case.release()
    time.sleep(_AWAY_SECONDS)
    case.sidecar.start()
    return []


def _disturbing(how: "Disturbance") -> Fault:
    def fault(case: Case, proxy: "StateProxy", first: Running) -> list[Running]:
        proxy.disturb(how)
        case.release()
        time.sleep(_AWAY_SECONDS)
        proxy.disturb(None)
        return []

    return fault


def _clock_jumps(case: Case, proxy: "StateProxy", first: Running) -> list[Running]:
    case.release("jump")
    return []


def _second_worker(case: Case, proxy: "StateProxy", first: Running) -> list[Running]:
    second = case.start()
    case.wait_until_told(second, "follows", times=2)
    case.release()
    return [second]


def _worker_frozen(case: Case, proxy: "StateProxy", first: Running) -> list[Running]:
    first.signal(signal.SIGSTOP)
    second = case.start()
    second.wait()
    case.release()
    first.signal(signal.SIGCONT)
    return [second]


_OF_STORE = ("store-refuses", "store-slow", "response-lost")

FAULTS: dict[str, Fault] = {
    "sidecar-killed": _sidecar_killed,
    "store-refuses": _disturbing("refuse"),
    "store-slow": _disturbing("slow"),
    "response-lost": _disturbing("lose"),
    "clock-jumps": _clock_jumps,
    "second-worker": _second_worker,
    "worker-frozen": _worker_frozen,
}
"""By name: the sidecar is killed with SIGKILL, and back after two seconds; its store refuses every
call for two seconds, or answers each a second late, or carries it out and the answer is lost; the
program's clock jumps an hour ahead; the program is started once more beside it; or it is frozen
with SIGSTOP until another process has ended the run, and then wakes."""
