"""``dapr-runners answer``: what a run asks, answered."""

import json
from typing import Annotated, Any

import typer
from rich.markup import escape

from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._named import OfRunner, Thread, named
from dapr_runners.cli._options import console
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def answer(
    where: Sidecar,
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] KEY VALUE", help="The run, unless --thread names it; what `show` says."
        ),
    ],
    thread: Thread = None,
    runner: OfRunner = None,
    is_text: Annotated[
        bool, typer.Option("--text", help="VALUE is a text, even if it looks like JSON.")
    ] = False,
) -> None:
    """Answer a question of a crew, or an interrupt of a graph.

    VALUE is JSON or, if it is not, a text. What a crew asks is always answered with a text; it
    needs no worker. An interrupt is answered by the next turn of its thread, which needs one.
    """
    from dapr_runners.engine import run_in_thread

    if len(given) != (3 if thread is None else 2):
        raise typer.BadParameter("give RUN KEY VALUE, or --thread THREAD KEY VALUE")
    run_id = given[0] if thread is None else None
    key, text = given[-2:]
    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        insight = run_in_thread(insight_into(runs, run))
        value = text if is_text or insight.answers_are_texts else _value(text)
        on = run_in_thread(insight.answer(runs, run, key, value))
    console().print(escape(f"Answered. {on} goes on with it."))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
