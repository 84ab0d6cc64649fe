"""Which of the requests of a step a request is."""

import threading


class Requests:
    """Numbers the requests of one attempt. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: dict[tuple[str, str], list[str | None]] = {}

    def number(self, base: str, where: str, content: str | None) -> int:
        """From 1, among those of ``base`` (a step, an effect) that go to ``where``. What has the
        same content is the same request, sent again; what has None is always another."""
        with self._lock:
            contents = self._contents.setdefault((base, where), [])
            if content is None or content not in contents:
                contents.append(content)
                return len(contents)
            return contents.index(content) + 1

    def clear(self) -> None:
        """The attempt begins again."""
        with self._lock:
            self._contents.clear()
