"""``dapr-runners events``: what happened in a run, as it happened."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import AsJson, Follow, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dapr_runners.engine import Json

_SHOWN = 200
"""Characters of a value on a line."""
_HEAD = ("type", "id", "workflow_id", "replayed", "exception")


@on_sidecar
def events(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    after: Annotated[
        str | None, typer.Option("--from", help="Those after the event with this id.")
    ] = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print the events of a run from its beginning, one a line: those that run_async yields.

    Values are shown as they are stored: the program and its classes are not needed.
    """
    from dapr_runners.state import as_json as plain

    printer = console()
    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        for event in _events(runs, run, after, follow):
            told: Json = {k: plain(v) for k, v in event.items() if k != "exception"}
            if as_json:
                print_json(told)
            else:
                printer.print(_line(told))


def _events(runs: Any, run: str, after: str | None, follow: bool) -> "Iterator[Json]":
    from dapr_runners.engine import iterate_in_thread, run_in_thread

    insight = run_in_thread(insight_into(runs, run))
    return iterate_in_thread(insight.events(runs, run, after=after, follow=follow))


def _line(event: "Json") -> str:
    about = {k: v for k, v in event.items() if k not in _HEAD and v is not None}
    shown = " ".join(f"{key}={_short(value)}" for key, value in about.items())
    return f"[cyan]{event['type']:<20}[/cyan]  {escape(shown)}  [dim]{escape(event['id'])}[/dim]"


def _short(value: Any) -> str:
    import json

    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
