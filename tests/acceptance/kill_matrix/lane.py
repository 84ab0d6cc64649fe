"""A sidecar and a chain of workers on it, killed at one point after the other."""

from pathlib import Path
from typing import Any

from harness.deadline import until
from harness.effects import Effects, EffectsService
from harness.processes import WorkerDiedError, WorkerProcess
from points import Point, check_effects

from dapr_runners.engine._keys import run_id
from engines import Engine

_OVER = ("COMPLETED", "FAILED", "TERMINATED")


class Lane:
    """Runs of one mode, one after the other, each killed once. A worker that survives, or that
    took over, goes on with the next run."""

    def __init__(self, mode: str, directory: Path, service: EffectsService, engine: Engine) -> None:
        self.mode = mode
        self._directory = directory
        self._service = service
        self._count = 0
        self._case = self._next_case()
        self._sidecar = engine.sidecar(directory / "sidecar").start()
        self._worker = self._new_worker()
        self._base = self._undisturbed()

    def close(self) -> None:
        """End its processes."""
        self._worker.kill()
        self._sidecar.stop()

    def kill_at(self, point: Point) -> None:
        """A run that is killed at ``point``, and everything that must hold of it."""
        effects = self._begin()
        effects.arm(point.name, "die" if point.target == "worker" else "hold")
        victim = self._worker.pid if point.target == "worker" else None
        results = [self._call(turn, point, effects) for turn in (1, 2)]
        check_effects(effects.events(), victim, point.name)
        assert results == self._base[0], f"{results} is not {self._base[0]}"
        history = self._worker.ask("history", self._case)
        assert history == self._base[1], f"{history} is not {self._base[1]}"

    def log_text(self) -> str:
        """What the workers wrote of late."""
        return self._worker.log_text()

    def points_of_base(self) -> list[str]:
        """The points that the undisturbed run passed."""
        return self._base[2]

    def _undisturbed(self) -> tuple[list[Any], list[Any], list[str]]:
        effects = self._service.case(self._case)
        results = [self._worker.ask("call", self._case, turn) for turn in (1, 2)]
        check_effects(effects.events(), None, None)
        return results, self._worker.ask("history", self._case), effects.points()

    def _begin(self) -> Effects:
        self._case = self._next_case()
        self._worker.ask("begin", self._case)
        return self._service.case(self._case)

    def _call(self, turn: int, point: Point, effects: Effects) -> Any:
        self._worker.send("call", self._case, turn)
        if point.turn != turn:
            return self._worker.reply()
        effects.wait(point.name)
        if point.target == "worker":
            return self._replace_worker(turn)
        self._sidecar.kill()
        effects.release(point.name)
        self._sidecar.start()
        return self._worker.reply()

    def _replace_worker(self, turn: int) -> Any:
        """The result of the turn, although the worker died."""
        died, self._worker = self._worker, self._new_worker()
        died.wait_dead()
        # By itself: nobody has called again.
        run = run_id("matrix", self._case, turn)
        until(lambda: self._worker.ask("status", run) in _OVER)
        try:
            return died.reply()  # it may have had the result before it died
        except WorkerDiedError:
            if self._worker.ask("has_result", self._case):
                return self._base[0][turn - 1]  # it died with it, before it could tell
            return self._worker.ask("call", self._case, turn)
        finally:
            died.kill()

    def _next_case(self) -> str:
        self._count += 1
        return f"{self._directory.name}-{self._count}"

    def _new_worker(self) -> WorkerProcess:
        settings = {
            "address": self._sidecar.address,
            "mode": self.mode,
            "effects": self._service.path,
            "case": self._case,
            "saver": str(self._directory / "checkpoints.db"),
        }
        log = self._directory / "worker.log"
        return WorkerProcess("matrix_program:Program", settings, log).ready()
