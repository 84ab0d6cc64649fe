"""The counting process: nodes tell it that they begin, and it outlives all of them.

A node connects, sends its name and process id, and goes on when it is answered. Each beginning is
printed as a JSON line. ``--hold NODE`` holds the answers for NODE back until a line comes on stdin,
so NODE is in its middle for as long as one likes.
"""

import argparse
import contextlib
import json
import os
import socket
import socketserver
import sys
import threading
from collections import Counter

ADDRESS = "TALLY_ADDRESS"


def tell(node: str) -> None:
    """Say that ``node`` begins, and wait until it may go on."""
    host, _, port = os.environ[ADDRESS].partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{node} {os.getpid()}\n".encode())
        connection.makefile().readline()


class Tally(socketserver.ThreadingTCPServer):
    """Counts what connects to it."""

    daemon_threads = True

    def __init__(self, held: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.held = held
        self.release = threading.Event()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, node: str, pid: int) -> None:
        with self._lock:
            self._counts[node] += 1
            print(json.dumps({"node": node, "pid": pid, "count": self._counts[node]}), flush=True)


class _Handler(socketserver.StreamRequestHandler):
    server: Tally

    def handle(self) -> None:
        node, pid = self.rfile.readline().decode().split()
        self.server.count(node, int(pid))
        if node == self.server.held:
            self.server.release.wait()
        with contextlib.suppress(OSError):  # killed while it was held
            self.wfile.write(b"go\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hold", default="")
    with Tally(parser.parse_args().hold) as tally:
        print(json.dumps({"port": tally.server_address[1]}), flush=True)
        threading.Thread(target=tally.serve_forever, daemon=True).start()
        sys.stdin.readline()
        tally.release.set()
        sys.stdin.read()  # until the demo ends


if __name__ == "__main__":
    main()
