"""Walking a checkpoint index from the newest checkpoint back, reading no more pages than needed."""

from collections.abc import Iterable, Sequence

from dapr_runners.langgraph._checkpoints.flow import Flow, read
from dapr_runners.langgraph._checkpoints.log import (
    Entry,
    Head,
    decode_head,
    missing_page,
    read_pages,
)


class Cursor:
    """A place in the index ``key``, at first before its newest entry, or before the newest one
    with an id less than ``before``."""

    def __init__(self, key: str, head: Head, before: str | None = None) -> None:
        self._key = key
        self._bound = before
        self._batch = 1
        self._start(head)

    def _start(self, head: Head) -> None:
        self._pages: Sequence[str] = head.pages
        self._floor = head.floor
        self._ready: list[Entry] = []
        self._add(head.entries)

    def _add(self, older: Iterable[Entry]) -> None:
        """Have entries ready that are older than all others: where names meet, those count."""
        entries = {entry[0]: entry for entry in older} | {entry[0]: entry for entry in self._ready}
        bound = self._bound
        self._ready = sorted(
            (entry for name, entry in entries.items() if bound is None or name < bound),
            key=lambda entry: entry[0],
        )

    def next(self) -> Flow[Entry | None]:
        """The entry with the next smaller id, or None after the last one."""
        while True:
            # Ids are in order but for a few put late: an older page may have greater ones.
            if self._ready and (not self._pages or self._ready[-1][0] > self._floor):
                entry = self._ready.pop()
                self._bound = entry[0]
                return entry
            if not self._pages:
                return None
            yield from self._read_older()

    def _read_older(self) -> Flow[None]:
        wanted = self._pages[-self._batch :]
        pages = yield from read_pages(self._key, wanted)
        if pages is None:
            # A removal has replaced the pages: go on with the new ones.
            head = decode_head(self._key, (yield from read(self._key)))
            if set(wanted) <= set(head.pages):
                raise missing_page(self._key)
            self._start(head)
            return
        self._pages = self._pages[: -self._batch]
        self._batch *= 2
        self._floor = pages[0].floor
        self._add(entry for page in pages for entry in page.entries)
