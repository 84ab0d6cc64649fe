"""A dead letter, and what was decided on it, for people to read."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.markup import escape

from dapr_runners._times import shown

if TYPE_CHECKING:
    from dapr_runners.effects import DeadLetter, Decision, EffectRecord

DECIDED = {
    "retry": "to be retried",
    "resolve": "resolved",
    "reconcile": "to be reconciled again",
    "drop": "dropped",
}
"""What a letter is by a decision."""
_CHOICES = {
    "effect": {
        "resolve": "it has happened (--value: what it gave)",
        "retry": "it has not happened: do it again",
        "reconcile": "ask its reconcile function again",
        "drop": "give it up",
    },
    "message": {"retry": "send it again", "drop": "give it up"},
}
_OF_A_RUN = {
    "retry": "start the run again with the step",
    "resolve": "start the run again; --value is what the step gives",
    "drop": "leave the run as it is",
}


def lines_of(letter: "DeadLetter") -> Iterator[str]:
    """All there is to know of ``letter``, laid out as ``show`` does a run."""
    about = {
        "letter": letter.id,
        "kind": letter.kind,
        "run_id": letter.run_id,
        "runner": letter.runner,
        "tenant": letter.tenant_id,
        "step": letter.step,
        "step_id": letter.step_id,
        "attempts": letter.attempts,
        "since": shown(letter.time),
        "message_id": letter.message_id,
        "destination": letter.destination,
        "error": letter.error,
    }
    for name, value in about.items():
        if value not in (None, ""):
            yield f"{name:<16}  {escape(str(value))}"
    if letter.record is not None:
        yield from _effect(letter.record)
    elif letter.effect:
        yield f"  effect {escape(letter.effect)}  {letter.idempotency_key}"
    for what, meaning in _CHOICES.get(letter.kind, _OF_A_RUN).items():
        yield f"  {'decide':<11}  {what:<24}  {escape(meaning)}"


def decision_line(decision: "Decision") -> str:
    """A decision, with what decided it."""
    done = DECIDED.get(decision.what, decision.what)
    return f"{shown(decision.time)}  " + escape(
        said(decision.letter, done, decision.who, decision.why)
    )


def said(letter: str, done: str, who: str, why: str) -> str:
    """That somebody has decided on a letter."""
    return f"{letter} is {done}. Decided by {who}: {why}"


def _effect(record: "EffectRecord") -> Iterator[str]:
    state = f"{record.execution_status:<9}  attempt {record.attempt}"
    yield f"  effect {escape(record.effect)}  {state}  {escape(record.idempotency_key)}"
    times = {
        "created": record.created_at,
        "started": record.started_at,
        "updated": record.updated_at,
        "finished": record.finished_at,
    }
    told = {name: shown(when) for name, when in times.items() if when}
    if record.lease_owner:
        told["owner"] = f"{record.lease_owner}, until {shown(record.lease_expiration)}"
    if record.error:
        told["error"] = record.error
    for name, text in told.items():
        yield f"      {name:<9}  {escape(text)}"
    for each in record.decisions:
        text = f"{each['what']} by {each['who']}: {each['why']}"
        yield f"      {'decided':<9}  {shown(each['at'])}  {escape(text)}"
