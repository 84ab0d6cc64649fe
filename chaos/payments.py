"""A payment service in a process of its own: it counts what it was really asked to charge.

    python -m chaos.payments --port 8400

Charges belong to an account, and an account has settings. All bodies are JSON::

    PUT  /accounts/<name>            {"dedupe": bool, "lose_responses": n, "delay": seconds}
    POST /accounts/<name>/charges    {"order": str, "cents": int}, with Idempotency-Key or without
    GET  /accounts/<name>/charges    all of them, or those of ?key= or ?order=

With ``dedupe`` (the default), a charge with a key that is known is answered with the first charge,
and nothing is charged. A response that is lost is one whose charge was made: the connection ends
without an answer. The delay passes before the charge is made.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Charge:
    """Money that was taken: ``key`` is the idempotency key it came with, if any."""

    id: str
    order: str
    cents: int
    key: str | None = None


@dataclass
class Settings:
    """How an account answers; see the module."""

    dedupe: bool = True
    lose_responses: int = 0
    delay: float = 0.0


@dataclass
class _Book:
    settings: Settings = field(default_factory=Settings)
    charges: list[Charge] = field(default_factory=list[Charge])


class _Service(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._books: dict[str, _Book] = {}
        self._lock = threading.Lock()

    def configure(self, account: str, settings: Settings) -> None:
        with self._lock:
            self._book(account).settings = settings

    def charge(self, account: str, order: str, cents: int, key: str | None) -> Charge | None:
        """The charge; None where it was made, and its response is to be lost."""
        with self._lock:
            book = self._book(account)
            delay = book.settings.delay
        time.sleep(delay)
        with self._lock:
            settings = book.settings
            known = [one for one in book.charges if key is not None and one.key == key]
            if known and settings.dedupe:
                made = known[0]
            else:
                made = Charge(f"charge-{len(book.charges) + 1}", order, cents, key)
                book.charges.append(made)
            if settings.lose_responses:
                settings.lose_responses -= 1
                return None
            return made

    def charges(self, account: str) -> list[Charge]:
        with self._lock:
            return list(self._book(account).charges)

    def _book(self, account: str) -> _Book:
        return self._books.setdefault(account, _Book())


class _Handler(BaseHTTPRequestHandler):
    server: _Service

    def do_PUT(self) -> None:
        self.server.configure(self._account(), Settings(**self._body()))
        self._answer({})

    def do_POST(self) -> None:
        body = self._body()
        key = self.headers.get("Idempotency-Key")
        made = self.server.charge(self._account(), body["order"], body["cents"], key)
        if made is None:
            self.close_connection = True
        else:
            self._answer(asdict(made))

    def do_GET(self) -> None:
        wanted = parse_qs(urlsplit(self.path).query)
        found = [
            asdict(one)
            for one in self.server.charges(self._account())
            if all(getattr(one, name) in values for name, values in wanted.items())
        ]
        self._answer(found)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _account(self) -> str:
        return unquote(urlsplit(self.path).path.split("/")[2])

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Account:
    """An account of the service at ``address`` (``host:port``), as its clients see it."""

    def __init__(self, address: str, name: str) -> None:
        self._address = address
        self._path = f"/accounts/{quote(name, safe='')}"

    def configure(
        self, *, dedupe: bool = True, lose_responses: int = 0, delay: float = 0.0
    ) -> None:
        """Set how it answers from now on."""
        self._ask("PUT", "", asdict(Settings(dedupe, lose_responses, delay)))

    def charge(self, order: str, cents: int, key: str | None = None) -> Charge:
        """Take money. Raises :class:`http.client.RemoteDisconnected` where the answer is lost."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return Charge(**self._ask("POST", "/charges", {"order": order, "cents": cents}, headers))

    def charges(self, *, key: str | None = None, order: str | None = None) -> list[Charge]:
        """What was charged, the oldest first: all of it, or that of a key or of an order."""
        wanted = {"key": key, "order": order}
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        return [Charge(**one) for one in self._ask("GET", f"/charges?{query}")]

    def _ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        connection = HTTPConnection(self._address, timeout=_TIMEOUT_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, self._path + path, data, headers or {})
            response = connection.getresponse()
            text = response.read()
            if response.status != 200:
                raise RuntimeError(f"{method} {path}: {response.status} {text!r}")
            return json.loads(text)
        finally:
            connection.close()


class PaymentsProcess:
    """The service, as a child process that ends with the block."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.payments", "--watch-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the payment service ended with code {self._process.wait()}")
        self.address = line.decode().split()[-1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _end_with_parent(service: _Service) -> None:
    sys.stdin.buffer.read()
    service.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.payments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (the default)")
    parser.add_argument(
        "--watch-stdin", action="store_true", help="end when standard input is closed"
    )
    options = parser.parse_args()
    service = _Service(options.port)
    print(f"Charging at 127.0.0.1:{service.server_port}", flush=True)
    if options.watch_stdin:
        threading.Thread(target=_end_with_parent, args=(service,), daemon=True).start()
    service.serve_forever()


if __name__ == "__main__":
    main()
