"""Transports for httpx that give each request that may change something an ``Idempotency-Key``.

``httpx.Client(transport=IdempotencyTransport())`` in a node or a tool: services that know the
header (IETF draft "The Idempotency-Key HTTP Header Field"; Stripe and others) recognize a request
that is sent again because its step, or its effect, runs again. Needs ``httpx``.
"""

import hashlib
from typing import cast

import httpx

from dapr_runners._current_step import effects_of, running_step
from dapr_runners.effects._current import current_effect
from dapr_runners.effects._keys import request_key
from dapr_runners.effects._step import Effects

HEADER = "Idempotency-Key"
_SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
"""Methods that change nothing (RFC 9110, section 9.2.1)."""


class IdempotencyTransport(httpx.BaseTransport):
    """Sends through ``transport`` (default: httpx's own). A request that is not safe, has no
    ``Idempotency-Key`` and is made in a recorded step gets one: the same when its step runs again,
    another for every other request. The first of an ``@effect`` has the effect's own key, by which
    ``reconcile`` can look it up. The same request, sent again by the same attempt, is the same
    operation: two that are equal to the last byte and are to count twice need keys of their own.
    """

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send ``request``, marked."""
        _mark(request)
        return self._transport.handle_request(request)

    def close(self) -> None:
        """Close the transport behind."""
        self._transport.close()


class AsyncIdempotencyTransport(httpx.AsyncBaseTransport):
    """Twin of :class:`IdempotencyTransport`, for ``httpx.AsyncClient``."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send ``request``, marked."""
        _mark(request)
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the transport behind."""
        await self._transport.aclose()


def _mark(request: httpx.Request) -> None:
    if request.method in _SAFE or HEADER in request.headers:
        return
    step = running_step.get()
    effects = cast("Effects | None", effects_of(step))
    if step is None or effects is None:
        return
    where = f"{request.method} {request.url}"
    effect = current_effect()
    if effect is None:
        number = effects.requests.number(step.idempotency_key, where, _content(request))
        key = request_key(step.idempotency_key, where, number)
    else:
        # By the effect's attempt: a later one of the same step asks anew.
        base = f"{effect.idempotency_key} {effect.attempt}"
        number = effects.requests.number(base, where, _content(request))
        # Numbered among all requests of the effect, wherever they go.
        is_first = effects.requests.number(base, "", f"{where} {number}") == 1
        key = effect.idempotency_key
        if not is_first:
            key = request_key(effect.idempotency_key, where, number)
    request.headers[HEADER] = key


def _content(request: httpx.Request) -> str | None:
    """Tells the request's content from others; None for one that is made while it is sent."""
    try:
        return hashlib.blake2b(request.content, digest_size=16).hexdigest()
    except httpx.RequestNotRead:
        return None


__all__ = ["AsyncIdempotencyTransport", "IdempotencyTransport"]
