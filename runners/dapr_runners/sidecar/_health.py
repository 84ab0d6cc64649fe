"""The HTTP side: the health checks a DaprClient waits for when it is made."""

import asyncio
import contextlib
import hmac
import json
from collections.abc import Callable
from typing import Any

WORK_PATH = "/dapr-runners/work"
_TIMEOUT = 30.0


class HealthServer:
    """Answers ``/v1.0/healthz`` and ``/v1.0/healthz/outbound``, and those who know the token
    ``/v1.0/metadata``, and ``/dapr-runners/work``, which no daprd has: what ``work`` tells of the
    workflows."""

    def __init__(
        self, app_id: str, api_token: str | None, work: Callable[[], list[dict[str, Any]]]
    ) -> None:
        self._app_id = app_id
        self._token = api_token
        self._work = work
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._server = await asyncio.start_server(self._serve, host, port)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away, is too slow, sends more than 64 KiB or does not speak HTTP is its
        # own affair.
        with contextlib.suppress(
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            TimeoutError,
        ):
            async with asyncio.timeout(_TIMEOUT):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, body = self._answer(head)
                answer = (
                    f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
                )
                writer.write(answer.encode() + body)
                await writer.drain()
        writer.close()

    def _answer(self, head: str) -> tuple[str, bytes]:
        request, *lines = head.splitlines()
        method, _, rest = request.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method == "GET" and path in ("/v1.0/healthz", "/v1.0/healthz/outbound"):
            return "204 No Content", b""
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        given = headers.get("dapr-api-token", "")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            return "401 Unauthorized", b'{"message":"invalid api token"}'
        if method == "GET" and path == "/v1.0/metadata":
            metadata = {"id": self._app_id, "runtimeVersion": "embedded"}
            return "200 OK", json.dumps(metadata).encode()
        if method == "GET" and path == WORK_PATH:
            return "200 OK", json.dumps(self._work()).encode()
        missing = {"errorCode": "ERR_METHOD_NOT_FOUND", "message": f"no {method} {path} here"}
        return "404 Not Found", json.dumps(missing).encode()
