"""Where the saver keeps things in the state store.

Names in keys are lower case, so that stores that do not tell case apart keep them apart, and never
contain ``||``, which Dapr refuses.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dapr_runners.engine import InvalidThreadIdError, is_text

_PLAIN = re.compile(r"[a-z0-9_.-]{1,40}")
_STEM = 20


def name(text: str) -> str:
    """A part of a key for any ``text``: the text itself if it is short and plain, else what can be
    read of it and a hash."""
    if _PLAIN.fullmatch(text):
        return text
    stem = re.sub(r"[^a-z0-9_.-]+", "_", text.lower())[:_STEM]
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
    return f"{stem}~{base64.b32hexencode(digest).decode().rstrip('=').lower()}" if text else "~"


def page_key(log: str, page: str) -> str:
    """The key of a full page of ``log``."""
    return f"{log}/p/{page}"


def content_hash(_scope: str, data: bytes) -> str:
    """Names the content ``data`` where nothing is encrypted."""
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Scope:
    """One namespace of one thread. ``index`` is the key of its checkpoint index; ``hashed`` names
    contents below it."""

    thread: str
    namespace: str
    index: str
    hashed: Callable[[str, bytes], str] = field(default=content_hash, compare=False, repr=False)

    def checkpoint(self, checkpoint_id: str) -> str:
        """The key of a checkpoint."""
        return f"{self.index}/c/{name(checkpoint_id)}"

    def writes(self, checkpoint_id: str) -> str:
        """The key of the pending writes of a checkpoint."""
        return f"{self.index}/w/{name(checkpoint_id)}"

    def value(self, value_name: str, part: int) -> str:
        """The key of a part of a large value."""
        return f"{self.index}/v/{value_name}/{part}"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one saver. ``hashed`` names contents below a key."""

    prefix: str
    hashed: Callable[[str, bytes], str] = field(default=content_hash, compare=False, repr=False)

    def scope(self, thread: str, namespace: str) -> Scope:
        """The keys of one namespace of a thread."""
        if not is_text(namespace):
            raise InvalidThreadIdError(thread=f"{thread}/{namespace}")
        index = f"{self.thread(thread)}/n/{name(namespace)}"
        return Scope(thread, namespace, index, self.hashed)

    def thread(self, thread: str) -> str:
        """The key of the list of a thread's namespaces. Raises InvalidThreadIdError."""
        if not is_text(thread):
            raise InvalidThreadIdError(thread=thread)
        return f"{self.prefix}/t/{name(thread)}"

    def run(self, run_id: str) -> str:
        """The key of the list of namespaces a run has written to."""
        return f"{self.prefix}/r/{name(run_id)}"

    def threads(self, branch: str) -> str:
        """The key of a part of the list of all threads."""
        return f"{self.prefix}/threads/{branch}"
