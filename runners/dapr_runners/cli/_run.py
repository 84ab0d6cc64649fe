"""``dapr-runners run``: a program beside an embedded sidecar, as ``dapr run`` does it."""

import os
import signal
import subprocess  # nosec B404 # runs what the user names, see below
import sys
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from dapr_runners._bottom_line import BottomLine
from dapr_runners._progress import SHOWN_ELSEWHERE, At, line_of
from dapr_runners._signals import Signals, caught
from dapr_runners.errors import DaprRunnersError
from dapr_runners.sidecar import EmbeddedSidecar

_INHERITED = ("DAPR_GRPC_ENDPOINT", "DAPR_HTTP_ENDPOINT", "DAPR_RUNTIME_HOST")
"""Variables that would lead the program past its sidecar to another one."""

_ALREADY_ENDING_SECONDS = 10.0

_console = Console(stderr=True, highlight=False)


def run(
    command: Annotated[
        list[str], typer.Argument(help="The program, after `--`.", metavar="-- APP")
    ],
    app_id: Annotated[
        str, typer.Option("--app-id", "-a", help="Whose workflows and state these are.")
    ] = "runner",
    dapr_grpc_port: Annotated[
        int, typer.Option("--dapr-grpc-port", "-G", help="0 takes a free one.")
    ] = 0,
    dapr_http_port: Annotated[
        int, typer.Option("--dapr-http-port", "-H", help="0 takes a free one.")
    ] = 0,
    resources_path: Annotated[
        Path | None,
        typer.Option("--resources-path", "--components-path", "-d", help="Component files."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="A Configuration file.")
    ] = None,
    state_dir: Annotated[
        Path, typer.Option("--state-dir", help="Where runs and state are kept.")
    ] = Path(".dapr-runners"),
    max_body_size: Annotated[
        str, typer.Option("--max-body-size", help="Largest message, such as 4Mi or 16Mi.")
    ] = "4Mi",
    log_level: Annotated[
        str, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = "warning",
    app_port: Annotated[
        int | None, typer.Option("--app-port", "-p", help="Passed on as APP_PORT.")
    ] = None,
    app_protocol: Annotated[str | None, typer.Option(hidden=True)] = None,
    dapr_internal_grpc_port: Annotated[int | None, typer.Option(hidden=True)] = None,
    placement_host_address: Annotated[str | None, typer.Option(hidden=True)] = None,
    scheduler_host_address: Annotated[str | None, typer.Option(hidden=True)] = None,
    metrics_port: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a program beside an embedded sidecar, with the options and variables of `dapr run`.

    Runs survive the program and the sidecar: start the same command again and they go on. The
    options of `dapr run` for ports of its services, metrics and the app's protocol are accepted,
    and have no meaning here; others are refused.
    """
    sidecar = EmbeddedSidecar(
        state_dir / f"{app_id}.db",
        grpc_port=dapr_grpc_port,
        http_port=dapr_http_port,
        api_token=os.environ.get("DAPR_API_TOKEN") or None,
        app_id=app_id,
        resources_path=resources_path,
        config=config,
        max_body_size=max_body_size,
        log_level=log_level,
    )
    try:
        with sidecar:
            _console.print(
                f"Sidecar of [bold]{escape(app_id)}[/bold]: gRPC {sidecar.grpc_port},"
                f" HTTP {sidecar.http_port}, state in {escape(str(sidecar.path))}"
            )
            code = _run_app(command, sidecar, app_port)
    except (DaprRunnersError, OSError) as error:
        _console.print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(1) from error
    raise typer.Exit(code)


def _run_app(command: list[str], sidecar: EmbeddedSidecar, app_port: int | None) -> int:
    environment = {key: value for key, value in os.environ.items() if key not in _INHERITED}
    environment |= sidecar.env()
    if _console.is_terminal:
        environment[SHOWN_ELSEWHERE] = "1"
    if app_port is not None:
        environment["APP_PORT"] = str(app_port)
    lost = threading.Event()
    with caught(*_passed_on()) as signals:
        # The program is what whoever calls this command asks it to run.
        app = subprocess.Popen(command, env=environment)  # nosec B603
        threading.Thread(target=_watch, args=(sidecar, app, lost), daemon=True).start()
        passing_on = threading.Thread(target=_pass_on, args=(signals, app), daemon=True)
        passing_on.start()
        with BottomLine(_console, lambda: _under_way(sidecar)):
            code = app.wait()
        signals.end()
        passing_on.join()
    if lost.is_set():
        return 1
    # As a shell reports a program that a signal ended.
    return code if code >= 0 else 128 - code


def _under_way(sidecar: EmbeddedSidecar) -> Text | None:
    """What takes long, of all runs of the sidecar."""
    try:
        rows = sidecar.work_under_way()
    except (OSError, HTTPException, ValueError):
        return None  # it has ended, or begins
    at = [At(**{name: row[name] for name in row if name != "run"}) for row in rows]
    return line_of(at, time.time())


def _watch(sidecar: EmbeddedSidecar, app: "subprocess.Popen[bytes]", lost: threading.Event) -> None:
    """A program without its sidecar would wait for ever: end it, and say why."""
    code = sidecar.wait()
    if code is None or app.poll() is not None:
        return
    lost.set()
    _console.print(
        f"[red]The sidecar ended with code {code}; ending the program. What was recorded is kept:"
        " the same command goes on from there.[/red]",
        soft_wrap=True,
    )
    app.terminate()
    try:
        app.wait(_ALREADY_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        app.kill()


def _passed_on() -> list[int]:
    """The signals that are the program's, if this system has them."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _pass_on(signals: Signals, app: "subprocess.Popen[bytes]") -> None:
    """What is sent to this process goes to the program, with what came before it was there."""
    while (number := signals.next()) is not None:
        # A terminal sends Ctrl-C to the program as well: once is enough.
        if number != signal.SIGINT or not sys.stdin.isatty():
            app.send_signal(number)
