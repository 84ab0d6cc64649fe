"""``dapr-runners show``: the steps of a run, and how each went."""

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import AsJson, Follow, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar

if TYPE_CHECKING:
    from dapr_runners.engine import Overview, Question, RunSummary, StepSummary

_console = console()
_COLOURS = {"completed": "green", "failed": "red", "planned": "cyan"}


@on_sidecar
def show(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show a run: its state, and its steps with attempts, times, waits, errors and effects.

    With --follow, each step is shown when it is over, and the state when the run is; with --json
    too, one line for each.
    """
    from dapr_runners.effects import with_effects
    from dapr_runners.engine import run_in_thread
    from dapr_runners.state import as_json as as_plain

    with where.runs() as runs:
        found = named(runs, run_id, thread, runner)
        if follow:
            _follow(runs, found, as_json)
            return
        run = run_in_thread(runs.run(found))
        steps = run_in_thread(with_effects(runs, found, run_in_thread(runs.steps(found))))
        questions = run_in_thread(_questions(runs, run))
    if as_json:
        plain: dict[str, Any] = dataclasses.asdict(run)
        plain["steps"] = [dataclasses.asdict(step) for step in steps]
        plain["questions"] = [dataclasses.asdict(question) for question in questions]
        print_json(as_plain(plain))
        return
    _print_run(run)
    for step in steps:
        _print_step(step)
    for question in questions:
        prompt = escape(str(as_plain(question.prompt)))
        _console.print(f"  asks         {escape(question.key)}  {prompt}")


async def _questions(runs: "Overview", run: "RunSummary") -> "list[Question]":
    """What the run asks. Who asks nothing need not have its framework here."""
    if run.status not in ("waiting", "interrupted"):
        return []
    return await (await insight_into(runs, run.run_id)).questions(runs, run.run_id)


def _follow(runs: "Overview", run_id: str, as_json: bool) -> None:
    from dapr_runners.effects import with_effects
    from dapr_runners.engine import iterate_in_thread, run_in_thread

    for step in iterate_in_thread(runs.follow_steps(run_id)):
        for told in run_in_thread(with_effects(runs, run_id, [step])):
            if as_json:
                print_json(dataclasses.asdict(told))
            else:
                _print_step(told)
    run = run_in_thread(runs.run(run_id))
    if as_json:
        print_json(dataclasses.asdict(run))
    else:
        _print_run(run)


def _print_run(run: "RunSummary") -> None:
    for name, value in dataclasses.asdict(run).items():
        if value:
            text = "; ".join(run.waits_for) if name == "waits_for" else str(value)
            _console.print(f"{name:<16}  {escape(text)}")


def _print_step(step: "StepSummary") -> None:
    colour = _COLOURS.get(step.status, "yellow")
    began = "" if step.began is None else f"{datetime.fromtimestamp(step.began, UTC):%H:%M:%S}"
    took = ""
    if step.began is not None and step.ended is not None:
        took = f"{(step.ended - step.began) * 1000:.0f} ms"
    waited = "" if step.waited is None else f"after {step.waited * 1000:.0f} ms"
    attempt = f"attempt {step.attempt}" if step.attempt else ""
    _console.print(
        f"  [{colour}]{step.status:<11}[/{colour}]  {escape(step.name):<24}  {attempt:<10}"
        f"  {began:<8}  {took:<8}  {waited}"
    )
    if step.error is not None:
        _console.print(f"      [red]{escape(step.error)}[/red]")
    for effect in step.effects:
        state = f"{effect['status']:<9}  attempt {effect['attempt']}"
        _console.print(f"      effect {escape(str(effect['effect']))}  {state}  {effect['key']}")
