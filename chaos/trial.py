"""One trial: a program that prepares, charges and finalizes, killed once at a chosen point."""

import os
import signal
import uuid
from dataclasses import dataclass
from pathlib import Path

from chaos.payments import Account

ORDER, CENTS = "order-1", 4900

KEYS = ("none", "inside", "saved")
"""The idempotency key of a charge: there is none; one that is made inside the step that charges,
anew each time it runs; one that is derived from the run and the step, and saved before."""

KILLS = ("before", "after", "recorded")
"""Killed before the charge; after it and before the step that charged is recorded; after that."""


@dataclass(frozen=True)
class Trial:
    """What a program of ``chaos.setups`` is told. It is started again, with the same trial but for
    ``kill``, when it was killed."""

    run: str
    """What the program keys its run by, and the name of its account."""
    directory: Path
    """Where it may keep files."""
    payments: str
    """``host:port`` of the payment service."""
    key: str
    """One of :data:`KEYS`."""
    kill: str | None
    """One of :data:`KILLS`: this process dies there. None: it does not die."""
    sidecar: str | None = None
    """``host:port`` of the sidecar, for durable runs."""
    effect: str = "undeclared"
    """How a durable run charges: ``undeclared``, or as an effect that is ``declared``, or that is
    ``reconciled`` as well."""

    @property
    def account(self) -> Account:
        """The trial's own."""
        return Account(self.payments, self.run)

    @property
    def death(self) -> Path:
        """A file that is there once a life was killed."""
        return self.directory / "killed"

    def reach(self, point: str) -> None:
        """Die here, if this is where this process is to die."""
        if point == self.kill:
            self.death.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def saved_key(self) -> str | None:
        """The key that the first step saves: None, unless the trial is about such keys."""
        return f"{self.run}/charge" if self.key == "saved" else None

    def charge(self, saved: str | None) -> str:
        """What the step that charges does: the id of the charge. ``saved`` is its key, if it was
        saved before."""
        key = uuid.uuid4().hex if self.key == "inside" else saved
        self.reach("before")
        made = self.account.charge(ORDER, CENTS, key)
        self.reach("after")
        return made.id
