"""Work that is done now and again in a thread of its own, for as long as somebody wants it."""

import threading
from collections.abc import Callable, Iterable


class Rounds:
    """Calls ``look`` after each of ``pauses`` (seconds), from :meth:`begin` to :meth:`end`, or
    until it returns False. It gets what is set at the end, and must not raise."""

    def __init__(
        self,
        name: str,
        look: Callable[[threading.Event], bool],
        pauses: Callable[[], Iterable[float]],
    ) -> None:
        self._name = name
        self._look = look
        self._pauses = pauses
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, unless it has."""
        if self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._over,), name=self._name, daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """End, and wait for a look that is under way, though not long."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(2.0)

    def _run(self, over: threading.Event) -> None:
        for pause in self._pauses():
            if over.wait(pause) or not self._look(over):
                return
