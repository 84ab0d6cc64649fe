"""A receiver of webhooks, in the test's process, that can be away and can refuse."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Delivery:
    """What came in one request: ``id`` is its Idempotency-Key."""

    id: str | None
    body: Any
    headers: dict[str, str]


class Receiver:
    """Answers 204, or the next of ``answers``; ``on_delivery`` is called before it does."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.answers: list[int] = []
        self.on_delivery: Callable[[Delivery], None] = lambda _: None
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/hook"

    @property
    def bodies(self) -> list[Any]:
        """The bodies that were delivered, in order."""
        return [delivery.body for delivery in self.deliveries]

    @property
    def ids(self) -> list[str | None]:
        """The ids of what was delivered, in order."""
        return [delivery.id for delivery in self.deliveries]

    def start(self) -> None:
        """Listen, always on the same port."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.take(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Be away: nobody listens."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        answer = self.answers.pop(0) if self.answers else 204
        delivery = Delivery(
            request.headers["Idempotency-Key"], json.loads(body), dict(request.headers.items())
        )
        if answer == 204:
            self.deliveries.append(delivery)
        self.on_delivery(delivery)
        request.send_response(answer)
        request.send_header("Content-Length", "0")
        request.end_headers()
