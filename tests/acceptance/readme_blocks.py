"""The fenced blocks of a Markdown file, each with the comment right before it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (not run|output of): (.+) -->\n\Z")


@dataclass(frozen=True)
class Block:
    """One block; ``remark`` is what its comment begins with, ``subject`` the rest of it."""

    language: str
    text: str
    page: str
    line: int
    remark: str
    subject: str

    def __str__(self) -> str:
        return f"{self.page}-{self.line}"


def blocks_of(path: Path) -> Iterator[Block]:
    """The blocks of ``path`` in order."""
    text = path.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        comment = _COMMENT.search(before)
        remark, subject = comment.groups() if comment else ("", "")
        yield Block(fence[1], fence[2], path.stem, before.count("\n") + 1, remark, subject)
