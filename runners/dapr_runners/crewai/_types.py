"""What the codec must know of CrewAI: which classes a crew's values may have."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from dapr_runners.crewai._private import EXTENSIONS
from dapr_runners.state import AllowList, Codec, Extension

_MODULES = (
    "crewai.*",
    "openai.types.*",
    "anthropic.types.*",
    "google.genai.types",
    "mcp.types",
    "__main__",
)
"""Whose data classes results of LLMs and tools commonly are."""
_MAX_HINTED = 64


class Types:
    """The classes that records of a runner may hold. It learns more as crews are built."""

    def __init__(
        self,
        allow_types: Iterable[Any],
        modules: Iterable[str],
        max_value_size: int | None = None,
    ) -> None:
        self._max_bytes = max_value_size
        extra = list(allow_types)
        own: list[Extension[Any]] = [item for item in extra if isinstance(item, Extension)]
        self._extensions = [*own, *(item for item in EXTENSIONS if item not in own)]
        classes = [item for item in extra if not isinstance(item, Extension)]
        names = {name for name in modules if name in sys.modules and not name.startswith("crewai.")}
        self._allow = AllowList.of(modules=[*_MODULES, *sorted(names)], extra=classes)
        self._lock = threading.Lock()
        self._known: set[Any] = set()
        self._hinted: OrderedDict[tuple[Any, ...], Codec] = OrderedDict()
        self.codec = self._codec_of(self._allow)

    def _codec_of(self, allow: AllowList) -> Codec:
        return Codec(allow, extensions=self._extensions, max_bytes=self._max_bytes)

    def child(self) -> "Types":
        """The same, to learn more without it: the classes of one crew may be built anew, under the
        same names, for the next."""
        child = Types(self._extensions, (), self._max_bytes)
        child._allow, child.codec = self._allow, self.codec
        return child

    def learn(self, *roots: Any, modules: Iterable[str] = ()) -> None:
        """Allow the classes that ``roots`` (classes, functions) are or name in annotations, and the
        data classes of ``modules``."""
        with self._lock:
            names = [name for name in modules if name not in self._known]
            new = [root for root in roots if id(root) not in self._known]
            if not new and not names:
                return
            self._known.update(names, map(id, new))
            self._known.add(tuple(new))  # an id is one's own only while it lives
            classes = [root for root in new if isinstance(root, type)]
            self._allow |= AllowList.of(*new, modules=names, extra=classes)
            self.codec = self._codec_of(self._allow)
            self._hinted.clear()

    def codec_with(self, *hints: Any) -> Codec:
        """The codec, with the classes of ``hints`` allowed for one value. They are not learned:
        CrewAI makes some classes anew, under the same names, with each call."""
        if not hints:
            return self.codec
        with self._lock:
            codec = self._hinted.get(hints)
            if codec is None:
                classes = [hint for hint in hints if isinstance(hint, type)]
                allow = self._allow | AllowList.of(*hints, extra=classes)
                codec = self._hinted[hints] = self._codec_of(allow)
                if len(self._hinted) > _MAX_HINTED:
                    self._hinted.popitem(last=False)
            return codec
