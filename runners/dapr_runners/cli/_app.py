"""The commands of ``dapr-runners``."""

import typer

from dapr_runners.cli._answer import answer
from dapr_runners.cli._cancel import cancel
from dapr_runners.cli._chaos import chaos
from dapr_runners.cli._control import resume, suspend, terminate
from dapr_runners.cli._dead_letter import dead_letter, reconcile_run
from dapr_runners.cli._doctor import doctor
from dapr_runners.cli._events import events
from dapr_runners.cli._export import export
from dapr_runners.cli._list import list_runs
from dapr_runners.cli._purge import purge
from dapr_runners.cli._questions import questions
from dapr_runners.cli._retry import retry
from dapr_runners.cli._run import run
from dapr_runners.cli._show import show

app = typer.Typer(
    name="dapr-runners",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Durable runners for LangGraph graphs and CrewAI crews on Dapr Workflow.",
)
app.command(
    "run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True}
)(run)
app.command("doctor")(doctor)
app.command(
    "chaos", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True}
)(chaos)
app.command("list")(list_runs)
app.command("show")(show)
app.command("events")(events)
app.command("logs", hidden=True)(events)
app.command("export")(export)
app.command("questions")(questions)
app.command("answer")(answer)
app.command("suspend")(suspend)
app.command("resume")(resume)
app.command("retry")(retry)
app.command("reconcile")(reconcile_run)
app.command("cancel")(cancel)
app.command("terminate")(terminate)
app.command("purge")(purge)
app.add_typer(dead_letter)


@app.callback()
def commands() -> None:
    """Each command says more with --help."""


def main() -> None:
    """The console script."""
    app()
