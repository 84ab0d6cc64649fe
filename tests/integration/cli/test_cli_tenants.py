"""The commands see the runs of all tenants, or of one, and encrypted ones if they have the key."""

import asyncio
import base64
import json
from typing import Any

import pytest
from cli_helpers import run, run_json, run_lines, until
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typer.testing import CliRunner
from typing_extensions import TypedDict

from dapr_runners.cli._app import app
from dapr_runners.engine import tenant_mark
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry
from engines import Sidecar

pytestmark = pytest.mark.timeout(240)
ACME = tenant_mark("acme")


class State(TypedDict, total=False):
    x: str


def _ask(state: State) -> State:
    return {"x": interrupt("may I?")}


def _fail(state: State) -> State:
    raise ConnectionError("no answer")


def _runner(sidecar: Sidecar, node: Any) -> DaprWorkflowGraphRunner:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return DaprWorkflowGraphRunner(
        builder.compile(),
        name=node.__name__.strip("_"),
        port=sidecar.grpc_port,
        retry=StepRetry(max_attempts=2, first_interval=0.01),
    )


async def _run(runner: DaprWorkflowGraphRunner, run_id: str, thread: str) -> str:
    events = runner.run_async({}, run_id=run_id, thread_id=thread)
    told = [event async for event in events]
    return told[0]["workflow_id"]


def test_of_one_tenant_alone(sidecar: Sidecar) -> None:
    with _runner(sidecar, _ask) as runner:
        bare = asyncio.run(_run(runner, "order-1", "t"))
        theirs = asyncio.run(_run(runner.for_tenant("acme"), "order-1", "t"))
        assert (bare, theirs) == ("order-1", f"{ACME}order-1")

        def listed(*options: str) -> dict[str, Any]:
            return {each["run_id"]: each["tenant"] for each in run_json("list", *options)}

        assert listed() == {bare: None, theirs: "acme"}
        assert listed("--tenant", "acme") == {theirs: "acme"}
        assert listed("--tenant", "umbrella") == {}
        for name in (theirs, "order-1"):
            assert run_json("show", name, "--tenant", "acme")["run_id"] == theirs
            events = run_lines("events", name, "--tenant", "acme")
            assert {each["workflow_id"] for each in events} == {theirs}
        foreign = ["order-1", theirs, f"{theirs}9"]
        refused = {
            run(*command, name, "--tenant", "umbrella", code=3).replace(name, "RUN")
            for name in foreign
            for command in (["show"], ["events"], ["cancel"], ["purge", "--yes"])
        }
        assert len({text.replace(tenant_mark("umbrella"), "") for text in refused}) == 1
        assert "cannot name a tenant" in run("list", "--tenant", "", code=2)
        key = run_json("show", theirs)["questions"][0]["key"]
        run("answer", theirs, key, '"no"', "--tenant", "umbrella", code=3)
        run("answer", "order-1", key, '"yes"', "--tenant", "acme")
        config: Any = {"configurable": {"thread_id": "t"}}
        acme = runner.for_tenant("acme")
        until(lambda: acme.get_state(config).values == {"x": "yes"})
        assert runner.get_state(config).values == {}


def test_dead_letters_of_one_tenant_alone(sidecar: Sidecar) -> None:
    with _runner(sidecar, _fail) as runner:
        with pytest.raises(ConnectionError):
            runner.for_tenant("acme").invoke({}, thread_id="t")
        (letter,) = run_json("dead-letter", "list")
        assert run_json("dead-letter", "list", "--tenant", "acme") == [letter]
        assert run_json("dead-letter", "list", "--tenant", "umbrella") == []
        decide = ["dead-letter", "drop", letter["id"], "--why", "over"]
        run(*decide, "--tenant", "umbrella", code=3)
        run(*decide, "--tenant", "acme")


def test_encrypted_runs(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "DAPR_RUNNERS_ENCRYPTION_KEYS"
    monkeypatch.setenv(variable, "one:" + base64.b64encode(b"1" * 32).decode())
    with _runner(sidecar, _ask) as runner:
        asyncio.run(_run(runner, "order-1", "t"))
        assert [each["run_id"] for each in run_json("list")] == ["order-1"]
        assert "may I?" in run("show", "order-1")
        for keys, told in (
            (None, "is encrypted with the key 'one', which this process does not have"),
            ("one:" + base64.b64encode(b"2" * 32).decode(), "is encrypted with another key"),
            ("nonsense", "cannot be used"),
        ):
            if keys is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.delenv(variable, raising=False)
            if keys:
                monkeypatch.setenv(variable, keys)
            assert told in " ".join(run("show", "order-1", code=1).split())


def test_a_run_that_cannot_be_read_hides_no_other(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "DAPR_RUNNERS_ENCRYPTION_KEYS"
    one, two = (f"{id}:" + base64.b64encode(id.encode() * 8).decode() for id in ("1234", "5678"))
    for keys, run_id in ((one, "order-1"), (f"{two},{one}", "order-2")):
        monkeypatch.setenv(variable, keys)
        with _runner(sidecar, _ask) as runner:
            asyncio.run(_run(runner, run_id, f"thread of {run_id}"))
    monkeypatch.setenv(variable, two)
    for command in ("list", "questions"):
        result = CliRunner().invoke(app, [command, "--json"])
        assert result.exit_code == 1
        assert [each["run_id"] for each in json.loads(result.stdout)] == ["order-2"]
        assert "run order-1 cannot be read: The value of" in result.stderr
        assert "order-1" not in result.stdout
    result = CliRunner().invoke(app, ["purge", "--older", "0s", "--yes"])
    assert (result.exit_code, result.stdout) == (1, "order-2 is purged.\n")
    assert "run order-1 cannot be read: The value of" in result.stderr


def test_a_letter_that_cannot_be_read_hides_no_other(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "DAPR_RUNNERS_ENCRYPTION_KEYS"
    one, two = (f"{id}:" + base64.b64encode(id.encode() * 8).decode() for id in ("1234", "5678"))
    letters: list[str] = []
    for keys, thread in ((one, "first"), (f"{two},{one}", "second")):
        monkeypatch.setenv(variable, keys)
        with _runner(sidecar, _fail) as runner, pytest.raises(ConnectionError):
            runner.invoke({}, thread_id=thread)
        letters.append(run_json("dead-letter", "list")[-1]["id"])
    monkeypatch.setenv(variable, two)
    result = CliRunner().invoke(app, ["dead-letter", "list", "--json"])
    assert result.exit_code == 1
    assert [each["id"] for each in json.loads(result.stdout)] == letters[1:]
    assert f"letter {letters[0]} cannot be read: The value of" in result.stderr
