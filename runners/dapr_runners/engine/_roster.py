"""The processes that work for an app, and which runners each of them has.

Workers of one app id get each other's work. A process that does not know a runner fails that
runner's runs, so all processes have to have the same ones: each says every ``_PAUSE`` seconds,
under one key of the app, that it works and on what. Who reads it sees whether they differ.
"""

import json
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, repeat
from time import time  # the real one, also where a test of the user's replaces time.time
from typing import Any

from dapr_runners.engine._attempts import is_dead, process_identity
from dapr_runners.engine._keys import roster_key
from dapr_runners.engine._rounds import Rounds
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import StateStore

logger = logging.getLogger("dapr_runners")

_PAUSE = 20.0
GONE_AFTER = 65.0
"""Seconds after which a process that has not said again that it works counts as gone."""
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Member:
    """A process that works: ``process`` is its host, process id and when it began, ``runners`` are
    the names it has, ``seen`` is when it last said so, in seconds since the epoch by its clock."""

    process: str
    nonce: str
    runners: tuple[str, ...]
    seen: float

    @property
    def shown(self) -> str:
        """The process, for people."""
        host, pid, _ = self.process.split(" ")
        return f"process {pid} on {host}"


def roster(store: StateStore) -> list[Member]:
    """Who works now for the app of the sidecar that ``store`` is behind."""
    return [each for each in _parsed(store.get(roster_key())) if not _is_gone(each)]


class Roster:
    """The entry of this process. ``runners`` says which it has."""

    def __init__(self, store: StateStore, runners: Callable[[], Sequence[str]]) -> None:
        self._store = store
        self._runners = runners
        self._me = Member(process_identity(), secrets.token_hex(4), (), 0.0)
        self._warned: set[tuple[str, ...]] = set()
        self._rounds = Rounds(
            "dapr-runners-roster", self._say_again, lambda: chain([0.0], repeat(_PAUSE))
        )

    def join(self) -> None:
        """Say that this process works, now and every so often, from a thread of its own."""
        self._rounds.begin()

    def leave(self) -> None:
        """Say that it does not any more."""
        self._rounds.end()
        self._say(works=False)

    def _say_again(self, over: threading.Event) -> bool:
        self._say(works=True, over=over)
        return True

    def _say(self, *, works: bool, over: threading.Event | None = None) -> None:
        try:
            others = self._write(works, over)
        except DaprRunnersError as error:
            # It is said again soon, and no run depends on it.
            logger.debug("saying who works: %s", error)
            return
        for other in others if works else ():
            if set(other.runners) != set(self._runners()) and other.runners not in self._warned:
                self._warned.add(other.runners)
                logger.warning(
                    "%s works for the same app id with other runners (%s; here: %s). Each gets work"
                    " of the other's, and what it does not know fails. Give the programs app ids of"
                    " their own, or the same runners.",
                    other.shown,
                    ", ".join(other.runners),
                    ", ".join(sorted(self._runners())),
                )

    def _write(self, works: bool, over: threading.Event | None) -> list[Member]:
        """Write the entry, or take it off; returns the others'. Nothing is written once ``over`` is
        set: a slow store may have held this up until the entry was taken off."""
        for _ in range(_TRIES):
            found = self._store.read(roster_key())
            if over is not None and over.is_set():
                break
            others = [
                each
                for each in _parsed(found.value if found else None)
                if each.nonce != self._me.nonce and not _is_gone(each)
            ]
            mine = replace(self._me, runners=tuple(sorted(self._runners())), seen=time())
            data = json.dumps([asdict(each) for each in [*others, *([mine] if works else [])]])
            if found is None:
                written = self._store.create(roster_key(), data.encode())
            else:
                written = self._store.replace(roster_key(), data.encode(), found.etag)
            if written:
                return others
        return []


def _parsed(data: bytes | None) -> list[Member]:
    entries: list[Any] = [] if data is None else json.loads(data)
    return [
        Member(each["process"], each["nonce"], tuple(each["runners"]), each["seen"])
        for each in entries
    ]


def _is_gone(member: Member) -> bool:
    return member.seen < time() - GONE_AFTER or is_dead(member.process)
