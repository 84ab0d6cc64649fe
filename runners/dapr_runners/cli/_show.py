"""``dapr-runners show``: the steps of a run, and how each went."""

import dataclasses
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._options import AsJson, Port, Store
from dapr_runners.cli._overview import overview

if TYPE_CHECKING:
    from dapr_runners.engine import Overview, StepSummary

_console = Console(highlight=False, soft_wrap=True)
_COLOURS = {"completed": "green", "failed": "red", "planned": "cyan"}


def show(
    run_id: Annotated[str, typer.Argument(help="The run's id, as `list` shows it.")],
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Show a run: its state, and its steps with attempts, times and effects."""
    from dapr_runners.engine import run_in_thread

    with overview(store_name, dapr_grpc_port) as runs:
        run = run_in_thread(runs.run(run_id))
        steps = run_in_thread(runs.steps(run_id))
        for effect in [effect for step in steps for effect in step.effects]:
            _add_state(runs, run_id, effect)
    if as_json:
        plain: dict[str, Any] = dataclasses.asdict(run)
        plain["steps"] = [dataclasses.asdict(step) for step in steps]
        typer.echo(json.dumps(plain, default=str))
        return
    for name, value in dataclasses.asdict(run).items():
        if value:
            text = "; ".join(run.waits_for) if name == "waits_for" else str(value)
            _console.print(f"{name:<16}  {escape(text)}")
    for step in steps:
        _print(step)


def _print(step: "StepSummary") -> None:
    colour = _COLOURS.get(step.status, "yellow")
    began = "" if step.began is None else f"{datetime.fromtimestamp(step.began, UTC):%H:%M:%S}"
    took = ""
    if step.began is not None and step.ended is not None:
        took = f"{(step.ended - step.began) * 1000:.0f} ms"
    attempt = f"attempt {step.attempt}" if step.attempt else ""
    _console.print(
        f"  [{colour}]{step.status:<11}[/{colour}]  {escape(step.name):<24}  {attempt:<10}"
        f"  {began:<8}  {took}"
    )
    for effect in step.effects:
        state = f"{effect['status']:<9}  attempt {effect['attempt']}"
        _console.print(f"      effect {escape(str(effect['effect']))}  {state}  {effect['key']}")


def _add_state(runs: "Overview", run: str, effect: dict[str, Any]) -> None:
    from dapr_runners.effects import EffectRecords
    from dapr_runners.engine import run_in_thread

    found = run_in_thread(EffectRecords(runs.io, runs.codec).read(run, effect["key"]))
    effect["status"] = "missing" if found is None else found.record.execution_status.value
    effect["attempt"] = 0 if found is None else found.record.attempt
