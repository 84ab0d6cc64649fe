"""Files that what a case does leaves behind, in whichever process it does it."""

import fcntl
import json
from pathlib import Path
from typing import Any


class Log:
    """What happened in one run of a case: a file a kind, a JSON line an entry."""

    def __init__(self, folder: Path, label: str) -> None:
        self.folder, self.label = folder, label

    def add(self, kind: str, entry: dict[str, Any]) -> int:
        """Add an entry; returns how many there are now."""
        with self.file(kind).open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = len(file.readlines()) + 1
            file.write(json.dumps(entry, default=str, sort_keys=True) + "\n")
        return number

    def read(self, kind: str) -> list[dict[str, Any]]:
        """All entries of a kind, in order."""
        file = self.file(kind)
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines()]

    def file(self, kind: str) -> Path:
        """Where entries of a kind are; a path for whatever else the case keeps."""
        return self.folder / f"{self.label}.{kind}"
