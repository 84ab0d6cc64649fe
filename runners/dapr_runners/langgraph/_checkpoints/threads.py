"""The list of all threads: a tree whose branches are chosen by a hash of the thread's id.

A branch is one document of names; when it has too many, it becomes a fork and its names move to
sixteen branches. So no document grows without bound, and writers of new threads rarely meet. The
branches of a fork have a random name which only the fork knows, so that two writers that fork at
the same time cannot touch each other's.

Each name has a random mark, changed whenever the name is added again. Who removes a name says with
which mark, so that a thread that came back meanwhile stays.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.flow import (
    Flow,
    attempts,
    delete_many,
    get_many,
    put_many,
    read,
    write_if_unchanged,
)
from dapr_runners.langgraph._checkpoints.frame import pack, unpack_fields
from dapr_runners.langgraph._checkpoints.keys import Keys
from dapr_runners.state import CorruptRecordError, StoredValue

BRANCH_NAMES = 200
"""Names a branch may have."""
_DIGITS = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class _Branch:
    """A document of the tree: the marks of names, or the name of the branches it forked into."""

    key: str
    depth: int
    found: StoredValue | None
    marks: dict[str, str]


def add_thread(context: Context, thread: str) -> Flow[None]:
    """List ``thread``, with a new mark."""
    return _in_turn(context, thread, _change(context.keys, thread, secrets.token_hex(6), None))


def remove_thread(context: Context, thread: str, mark: str) -> Flow[None]:
    """No longer list ``thread`` if it still has ``mark``."""
    return _in_turn(context, thread, _change(context.keys, thread, None, mark))


def _in_turn(context: Context, thread: str, change: Flow[None]) -> Flow[None]:
    return context.gates.guard(context.keys.threads(_path(thread)[0]), change)


def thread_mark(keys: Keys, thread: str) -> Flow[str | None]:
    """The mark of ``thread``, or None if it is not listed."""
    branch = yield from _find(keys, thread)
    return branch.marks.get(thread)


def all_threads(keys: Keys) -> Flow[list[str]]:
    """All listed threads."""
    threads: list[str] = []
    branches = [keys.threads(digit) for digit in _DIGITS]
    while branches:
        documents = yield from get_many(branches)
        branches.clear()
        for key, document in documents.items():
            fork, marks = _decode(key, document)
            threads += marks
            if fork:
                branches += [keys.threads(f"{fork}/{digit}") for digit in _DIGITS]
    return threads


def _change(keys: Keys, thread: str, mark: str | None, only: str | None) -> Flow[None]:
    for pause in attempts(keys.threads("")):
        branch = yield from _find(keys, thread)
        marks = dict(branch.marks)
        if mark:
            marks[thread] = mark
        elif marks.pop(thread, None) != only:
            return
        fork, documents = "", {}
        if len(marks) > BRANCH_NAMES:
            fork, documents = _split(keys, branch.depth, marks)
            marks = {}
        yield from put_many(documents)
        if (yield from write_if_unchanged(branch.key, pack([fork, marks]), branch.found)):
            return
        yield from delete_many(list(documents))
        yield from pause


def _split(keys: Keys, depth: int, marks: dict[str, str]) -> tuple[str, dict[str, bytes]]:
    fork = secrets.token_hex(6)
    parts: dict[str, dict[str, str]] = {digit: {} for digit in _DIGITS}
    for thread, mark in marks.items():
        parts[_path(thread)[depth + 1]][thread] = mark
    return fork, {
        keys.threads(f"{fork}/{digit}"): pack(["", part]) for digit, part in parts.items()
    }


def _find(keys: Keys, thread: str) -> Flow[_Branch]:
    """The branch that has ``thread``, if it is listed."""
    path = _path(thread)
    key = keys.threads(path[0])
    for depth in range(len(path) - 1):
        found = yield from read(key)
        fork, marks = _decode(key, found.value) if found else ("", {})
        if not fork:
            return _Branch(key, depth, found, marks)
        key = keys.threads(f"{fork}/{path[depth + 1]}")
    raise CorruptRecordError(key=key, reason="the list of threads has too many branches")


def _path(thread: str) -> Sequence[str]:
    return hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()


def _decode(key: str, document: bytes) -> tuple[str, dict[str, str]]:
    fork, marks = unpack_fields(key, document, "a list of threads", str, dict)
    return fork, marks
