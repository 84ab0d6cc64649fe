"""``dapr-runners show``: the steps of a run, and how each went."""

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dapr_runners._times import shown, took, with_iso
from dapr_runners.cli._errors import FrameworkMissingError
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import AsJson, Follow, console, print_json
from dapr_runners.cli._questions import ASKING, asked_by
from dapr_runners.cli._sidecar import Sidecar, on_sidecar

if TYPE_CHECKING:
    from dapr_runners.engine import HeldUp, Overview, RunSummary, StepSummary

_console = console()
_COLOURS = {"completed": "green", "failed": "red", "planned": "cyan", "working": "bold cyan"}
_TIMES = ("created_at", "last_updated_at")


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

    A step is planned, working (it has begun, and nobody has recorded its end), lost (its worker is
    gone: it begins again), waiting (for an answer), retried, completed, interrupted, failed, or
    left (its run has ended without it). Times are in UTC.

    With --follow, each step is shown when it is over, and the state when the run is; with --json
    too, one line for each.
    """
    from dapr_runners.effects import with_effects
    from dapr_runners.engine import held_up, run_in_thread, steps_of
    from dapr_runners.state import as_json as as_plain

    with where.runs() as runs:
        found = named(runs, run_id, thread, runner)
        if follow:
            _follow(runs, found, as_json)
            return
        run = run_in_thread(runs.run(found))
        steps = run_in_thread(with_effects(runs, found, run_in_thread(steps_of(runs, found))))
        try:
            questions = run_in_thread(asked_by(runs, run))
        except FrameworkMissingError:
            if run.status in ASKING:
                raise
            questions = []  # the steps of a run can be looked at without its framework
        held = run_in_thread(held_up(runs, run))
    if as_json:
        plain: dict[str, Any] = with_iso(dataclasses.asdict(run))
        plain["held_up"] = [with_iso(dataclasses.asdict(each)) for each in held]
        plain["steps"] = [with_iso(dataclasses.asdict(step)) for step in steps]
        plain["questions"] = [dataclasses.asdict(question) for question in questions]
        print_json(as_plain(plain))
        return
    _print_run(run)
    for each in held:
        _print_held_up(each)
    for step in steps:
        _print_step(step)
    for question in questions:
        prompt = escape(str(as_plain(question.prompt)))
        _console.print(f"  asks         {escape(question.key)}  {prompt}")


def _follow(runs: "Overview", run_id: str, as_json: bool) -> None:
    from dapr_runners.effects import with_effects
    from dapr_runners.engine import follow_steps, iterate_in_thread, run_in_thread

    for step in iterate_in_thread(follow_steps(runs, run_id)):
        for told in run_in_thread(with_effects(runs, run_id, [step])):
            if as_json:
                print_json(with_iso(dataclasses.asdict(told)))
            else:
                _print_step(told)
    run = run_in_thread(runs.run(run_id))
    if as_json:
        print_json(with_iso(dataclasses.asdict(run)))
    else:
        _print_run(run)


def _print_run(run: "RunSummary") -> None:
    for name, value in dataclasses.asdict(run).items():
        if value:
            text = "; ".join(run.waits_for) if name == "waits_for" else str(value)
            _console.print(f"{name:<16}  {escape(shown(value) if name in _TIMES else text)}")


def _print_held_up(held: "HeldUp") -> None:
    following = "it is tried now"
    if held.next_try is not None:
        following = f"next try about {shown(held.next_try)}"
    text = f"{held.step}: since {shown(held.since)}, tried {held.attempts} times, {following}"
    _console.print(f"{'held_up':<16}  {escape(text)}")
    _console.print(f"      [red]{escape(held.error)}[/red]")


def _print_step(step: "StepSummary") -> None:
    colour = _COLOURS.get(step.status, "yellow")
    lasted = ""
    if step.began is not None and step.ended is not None:
        lasted = took(step.ended - step.began)
    elif step.began is not None and step.status == "working":
        lasted = f"for {took(max(0.0, time.time() - step.began))}"
    waited = "" if step.waited is None else f"after {took(step.waited)}"
    attempt = f"attempt {step.attempt}" if step.attempt else ""
    began = "" if step.began is None else shown(step.began)
    _console.print(
        f"  [{colour}]{step.status:<11}[/{colour}]  {escape(step.name):<24}  {attempt:<10}"
        f"  {began:<20}  {lasted:<10}  {waited}".rstrip()
    )
    if step.error is not None:
        _console.print(f"      [red]{escape(step.error)}[/red]")
    for effect in step.effects:
        state = f"{effect['status']:<9}  attempt {effect['attempt']}"
        _console.print(f"      effect {escape(str(effect['effect']))}  {state}  {effect['key']}")
