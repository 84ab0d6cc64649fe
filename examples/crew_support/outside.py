"""The outside world of the example: who listens is told that a tool, or a model's answer, begins.

Nobody listens, unless ``TALLY_ADDRESS`` says where: the demo counts what it is told, and so knows
from outside what ran how often.
"""

import os
import socket

ADDRESS = "TALLY_ADDRESS"


def tell(what: str) -> None:
    """Say that ``what`` begins, and wait until it may go on."""
    if address := os.environ.get(ADDRESS):
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"{what} {os.getpid()}\n".encode())
            connection.makefile().readline()
