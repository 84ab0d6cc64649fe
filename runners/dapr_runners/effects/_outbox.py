"""Messages that a step sends by being recorded."""

import json as _json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from dapr_runners._current_step import messages_of, running_program, running_step
from dapr_runners.effects._current import current_effect
from dapr_runners.effects.errors import MessageNotNotedError

_NONE: Any = object()
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f]")
_KEY = "idempotency-key"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def publish(
    pubsub: str,
    topic: str,
    data: Any,
    *,
    metadata: Mapping[str, str] | None = None,
    content_type: str | None = None,
) -> str:
    """Note a message to ``topic`` of the Dapr pub/sub component ``pubsub``; returns its id.

    It is recorded with the step that calls this, and sent when that record is durable, before the
    run goes on: never by an attempt that failed, was interrupted or died, at least once by the one
    that counts. The id (32 hex digits) stays the same however often it is sent, and is that of its
    CloudEvent. The messages of a step are sent in order; one whose receiver is away holds its run
    up, one that is refused for good becomes a dead letter (see ``DeadLetters``). A run that is
    cancelled sends nothing more.

    ``data`` is bytes, text, or anything that JSON can be made of; ``content_type`` is by default
    ``application/octet-stream``, ``text/plain`` or ``application/json``. ``metadata`` is Dapr's,
    for this message: ``cloudevent.type``, ``ttlInSeconds`` and so on.

    Raises :class:`MessageNotNotedError` outside of a recorded step, TypeError or ValueError for
    what cannot be sent.
    """
    given = dict(metadata or {})
    for name, value in given.items():
        _require_text(name, value)
        if name.lower() == "cloudevent.id" or (name.lower() == "rawpayload" and value != "false"):
            raise ValueError(f"metadata {name!r}: the event carries the message's own id")
    if not (pubsub and topic):
        raise ValueError("name a pub/sub component and a topic")
    body, found = _encoded(data)
    if "cloudevents" in (content_type or ""):
        raise ValueError("data is put into an event: name its attributes in metadata")
    message: dict[str, Any] = {
        "pubsub": pubsub,
        "topic": topic,
        "type": content_type or found,
        "metadata": given,
        "data": body,
    }
    return _noted(f"{pubsub}/{topic}", message)


def webhook(
    url: str,
    json: Any = _NONE,
    *,
    data: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> str:
    """Note a POST to ``url`` (http or https), of ``json`` or of ``data``; returns its id.

    As :func:`publish`. The id is sent as the header ``Idempotency-Key``. A 2xx answer takes the
    message; no answer, 5xx, 408, 425 and 429 let it be sent again; any other, a redirect included,
    refuses it for good. ``headers`` are recorded in the state store with it.
    """
    parts = urlsplit(url)
    # urlsplit drops some characters that an address cannot have, which sending refuses.
    if parts.scheme not in ("http", "https") or not parts.hostname or _NOT_IN_URL.search(url):
        raise ValueError(f"{url!r} is no http or https address")
    if (json is _NONE) == (data is None):
        raise TypeError("pass json or data")
    body, found = _encoded(data if json is _NONE else _json.dumps(json, allow_nan=False))
    given = dict(headers or {})
    for name, value in given.items():
        _require_text(name, value)
        if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ValueError(f"the header {name!r} cannot be sent")
        if name.lower() == _KEY:
            raise ValueError(f"the header {name!r} is the message's own id")
    if not any(name.lower() == "content-type" for name in given):
        given["Content-Type"] = found if json is _NONE else "application/json"
    return _noted(url, {"url": url, "headers": given, "data": body})


def _encoded(data: Any) -> tuple[bytes, str]:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), "application/octet-stream"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(data, str):
        return data.encode(), "text/plain"
    return _json.dumps(data, allow_nan=False).encode(), "application/json"


def _require_text(name: object, value: object) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(f"{name!r}: {value!r} is not text")


def _noted(to: str, message: dict[str, Any]) -> str:
    if current_effect() is not None:
        reason = "an effect whose result is recorded is not carried out again"
        raise MessageNotNotedError(to=to, reason=reason)
    notes = messages_of(running_step.get())
    if notes is not None:
        return notes.note(message)
    program = running_program.get()
    if program is not None and running_step.get() is None:
        return program.call("message", _note_in_step, (to, message), {})
    raise MessageNotNotedError(to=to, reason="no recorded step calls this")


def _note_in_step(to: str, message: dict[str, Any]) -> str:
    notes = messages_of(running_step.get())
    if notes is None:
        raise MessageNotNotedError(to=to, reason="no recorded step calls this")
    return notes.note(message)
