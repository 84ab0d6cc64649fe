"""Names of things in the state store, and run ids."""

import hashlib
import re
import secrets

CANCELLED = b"cancelled"
BROKEN = "broken"
"""Record key of the end of a run that could not go on, whatever step it was at."""
_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 64
_RUN_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}")
_NAME, _NAME_MARKED = 32, 14
"""Characters of a runner's name in the id of a run, and in one with a tenant's mark."""


def safe_name(name: str) -> str:
    """``name`` with only letters, digits, ``-`` and ``_``, which every Dapr API takes."""
    return _SAFE.sub("-", name).strip("-") or "run"


def digest(*parts: str) -> str:
    """Sixteen hex digits that tell ``parts`` from others."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


def run_id(runner: str, thread: str, turn: int, mark: str = "") -> str:
    """The id of the ``turn``-th run (from 1) of ``thread``: at most 64 characters, for daprd.
    ``mark`` is the tenant's."""
    return f"{_stem(runner, mark)}-{digest(runner, thread)}-{turn}"


def own_run_id(runner: str, mark: str = "") -> str:
    """An id for a run without a thread, which no other run has."""
    return f"{_stem(runner, mark)}-{secrets.token_hex(8)}"


def _stem(runner: str, mark: str) -> str:
    return f"{mark}{safe_name(runner)[: _NAME_MARKED if mark else _NAME]}"


def longest_run_id(mark: str = "") -> int:
    """How many characters a caller's name of a run may have. ``mark`` is the tenant's."""
    return _LONGEST - len(mark)


def is_text(text: str) -> bool:
    """Whether ``text`` is valid Unicode: a lone surrogate can be in no key and no message."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_run_id(text: str) -> bool:
    """Whether every Dapr API takes ``text`` as the id of a workflow."""
    return _RUN_ID.fullmatch(text) is not None


def thread_key(runner: str, thread: str, mark: str = "") -> str:
    """State key of the pointer to a thread's newest turn. ``mark`` is the tenant's."""
    return f"dr/thread/{mark}{safe_name(runner)[:_NAME]}-{digest(runner, thread)}"


def company_key(runner: str) -> str:
    """State key of who works on runs of ``runner``."""
    return f"dr/workers/{safe_name(runner)[:32]}-{digest(runner)}"


def roster_key() -> str:
    """State key of the processes that work for an app, and of their runners."""
    return "dr/processes"


def untold_key(runner: str) -> str:
    """State key of the answers that runs of ``runner`` may not have been told of."""
    return f"dr/untold/{safe_name(runner)[:32]}-{digest(runner)}"


def unscheduled_key() -> str:
    """State key of the names of runners that have had runs that no worker was there to schedule."""
    return "dr/unscheduled"


def dead_letters_key() -> str:
    """State key of the list of what waits for somebody's decision."""
    return "dr/dead-letters"


def record_key(run: str, key: str) -> str:
    """State key of a record of ``run``."""
    return f"dr/run/{run}/{key}"


def spec_key(run: str) -> str:
    """State key of what ``run`` was started with."""
    return f"dr/run/{run}/spec"


def decisions_key(run: str) -> str:
    """State key of what people have decided on the dead letters of ``run``."""
    return f"dr/run/{run}/decisions"


def end_key(run: str) -> str:
    """State key that says how ``run`` ended, first writer wins: the record key of its end, or
    :data:`CANCELLED`."""
    return f"dr/run/{run}/end"


def attempts_key(run: str, key: str) -> str:
    """State key of the attempts begun on the step that is to write the record ``key``."""
    return f"dr/run/{run}/attempts/{key}"


def sent_key(run: str, key: str) -> str:
    """State key that says how many messages of the record ``key`` are sent."""
    return f"dr/run/{run}/sent/{key}"


def resolved_key(run: str, step: str) -> str:
    """State key of what somebody has said that a step gives, which had failed."""
    return f"dr/run/{run}/resolved/{step}"


def artifact_prefix(run: str) -> str:
    """State key prefix of the artifacts of ``run``."""
    return f"dr/run/{run}"
