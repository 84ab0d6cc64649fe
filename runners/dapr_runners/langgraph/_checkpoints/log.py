"""A list in the state store: appended to by many writers, never growing one document.

The head of a log is a document replaced under its ETag. When its entries have grown to a page, they
move to a page document of their own, which is never changed and whose random name only the head
knows: a writer that lost the race for the head has changed nothing that can be seen.

A head is emptied, never deleted: on Redis a write with the ETag of a deleted key succeeds, and
versions start from one again, so a writer that slept through a deletion would undo it.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dapr_runners.langgraph._checkpoints.flow import Flow, get_many, read, write_if_unchanged
from dapr_runners.langgraph._checkpoints.frame import pack, packed_size, unpack_fields
from dapr_runners.langgraph._checkpoints.keys import page_key
from dapr_runners.state import CorruptRecordError, StoredValue

PAGE_BYTES = 8192
"""How large the entries of a head may grow before they move to a page."""

Entry: TypeAlias = list[Any]
"""What a log lists; its first item, a string, is its name."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest part of a log, and where the rest is."""

    listed: bool = False
    """Whether the log or list above, which this one is to be found by, has it."""
    sweeps: int = 0
    """How often entries were removed."""
    floor: str = ""
    """The greatest name in ``pages``."""
    pages: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    trash_pages: tuple[str, ...] = ()
    """Pages that hold removed entries, whose documents may still exist."""
    trash: tuple[Entry, ...] = ()
    """Removed entries, whose documents may still exist."""

    @property
    def latest(self) -> str:
        """The greatest name in the log, or an empty string."""
        return max([self.floor, *(entry[0] for entry in self.entries)])


@dataclass(frozen=True, slots=True)
class Page:
    """A full page: its entries, and the greatest name in the pages before it."""

    floor: str
    entries: list[Entry]


EMPTY = Head()


def new_head() -> Head:
    """The head of a log to be made. It counts its sweeps from a random number, so that nobody takes
    it for a log of the same key which he knew and which is gone."""
    return Head(sweeps=secrets.randbits(32))


def decode_head(key: str, found: StoredValue | None) -> Head:
    """The head ``found`` under ``key``: an empty one if there is none."""
    return decode_head_document(key, found.value) if found else EMPTY


def decode_head_document(key: str, document: bytes) -> Head:
    """The head in ``document``."""
    fields = unpack_fields(
        key, document, "the head of a list", bool, int, str, list, list, list, list
    )
    pages, entries, trash_pages, trash = map(tuple, fields[3:])
    listed, sweeps, floor = fields[:3]
    return Head(listed, sweeps, floor, pages, entries, trash_pages, trash)


def decode_page(key: str, document: bytes) -> Page:
    """The page in ``document``."""
    return Page(*unpack_fields(key, document, "a page of a list", str, list))


def extend(key: str, head: Head, added: Iterable[Entry]) -> tuple[Head, dict[str, bytes]]:
    """``head`` with ``added`` entries, and the page documents to write before it."""
    *full, rest = _split([*head.entries, *added])
    documents: dict[str, bytes] = {}
    floor, pages = head.floor, head.pages
    for entries in full:
        page = secrets.token_hex(6)
        documents[page_key(key, page)] = pack([floor, entries])
        pages = (*pages, page)
        floor = max([floor, *(entry[0] for entry in entries)])
    return replace(head, floor=floor, pages=pages, entries=tuple(rest)), documents


def _split(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """``entries`` in parts: full pages, and a last one that is not full and may be empty."""
    if packed_size(entries) < PAGE_BYTES:
        yield list(entries)
        return
    part: list[Entry] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += packed_size(entry)
        if size >= PAGE_BYTES:
            yield part
            part, size = [], 0
    yield part


def write_head(key: str, head: Head, found: StoredValue | None) -> Flow[bool]:
    """Write ``head`` in the place of what was ``found``. False if somebody else was faster."""
    document = pack(
        [
            head.listed,
            head.sweeps,
            head.floor,
            list(head.pages),
            list(head.entries),
            list(head.trash_pages),
            list(head.trash),
        ]
    )
    return write_if_unchanged(key, document, found)


def read_pages(key: str, pages: Sequence[str]) -> Flow[list[Page] | None]:
    """``pages`` of the log ``key``, or None if not all of them exist."""
    keys = [page_key(key, page) for page in pages]
    found = yield from get_many(keys)
    if len(found) < len(keys):
        return None
    return [decode_page(page, found[page]) for page in keys]


def read_entries(key: str, head: Head) -> Flow[list[Entry] | None]:
    """All entries, oldest first, or None if ``head`` is out of date. Of two entries with a name
    the later one counts."""
    pages = yield from read_pages(key, head.pages)
    if pages is None:
        return None
    return [*(entry for page in pages for entry in page.entries), *head.entries]


def read_log(key: str) -> Flow[tuple[StoredValue | None, Head, list[Entry]]]:
    """What is stored as the head of the log ``key``, decoded, and all entries of the log.

    Raises:
        CorruptRecordError: a page is missing that the head names.
    """
    head = None
    while True:
        found = yield from read(key)
        last, head = head, decode_head(key, found)
        entries = yield from read_entries(key, head)
        if entries is not None:
            return found, head, entries
        if last is not None and last.pages == head.pages:
            raise missing_page(key)


def removed_since(key: str, head: Head) -> Flow[bool]:
    """Whether entries were removed from the log ``key`` since ``head`` was read."""
    now = decode_head(key, (yield from read(key)))
    return now.sweeps != head.sweeps


def missing_page(key: str) -> CorruptRecordError:
    """The error for a page that the head of ``key`` names and nobody has."""
    return CorruptRecordError(key=key, reason="a page it names is missing")
