"""``python -m dapr_runners.sidecar``: the embedded sidecar as a process of its own."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from dapr_runners.errors import DaprRunnersError
from dapr_runners.sidecar._components import load_components, load_limits
from dapr_runners.sidecar._server import Server
from dapr_runners.sidecar._settings import DEFAULT_BODY_SIZE, Settings, parse_size


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sidecar until a signal ends it; returns the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        settings = Settings(
            database=options.database,
            app_id=options.app_id,
            grpc_port=options.dapr_grpc_port,
            http_port=options.dapr_http_port,
            api_token=options.dapr_api_token or os.environ.get("DAPR_API_TOKEN"),
            max_body_size=options.max_body_size,
            components=load_components(options.resources_path, options.app_id),
            limits=load_limits(options.config) if options.config else {},
        )
        return asyncio.run(_run(settings, options.watch_stdin))
    except (DaprRunnersError, OSError, sqlite3.Error) as error:
        if not options.watch_stdin:  # else whoever started it tells
            sys.stderr.write(f"{error}\n")
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return 1


async def _run(settings: Settings, watch_stdin: bool) -> int:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, end.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda _, __: loop.call_soon_threadsafe(end.set) and None)
    if watch_stdin:
        threading.Thread(target=_watch_stdin, args=(loop, end), daemon=True).start()
    server = Server(settings)
    server.failed.add_done_callback(lambda _: end.set())
    try:
        await server.start()
        ready = {"grpc_port": server.grpc_port, "http_port": server.http_port, "pid": os.getpid()}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        await end.wait()
    finally:
        await server.stop()
    if server.failed.done():
        sys.stderr.write(f"the database cannot be written: {server.failed.result()}\n")
        return 1
    return 0


def _watch_stdin(loop: asyncio.AbstractEventLoop, end: asyncio.Event) -> None:
    # The other end of stdin closes when the parent ends, however it ends.
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(end.set)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dapr_runners.sidecar", description=__doc__)
    add = parser.add_argument
    add("--database", type=Path, default=Path(".dapr-runners/sidecar.db"), help="the SQLite file")
    add("--app-id", default="runner")
    add("--dapr-grpc-port", type=int, default=50001, help="0 takes a free one")
    add("--dapr-http-port", type=int, default=3500, help="0 takes a free one")
    add("--dapr-api-token", help="what clients must present; default: DAPR_API_TOKEN")
    add("--resources-path", type=Path, help="a directory of component files")
    add("--config", type=Path, help="a Configuration file; its concurrency limits are honoured")
    add("--max-body-size", type=parse_size, default=DEFAULT_BODY_SIZE, help="0 is no limit")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    add("--watch-stdin", action="store_true", help="end when stdin is closed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
