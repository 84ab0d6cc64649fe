"""``dapr-runners dead-letter``: what waits for somebody's decision."""

import dataclasses
import getpass
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._options import AsJson, Port, Store, told_of_errors
from dapr_runners.cli._sidecar import address_of

if TYPE_CHECKING:
    from dapr_runners.effects import DeadLetter, DeadLetters

_console = Console(highlight=False, soft_wrap=True)

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
def list_letters(
    runner: Annotated[str | None, typer.Option("--runner", help="Those of one runner.")] = None,
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """List dead letters, the oldest first: id, kind, step, since when, what is wrong."""
    with _letters(store_name, dapr_grpc_port, runner) as letters:
        found = letters.list()
    if as_json:
        typer.echo(json.dumps([_plain(letter) for letter in found]))
        return
    for letter in found:
        since = datetime.fromtimestamp(letter.time, UTC)
        what = f"{letter.step}: {letter.effect}" if letter.effect else letter.step
        _console.print(
            f"[bold]{escape(letter.id)}[/bold]  {letter.kind:<7}  {since:%Y-%m-%d %H:%M:%S}"
            f"  {escape(what)}  {escape(letter.error)}"
        )


@dead_letter.command("show")
def show(
    letter: Letter,
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Show all there is to know of a letter, with the record of its effect."""
    with _letters(store_name, dapr_grpc_port) as letters:
        plain = _plain(letters.get(letter))
    if as_json:
        typer.echo(json.dumps(plain))
        return
    record: dict[str, Any] = plain.pop("record") or {}
    for name, value in {**plain, **record}.items():
        if value not in (None, "", []):
            _console.print(f"{name:<18}  {escape(str(value))}")


@dead_letter.command("decisions")
def decisions(
    run_id: Annotated[str, typer.Argument(help="The run's id, as `dapr-runners list` shows it.")],
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """List what was decided on the letters of a run, by whom, when and why."""
    with _letters(store_name, dapr_grpc_port) as letters:
        found = letters.decisions(run_id)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(decision) for decision in found]))
        return
    for decision in found:
        when = datetime.fromtimestamp(decision.time, UTC)
        about = f"{decision.what:<9}  {decision.letter}  {decision.who}: {decision.why}"
        _console.print(f"{when:%Y-%m-%d %H:%M:%S}  {escape(about)}")


@dead_letter.command("retry")
def retry(
    letter: Letter,
    why: Why,
    who: Who = None,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """It has not happened: do it again."""
    with _letters(store_name, dapr_grpc_port) as letters:
        _decide(letters, letters.retry, letter, who, why, "Retried")


@dead_letter.command("resolve")
def resolve(
    letter: Letter,
    why: Why,
    value: Annotated[str, typer.Option("--value", help="What it gave, as JSON.")] = "null",
    who: Who = None,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """It has happened, and gave a value."""
    try:
        given = json.loads(value)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"it is not JSON: {error}", param_hint="--value") from error
    with _letters(store_name, dapr_grpc_port) as letters:
        _decide(letters, partial(letters.resolve, value=given), letter, who, why, "Resolved")


@dead_letter.command("reconcile")
def reconcile(
    letter: Letter,
    why: Why,
    who: Who = None,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Have the effect's reconcile function asked again whether it has happened."""
    with _letters(store_name, dapr_grpc_port) as letters:
        _decide(letters, letters.reconcile, letter, who, why, "To be reconciled again:")


@dead_letter.command("drop")
def drop(
    letter: Letter,
    why: Why,
    who: Who = None,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Give it up."""
    with _letters(store_name, dapr_grpc_port) as letters:
        _decide(letters, letters.drop, letter, who, why, "Dropped")


def _decide(
    letters: "DeadLetters",
    decide: Callable[..., None],
    letter: str,
    who: str | None,
    why: str,
    did: str,
) -> None:
    about = letters.get(letter)
    by = who or getpass.getuser()
    decide(letter, who=by, why=why)
    said = f"{did} {letter}: {about.kind} of step {about.step}. Decided by {by}: {why}"
    _console.print(escape(said))


@contextmanager
def _letters(
    store_name: str, port: int | None, runner: str | None = None
) -> "Generator[DeadLetters]":
    from dapr_runners.effects import DeadLetters

    host, _, found = address_of(port).rpartition(":")
    with told_of_errors():
        yield DeadLetters(store_name=store_name, host=host, port=found, runner=runner)


def _plain(letter: "DeadLetter") -> dict[str, Any]:
    plain = dataclasses.asdict(letter)
    if plain["record"] is not None:
        hidden = ("result", "exception", "order")
        plain["record"] = {k: v for k, v in plain["record"].items() if k not in hidden}
    return plain
