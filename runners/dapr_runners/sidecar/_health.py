"""The HTTP side: the health checks a DaprClient waits for when it is made."""

import asyncio
import contextlib
import json
from collections.abc import Callable

_TIMEOUT = 30.0


class HealthServer:
    """Answers ``/v1.0/healthz`` and ``/v1.0/healthz/outbound`` with 204, on loopback."""

    def __init__(self, metadata: Callable[[], dict[str, object]]) -> None:
        self._metadata = metadata
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
        # A client that goes away, is too slow or does not speak HTTP is its own affair.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.decode("latin-1").partition(" ")
                status, body = self._answer(method, rest.partition(" ")[0].partition("?")[0])
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    def _answer(self, method: str, path: str) -> tuple[str, bytes]:
        if method == "GET" and path in ("/v1.0/healthz", "/v1.0/healthz/outbound"):
            return "204 No Content", b""
        if method == "GET" and path == "/v1.0/metadata":
            return "200 OK", json.dumps(self._metadata()).encode()
        missing = {"errorCode": "ERR_METHOD_NOT_FOUND", "message": f"no {method} {path} here"}
        return "404 Not Found", json.dumps(missing).encode()
