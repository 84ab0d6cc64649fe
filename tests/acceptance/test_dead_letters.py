"""What nobody knows, and what has used up its attempts, waits for a decision: by API and CLI."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from harness.cluster import Cluster
from harness.deadline import until
from harness.effects import InjectedError
from harness.processes import WorkerProcess
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.effects import (
    DeadLetter,
    DeadLetterNotFoundError,
    DeadLetters,
    DecisionRefusedError,
    EffectDroppedError,
    EffectStatus,
    EffectUnknownError,
    RunEndedError,
)
from dapr_runners.engine import PoisonStepError
from dapr_runners.langgraph import StepRetry
from engines import until_nobody_works

pytestmark = pytest.mark.timeout(240)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
_INPUT: dict[str, Any] = {"log": []}


def _parked(cluster: Cluster, graph: str = "plain", is_async: bool = False) -> WorkerProcess:
    """A worker of a run that is parked at its charge."""
    cluster.use(f"effect_graphs:{graph}", is_async)
    cluster.effects.arm("charged", "die")
    worker = cluster.worker()
    worker.send("call", "thread", _INPUT)
    worker.wait_dead()
    worker = cluster.worker()
    with pytest.raises(EffectUnknownError):
        worker.ask("call", "thread", _INPUT)
    return worker


def _letters(cluster: Cluster) -> DeadLetters:
    return DeadLetters(port=cluster.sidecar.grpc_port)


def _cli(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["dead-letter", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@_MODES
@pytest.mark.parametrize("graph", ["plain", "plain_beside"])
def test_a_letter_tells_what_is_known(graph: str, is_async: bool, cluster: Cluster) -> None:
    _parked(cluster, graph, is_async)
    (letter,) = _letters(cluster).list()
    assert (letter.kind, letter.step, letter.effect) == ("effect", "charge", "charge")
    assert letter.run_id == cluster.run_of("thread")
    (charge,) = [e for e in cluster.effects.events() if e["point"] == "charge"]
    assert letter.idempotency_key == charge["key"]
    record = _letters(cluster).get(letter.id).record
    assert record is not None
    assert record.execution_status is EffectStatus.UNKNOWN
    assert record.fencing_token > charge["token"]
    assert _letters(cluster).list(run_id="another") == []


@_MODES
@pytest.mark.parametrize("graph", ["plain", "plain_beside"])
def test_resolved_it_is_not_done_again(graph: str, is_async: bool, cluster: Cluster) -> None:
    worker = _parked(cluster, graph, is_async)
    worker.ask("decide", "resolve", "receipt 12")
    log = worker.ask("call", "thread", _INPUT)["log"]
    assert log == ["prepared", "receipt 12", "finalized"]
    assert cluster.effects.count("charge") == 1
    assert worker.ask("letters") == []


@_MODES
def test_retried_it_is_done_again_with_the_same_key(is_async: bool, cluster: Cluster) -> None:
    worker = _parked(cluster, "undecided", is_async)
    worker.ask("decide", "retry")
    assert worker.ask("call", "thread", _INPUT)["log"][1] == "receipt for order 7"
    charges = [e for e in cluster.effects.events() if e["point"] == "charge"]
    assert len(charges) == 2
    assert len({charge["key"] for charge in charges}) == 1
    assert charges[0]["token"] < charges[1]["token"]


def test_dropped_it_is_an_error_of_its_step(cluster: Cluster) -> None:
    worker = _parked(cluster)
    worker.ask("decide", "drop")
    with pytest.raises(EffectDroppedError, match="dropped by me: I looked"):
        worker.ask("call", "thread", _INPUT)
    assert cluster.effects.count("charge") == 1


def test_a_step_may_go_on_without_what_was_dropped(cluster: Cluster) -> None:
    worker = _parked(cluster, "dropped")
    worker.ask("decide", "drop")
    assert worker.ask("call", "thread", _INPUT)["log"] == ["dropped by me: I looked"]


def test_a_decision_needs_no_worker(cluster: Cluster) -> None:
    _parked(cluster).kill()
    letters = _letters(cluster)
    (letter,) = letters.list()
    letters.resolve(letter.id, "receipt 12", who="me", why="it is on the bill")
    assert letters.list() == []
    assert cluster.worker().ask("call", "thread", _INPUT)["log"][1] == "receipt 12"


def test_the_events_tell_that_a_run_is_parked(cluster: Cluster) -> None:
    worker = _parked(cluster, is_async=True)
    last = worker.ask("events", "thread", _INPUT)[-1]
    (letter,) = worker.ask("letters")
    assert last.pop("id").startswith(cluster.run_of("thread"))
    assert last == {
        "type": "workflow_parked",
        "workflow_id": cluster.run_of("thread"),
        "replayed": False,
        "step": "charge",
        "effect": "charge",
        "idempotency_key": letter.idempotency_key,
    }


def test_the_command_line(cluster: Cluster) -> None:
    worker = _parked(cluster)
    (listed,) = json.loads(_cli("list", "--json"))
    assert listed["effect"] == "charge"
    assert listed["id"] in _cli("list", "--runner", "acceptance")
    assert _cli("list", "--runner", "another") == ""
    shown = json.loads(_cli("show", listed["id"], "--json"))
    assert shown["record"]["execution_status"] == "unknown"
    assert datetime.fromisoformat(shown["time"]).utcoffset() == timedelta(0)
    lines = _cli("show", listed["id"]).splitlines()
    run, step = cluster.run_of("thread"), shown["step_id"]
    assert lines[:7] == [
        f"letter            {listed['id']}",
        "kind              effect",
        f"run_id            {run}",
        "runner            acceptance",
        "step              charge",
        f"step_id           {step}",
        f"attempts          {shown['attempts']}",
    ]
    since = f"{datetime.fromisoformat(shown['time']):%Y-%m-%d %H:%M:%S}Z"
    assert lines[7:9] == [f"since             {since}", f"error             {shown['error']}"]
    assert lines[9] == f"  effect charge  unknown    attempt 1  {shown['idempotency_key']}"
    assert [line.split()[1] for line in lines if line.startswith("  decide")] == [
        "resolve",
        "retry",
        "reconcile",
        "drop",
    ]
    assert f"{since}  charge: charge" in _cli("list")
    said = _cli(
        "resolve", listed["id"], "--value", '"receipt 12"', "--who", "me", "--why", "I looked"
    )
    assert said == f"{listed['id']} is resolved. Decided by me: I looked\n"
    assert worker.ask("call", "thread", _INPUT)["log"][1] == "receipt 12"
    assert json.loads(_cli("list", "--json")) == []
    run = cluster.run_of("thread")
    (decided,) = json.loads(_cli("decisions", run, "--json"))
    assert [decided[name] for name in ("letter", "what", "who")] == [listed["id"], "resolve", "me"]
    (line,) = _cli("decisions", run).splitlines()
    assert line.endswith(f"Z  {listed['id']} is resolved. Decided by me: I looked")
    result = CliRunner().invoke(app, ["dead-letter", "drop", listed["id"], "--why", "late"])
    assert result.exit_code == 3
    assert "There is no dead letter" in result.output
    result = CliRunner().invoke(app, ["dead-letter", "resolve", "x", "--value", "{", "--why", "w"])
    assert "it is not JSON" in result.output


def test_decisions_are_recorded(cluster: Cluster) -> None:
    worker = _parked(cluster)
    letter = _letters(cluster).list()[0]
    with pytest.raises(ValueError, match="say who decides"):
        _letters(cluster).drop(letter.id, who="", why="")
    worker.ask("decide", "resolve", "receipt 12")
    worker.ask("call", "thread", _INPUT)
    with pytest.raises(DeadLetterNotFoundError):
        _letters(cluster).retry(letter.id, who="me", why="again")


@pytest.mark.parametrize("decision", [["retry"], ["resolve", "receipt 12"], ["drop"]])
def test_nothing_of_it_is_left_once_it_is_purged(decision: list[Any], cluster: Cluster) -> None:
    worker = _parked(cluster, "dropped")
    worker.ask("decide", *decision)
    worker.ask("call", "thread", _INPUT)
    run = cluster.run_of("thread")
    until(lambda: worker.ask("status", run) == "COMPLETED")
    worker.ask("purge", run)
    assert cluster.stored(run) == {}


def test_a_letter_goes_with_its_purged_run(cluster: Cluster) -> None:
    worker = _parked(cluster)
    run = cluster.run_of("thread")
    worker.ask("cancel", run)
    worker.ask("purge", run)
    assert _letters(cluster).list() == []
    assert cluster.stored(run) == {}


# -- reconciling again


def _unknown(letter: DeadLetter, cluster: Cluster, reason: str, advice: str) -> str:
    return (
        f"Whether the effect 'charge' of step 'charge' in run '{cluster.run_of('thread')}' has "
        f"happened is not known (idempotency key {letter.idempotency_key}): {reason}. So it was "
        "not repeated and the run does not go on. Look at the system it goes to. A run that is "
        "parked with it is listed by `dapr-runners dead-letter list`: resolve the letter if it has "
        "happened, retry it if it has not, drop it to give it up, and call again. " + advice
    )


_LOST = "its worker was lost, or its lease ran out"
_AGAIN = "Or have its reconcile function asked once more: `dapr-runners dead-letter reconcile`."


@pytest.mark.parametrize(
    ("graph", "reason", "advice"),
    [
        ("plain", _LOST, "An @effect with reconcile= finds out by itself."),
        ("undecided", f"{_LOST}; reconcile answered STILL_UNKNOWN", _AGAIN),
        ("reconciled", f"{_LOST}; reconcile raised InjectedError('lookup')", _AGAIN),
    ],
)
def test_a_parked_run_says_why(graph: str, reason: str, advice: str, cluster: Cluster) -> None:
    cluster.effects.arm("lookup", *(["raise"] * 4 if graph == "reconciled" else []))
    worker = _parked(cluster, graph)
    (letter,) = _letters(cluster).list()
    assert letter.error == reason
    with pytest.raises(EffectUnknownError) as told:
        worker.ask("call", "thread", _INPUT)
    assert str(told.value) == _unknown(letter, cluster, reason, advice)


def test_all_effects_of_a_run_are_reconciled_again(cluster: Cluster) -> None:
    cluster.effects.arm("lookup", *["raise"] * 4)
    worker = _parked(cluster, "reconciled")
    (letter,) = _letters(cluster).list()
    result = CliRunner().invoke(app, ["reconcile", letter.run_id, "--why", "it is back"])
    assert result.exit_code == 0
    assert f"{letter.id} is to be reconciled again. Decided by " in result.output
    assert worker.ask("call", "thread", _INPUT)["log"][1] == "receipt for order 7"
    result = CliRunner().invoke(app, ["reconcile", letter.run_id, "--why", "once more"])
    assert (result.exit_code, result.exception.__class__) == (3, SystemExit)


@_MODES
def test_reconcile_is_asked_again(is_async: bool, cluster: Cluster) -> None:
    cluster.effects.arm("lookup", *["raise"] * 4)
    worker = _parked(cluster, "reconciled", is_async)
    (letter,) = _letters(cluster).list()
    said = _cli("reconcile", letter.id, "--who", "me", "--why", "it is back")
    assert said == f"{letter.id} is to be reconciled again. Decided by me: it is back\n"
    log = worker.ask("call", "thread", _INPUT)["log"]
    assert log == ["prepared", "receipt for order 7", "finalized"]
    assert cluster.effects.count("charge") == 1
    assert cluster.effects.count("lookup") == 5
    assert _letters(cluster).list() == []


def test_what_is_still_unknown_is_parked_again(cluster: Cluster) -> None:
    worker = _parked(cluster, "undecided")
    (first,) = _letters(cluster).list()
    worker.ask("decide", "reconcile")
    with pytest.raises(EffectUnknownError):
        worker.ask("call", "thread", _INPUT)
    (second,) = _letters(cluster).list()
    assert (second.id, second.error) == (first.id, first.error)
    assert second.time > first.time
    assert cluster.effects.count("lookup") == 2
    worker.ask("decide", "resolve", "receipt 12")
    assert worker.ask("call", "thread", _INPUT)["log"][1] == "receipt 12"
    assert cluster.effects.count("charge") == 1


def test_what_has_no_reconcile_cannot_be_asked(cluster: Cluster) -> None:
    worker = _parked(cluster)
    (letter,) = _letters(cluster).list()
    with pytest.raises(DecisionRefusedError, match="no reconcile function that could be asked"):
        worker.ask("decide", "reconcile")
    assert _letters(cluster).list() == [letter]


# -- runs that have failed


def _poisoned(cluster: Cluster, graph: str, is_async: bool) -> WorkerProcess:
    cluster.use(f"effect_graphs:{graph}", is_async)
    cluster.effects.arm("fragile", "die", "die", "die")
    caller = cluster.caller()
    caller.send("call", "thread", _INPUT)
    for _ in range(3):
        cluster.worker().wait_dead()
    worker = cluster.worker()
    with pytest.raises(PoisonStepError):
        caller.reply()
    return worker


def _exhausted(cluster: Cluster, graph: str, is_async: bool, **options: Any) -> WorkerProcess:
    retry = StepRetry(max_attempts=2, first_interval=0.01, retry_on=[InjectedError])
    cluster.use(f"effect_graphs:{graph}", is_async, retry=retry, **options)
    cluster.effects.arm("fragile", "raise", "raise")
    worker = cluster.worker()
    with pytest.raises(InjectedError):
        worker.ask("call", "thread", _INPUT)
    return worker


_FAILURES = pytest.mark.parametrize(
    ("fail", "kind", "attempts"), [(_poisoned, "poison", 3), (_exhausted, "retries", 2)]
)
_GRAPHS = pytest.mark.parametrize(
    ("graph", "step"), [("alone", "fragile"), ("with_router", "sub/fragile")]
)


@_MODES
@_GRAPHS
@_FAILURES
def test_a_failed_step_is_started_again(
    fail: Any, kind: str, attempts: int, graph: str, step: str, is_async: bool, cluster: Cluster
) -> None:
    worker = fail(cluster, graph, is_async)
    (letter,) = worker.ask("letters")
    assert (letter.kind, letter.attempts) == (kind, attempts)
    # What is beside a step that kills is lost with it as often.
    assert letter.step in ({step, "sub/beside"} if kind == "poison" else {step})
    worker.ask("decide", "retry")
    assert worker.ask("call", "thread", _INPUT)["log"] == ["fragile", "after"]
    assert cluster.effects.count("fragile") == attempts + 1
    assert worker.ask("letters") == []


@pytest.mark.parametrize(
    ("fail", "graph", "is_async", "attempts"),
    [
        (_poisoned, "alone", False, 3),
        (_exhausted, "alone", True, 2),
        (_exhausted, "with_router", False, 2),
        (_exhausted, "with_router", True, 2),
    ],
)
def test_a_failed_step_is_given_its_result(
    fail: Any, graph: str, is_async: bool, attempts: int, cluster: Cluster
) -> None:
    worker = fail(cluster, graph, is_async)
    worker.ask("decide", "resolve", {"log": ["given"]})
    assert worker.ask("call", "thread", _INPUT)["log"] == ["given", "after"]
    assert cluster.effects.count("fragile") == attempts
    decided = _letters(cluster).decisions(cluster.run_of("thread"))
    assert [each.what for each in decided] == ["resolve"]
    assert cluster.stored("/resolved/") == {}


def test_a_failed_step_is_given_its_result_in_the_fast_lane(cluster: Cluster) -> None:
    worker = _exhausted(cluster, "alone", False, steps_per_activity=10)
    worker.ask("decide", "resolve", {"log": ["given"]})
    assert worker.ask("call", "thread", _INPUT)["log"] == ["given", "after"]
    assert cluster.effects.count("fragile") == 2


def test_a_failed_run_stays_failed_once_it_is_dropped(cluster: Cluster) -> None:
    worker = _exhausted(cluster, "alone", False)
    worker.ask("decide", "drop")
    assert worker.ask("letters") == []
    run = cluster.run_of("thread")
    (decided,) = _letters(cluster).decisions(run)
    assert decided.what == "drop"
    assert decided.who
    assert decided.why
    until(lambda: worker.ask("status", run) == "COMPLETED")
    worker.ask("purge", run)
    assert cluster.stored(run) == {}


@pytest.mark.parametrize("decision", [["retry"], ["resolve", "--value", '{"log": ["given"]}']])
def test_without_a_worker_a_failed_run_stays_as_it_is(
    decision: list[str], cluster: Cluster
) -> None:
    worker = _exhausted(cluster, "alone", False)
    (letter,) = _letters(cluster).list()
    until(lambda: worker.ask("status", letter.run_id) == "COMPLETED")  # a moment after its record
    worker.kill()
    until_nobody_works(cluster.sidecar)
    kept = cluster.stored(letter.run_id)
    result = CliRunner().invoke(
        app, ["dead-letter", decision[0], letter.id, *decision[1:], "--why", "I looked"]
    )
    assert (result.exit_code, result.exception.__class__) == (6, SystemExit)
    assert "No process works for the app" in result.output
    assert cluster.stored(letter.run_id) == kept
    assert _letters(cluster).list() == [letter]
    worker = cluster.worker()
    worker.ask("decide", "retry")
    assert worker.ask("call", "thread", _INPUT)["log"] == ["fragile", "after"]


@pytest.mark.parametrize("decision", [["retry"], ["resolve", "receipt 12"]])
def test_an_effect_of_a_cancelled_run_can_only_be_dropped(
    decision: list[Any], cluster: Cluster
) -> None:
    worker = _parked(cluster)
    (letter,) = _letters(cluster).list()
    worker.ask("cancel", letter.run_id)
    with pytest.raises(RunEndedError) as told:
        worker.ask("decide", *decision)
    assert str(told.value) == (
        f"The run '{letter.run_id}' has ended, so nothing waits for this decision on the dead "
        f"letter '{letter.id}': nothing was changed, and nothing is carried out. Drop the letter. "
        "If the run has failed and is to go on, retry the letter of its failed step first."
    )
    assert _letters(cluster).list() == [letter]
    record = _letters(cluster).get(letter.id).record
    assert record is not None
    assert record.decisions == ()
    worker.ask("decide", "drop")
    assert _letters(cluster).list() == []


@pytest.mark.parametrize("decision", ["retry", "resolve", "drop"])
def test_a_decision_without_a_reason_is_refused(decision: str, cluster: Cluster) -> None:
    _parked(cluster)
    (letter,) = _letters(cluster).list()
    result = CliRunner().invoke(app, ["dead-letter", decision, letter.id, "--why", ""])
    assert (result.exit_code, result.exception.__class__) == (5, SystemExit)
    assert result.output.strip() == (
        f"The decision on the dead letter '{letter.id}' was refused, and nothing was changed: say "
        "who decides, and why."
    )
    assert _letters(cluster).list() == [letter]
