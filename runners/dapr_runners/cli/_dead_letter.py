"""``dapr-runners dead-letter``: what waits for somebody's decision."""

import dataclasses
import getpass
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dapr_runners._times import shown, with_iso
from dapr_runners.cli._letter_shown import DECIDED, decision_line, lines_of, said
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import AsJson, OfOneRunner, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._unreadable import Unreadable

if TYPE_CHECKING:
    from dapr_runners.effects import DeadLetter, DeadLetters

_console = console()

dead_letter = typer.Typer(
    name="dead-letter",
    no_args_is_help=True,
    help="Effects of which nobody knows whether they have happened, runs that have failed of a step"
    " that used up its attempts, and messages that were refused.",
)
Letter = Annotated[str, typer.Argument(help="The letter's id, as `list` shows it.")]
Who = Annotated[str | None, typer.Option("--who", help="Who decides. Default: the user's name.")]
Why = Annotated[str, typer.Option("--why", help="Why, for the record.")]


@dead_letter.command("list")
@on_sidecar
def list_letters(
    where: Sidecar,
    runner: OfOneRunner = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the oldest first: id, kind, step, since when, what is wrong."""
    letters = _letters(where, runner)
    unreadable = Unreadable("letter")
    found = letters.list(unreadable=unreadable)
    if as_json:
        print_json([_plain(letter) for letter in found])
    for letter in () if as_json else found:
        what = f"{letter.step}: {letter.effect}" if letter.effect else letter.step
        _console.print(
            f"[bold]{escape(letter.id)}[/bold]  {letter.kind:<7}  {shown(letter.time)}"
            f"  {escape(what)}  {escape(letter.error)}"
        )
    unreadable.exit()


@dead_letter.command("show")
@on_sidecar
def show(
    where: Sidecar,
    letter: Letter,
    as_json: AsJson = False,
) -> None:
    """Show all there is to know of a letter, its effect, and what can be decided. Times are in
    UTC."""
    found = _letters(where).get(letter)
    if as_json:
        print_json(_plain(found))
        return
    for line in lines_of(found):
        _console.print(line)


@dead_letter.command("decisions")
@on_sidecar
def decisions(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    as_json: AsJson = False,
) -> None:
    """List what was decided on the letters of a run, by whom, when and why."""
    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
    found = _letters(where).decisions(run)
    if as_json:
        print_json([with_iso(dataclasses.asdict(decision)) for decision in found])
        return
    for decision in found:
        _console.print(decision_line(decision))


@dead_letter.command("retry")
@on_sidecar
def retry(
    where: Sidecar,
    letter: Letter,
    why: Why,
    who: Who = None,
) -> None:
    """It has not happened: do it again."""
    letters = _letters(where)
    _decide(letters, letters.retry, letter, who, why, "retry")


@dead_letter.command("resolve")
@on_sidecar
def resolve(
    where: Sidecar,
    letter: Letter,
    why: Why,
    value: Annotated[str, typer.Option("--value", help="What it gave, as JSON.")] = "null",
    who: Who = None,
) -> None:
    """It has happened, and gave a value."""
    try:
        given = json.loads(value)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"it is not JSON: {error}", param_hint="--value") from error
    letters = _letters(where)
    _decide(letters, partial(letters.resolve, value=given), letter, who, why, "resolve")


@dead_letter.command("reconcile")
@on_sidecar
def reconcile(
    where: Sidecar,
    letter: Letter,
    why: Why,
    who: Who = None,
) -> None:
    """Have the effect's reconcile function asked again whether it has happened."""
    letters = _letters(where)
    _decide(letters, letters.reconcile, letter, who, why, "reconcile")


@on_sidecar
def reconcile_run(
    where: Sidecar,
    why: Why,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    who: Who = None,
) -> None:
    """Have the reconcile functions of a parked run's effects asked again whether they happened."""
    by = who or getpass.getuser()
    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
    for letter in _letters(where).reconcile_run(run, who=by, why=why):
        _console.print(escape(said(letter, DECIDED["reconcile"], by, why)))


@dead_letter.command("drop")
@on_sidecar
def drop(
    where: Sidecar,
    letter: Letter,
    why: Why,
    who: Who = None,
) -> None:
    """Give it up."""
    letters = _letters(where)
    _decide(letters, letters.drop, letter, who, why, "drop")


def _decide(
    letters: "DeadLetters",
    decide: Callable[..., None],
    letter: str,
    who: str | None,
    why: str,
    what: str,
) -> None:
    by = who or getpass.getuser()
    decide(letter, who=by, why=why)
    _console.print(escape(said(letter, DECIDED[what], by, why)))


def _letters(where: Sidecar, runner: str | None = None) -> "DeadLetters":
    from dapr_runners.effects import DeadLetters
    from dapr_runners.state import StateStore

    return DeadLetters(
        store=StateStore(where.store_name, address=where.address),
        runner=runner,
        tenant=where.tenant,
        all_tenants=where.tenant is None,
    )


def _plain(letter: "DeadLetter") -> dict[str, Any]:
    plain = dataclasses.asdict(letter)
    if plain["record"] is not None:
        hidden = ("result", "exception", "order")
        plain["record"] = {k: v for k, v in plain["record"].items() if k not in hidden}
    return with_iso(plain)
