"""Whether a process is alone in working on a runner's runs.

Alone, it need not look whether a step of a plan that it has just made was done by another. So every
process says that it begins to work, before it gets any, under one key of the runner. From then on
that key says that there are several, for good: those that have gone are not waited for, and may
have left steps that are recorded.

Who reads the key trusts it for ``_VALID`` seconds. A process that has just come therefore lets the
others find out before it records a step that one of them has planned.
"""

import json
import logging
import secrets
import time
from typing import Any

from dapr_runners.engine._attempts import is_dead, process_identity
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import company_key
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import UNREADABLE, StateStore

logger = logging.getLogger("dapr_runners")

_VALID = 0.5
_RENEWED = 0.4
"""Seconds after which one thread reads the key again, while the others still trust it."""
_NEW = 1.0
"""Seconds for which a process counts as new."""


class Company:
    """The processes that work on runs of ``runner``, seen by one of them."""

    def __init__(self, runner: str) -> None:
        self._key = company_key(runner)
        self._me = [process_identity(), secrets.token_hex(4)]
        self._joined: float | None = None
        self._read_at: float | None = None
        self._renewing = False
        self._shared = True

    def join(self, store: StateStore) -> None:
        """Say that this process begins to work. To be called before it gets any."""
        try:
            self._change(store, joins=True)
        except UNREADABLE:
            raise
        except DaprRunnersError as error:
            # It then looks for every record, and records nothing soon.
            logger.warning("saying that this process works for %s: %s", self._key, error)
        else:
            self._joined = time.monotonic()

    def leave(self, store: StateStore) -> None:
        """Say that it has ended its work."""
        if self._joined is None:
            return
        self._joined, self._shared = None, True
        try:
            self._change(store, joins=False)
        except DaprRunnersError as error:
            # Whoever comes next takes it for one more, if it cannot see that it is gone.
            logger.info("saying that this process has ended its work: %s", error)

    @property
    def pause(self) -> float:
        """Seconds for which others may not know yet that this process works."""
        if self._joined is None:
            return _NEW  # they will not be told
        return max(self._joined + _NEW - time.monotonic(), 0.0)

    async def is_alone(self, io: IO) -> bool:
        """Whether no other process works, or has recorded anything without waiting."""
        if self._joined is None or self._shared:
            return False
        now = time.monotonic()
        age = _VALID if self._read_at is None else now - self._read_at
        if age >= _VALID or (age > _RENEWED and not self._renewing):
            self._renewing = True
            try:
                data = await io.get(self._key)
            finally:
                self._renewing = False
            self._shared = data is None or bool(json.loads(data)["shared"])
            self._read_at = now  # when it was asked
        return not self._shared

    def _change(self, store: StateStore, *, joins: bool) -> None:
        while True:
            now = time.monotonic()
            found = store.read(self._key)
            value: dict[str, Any] = {} if found is None else json.loads(found.value)
            others = [each for each in value.get("workers", []) if each != self._me]
            shared: bool = value.get("shared", False)
            if joins:
                others = [each for each in others if not is_dead(each[0])]
                shared = shared or bool(others)
                others.append(self._me)
            data = json.dumps({"workers": others, "shared": shared}).encode()
            if found is None:
                written = store.create(self._key, data)
            else:
                written = store.replace(self._key, data, found.etag)
            if written:
                self._shared, self._read_at = shared, now
                return
