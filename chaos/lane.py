"""A lane of the matrix: trials one after the other, on a sidecar of its own."""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.cells import Cell
from chaos.processes import live
from chaos.trial import Trial
from dapr_runners.sidecar import EmbeddedSidecar

_MAX_STARTS = 3
"""How often a program is started again, after it was killed, while it ends by failing."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial. ``charges`` is what the payment service counted; ``failures`` are of
    lives that ended otherwise than by our kill, before the last one."""

    charges: int
    ending: str
    detail: str = ""
    failures: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    def is_as_expected(self, cell: Cell) -> bool:
        """Whether it is what was promised, or published."""
        expected = cell.expected
        return self.charges == expected.charges and self.ending == expected.ending


class Lane:
    """Runs trials; a block ends its sidecar."""

    def __init__(self, payments: str) -> None:
        self._payments = payments
        self._sidecar: EmbeddedSidecar | None = None
        self._stack = ExitStack()

    def try_once(self, cell: Cell, number: int) -> Outcome:
        """One trial of ``cell``: a life that is killed, and as many as it takes after it."""
        began = time.monotonic()
        trial = Trial(
            run=f"{cell.setup.name}-{cell.key}-{cell.kill}-{number}",
            directory=Path(tempfile.mkdtemp(dir=self._directory)),
            payments=self._payments,
            key=cell.key,
            kill=cell.kill,
            sidecar=self._address() if cell.setup.is_ours else None,
            effect=cell.setup.effect or "",
        )
        # Where reconcile has to know, the service does not.
        trial.account.configure(dedupe=cell.setup.effect != "reconciled")
        failures: list[str] = []
        life = live(cell.setup.module, trial)
        if life.how == "failed":
            failures.append(life.detail)
        elif life.how != "killed":
            charges = len(trial.account.charges())
            return Outcome(charges, f"{life.how}, not killed", life.detail)
        for _ in range(_MAX_STARTS):
            life = live(cell.setup.module, replace(trial, kill=None))
            if life.how != "failed":
                break
            failures.append(life.detail)
        return Outcome(
            charges=len(trial.account.charges()),
            ending=life.how,
            detail=life.detail,
            failures=failures,
            seconds=round(time.monotonic() - began, 2),
        )

    def _address(self) -> str:
        if self._sidecar is None:
            sidecar = EmbeddedSidecar(self._directory / "sidecar.db")
            self._sidecar = self._stack.enter_context(sidecar)
        return self._sidecar.address

    def __enter__(self) -> Self:
        directory = tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True)
        self._directory = Path(self._stack.enter_context(directory))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
