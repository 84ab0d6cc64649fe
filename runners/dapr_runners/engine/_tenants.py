"""Whose a run is: the id of a tenant's run begins with the tenant's mark, and so do all its keys.

A mark has a fixed length and an alphabet of its own, whatever the tenant's name is, so no name can
be made to look like another's mark. Without a tenant it is empty, and an id must not look marked.
"""

import base64
import hashlib
import re
import unicodedata

from dapr_runners.engine._keys import safe_name
from dapr_runners.engine.errors import InvalidRunnerNameError, InvalidTenantError

_LONGEST = 256
_MARKED = re.compile(r"t_[0-9a-v]{20}_", re.IGNORECASE)  # as some stores compare keys
_MARK_CHARACTERS = 20
"""A hundred bits: nobody finds a name that has the mark of another's."""


def tenant_mark(tenant: str | None) -> str:
    """What the ids of the runs of ``tenant`` begin with: 23 characters of ``[a-z0-9_]``, or none
    without a tenant. Raises :class:`InvalidTenantError`."""
    if tenant is None:
        return ""
    if (reason := _wrong_with(tenant)) is not None:
        raise InvalidTenantError(tenant=tenant, reason=reason)
    hashed = hashlib.blake2b(tenant.encode(), digest_size=16, person=b"dapr-runners/t").digest()
    return f"t_{base64.b32hexencode(hashed).decode().lower()[:_MARK_CHARACTERS]}_"


def mark_of(run: str) -> str:
    """The mark of the tenant that ``run`` is of; none if it is of no tenant."""
    found = _MARKED.match(run)
    return "" if found is None else found[0]


def within(mark: str, run: str) -> str | None:
    """The id of what ``run`` names for who has ``mark``: an id of theirs, or their own name for
    one. None if it is another's."""
    theirs = mark_of(run)
    if theirs:
        return run if theirs == mark else None
    return f"{mark}{run}"


def check_runner_name(name: str) -> None:
    """Raise :class:`InvalidRunnerNameError` if ``name`` could be taken for something else: it is
    followed by ``/`` in names of activities, and ids begin with it."""
    reason = _wrong_with(name)
    if reason is None and "/" in name:
        reason = "a '/' ends it in the names of its activities"
    if reason is None and mark_of(safe_name(name)):
        reason = "its runs would look like those of a tenant"
    if reason is not None:
        raise InvalidRunnerNameError(runner=name, reason=reason)


def _wrong_with(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > _LONGEST:
        return f"it has more than {_LONGEST} characters"
    for character in name:
        match unicodedata.category(character):
            case "Cs":
                return "it is no valid Unicode text"
            case "Cc":
                return "it has a control character"
            case _:
                pass
    return None
