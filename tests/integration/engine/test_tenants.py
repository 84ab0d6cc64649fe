"""Runs of tenants: under the tenant, and out of reach for everybody else."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from place import Place
from run_helpers import Gate, MakeRunner, Node, State, chain, collect, eventually

from dapr_runners import current_step
from dapr_runners.effects import DeadLetterNotFoundError, DeadLetters
from dapr_runners.engine import (
    InvalidRunIdError,
    InvalidTenantError,
    RunNotFoundError,
    TenantMismatchError,
    tenant_mark,
)
from dapr_runners.langgraph import DaprSaver, StepRetry, UnsupportedGraphError

pytestmark = pytest.mark.timeout(240)
THREAD: Any = {"configurable": {"thread_id": "order-1"}}
ACME = tenant_mark("acme")


def tell_tenant(state: State) -> dict[str, Any]:
    step = current_step()
    assert step is not None
    return {"log": [step.tenant_id]}


def started(events: list[dict[str, Any]]) -> str:
    assert events[0]["type"] == "workflow_started"
    return events[0]["workflow_id"]


def test_a_thread_is_another_for_each_tenant(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(tell_tenant))
    for tenant in ("acme", "umbrella"):
        runner.for_tenant(tenant).invoke({"log": ["in"]}, THREAD)
    runner.invoke({"log": ["in"]}, THREAD)
    logs = [
        on.get_state(THREAD).values["log"]
        for on in (runner.for_tenant("acme"), runner.for_tenant("umbrella"), runner)
    ]
    assert logs == [["in", "acme"], ["in", "umbrella"], ["in", ""]]
    assert runner.for_tenant("other").get_state(THREAD).values == {}


def test_a_config_may_name_the_tenant(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(tell_tenant))
    config: Any = {"configurable": {"thread_id": "order-1", "tenant_id": "acme"}}
    runner.invoke({"log": []}, config)
    assert runner.get_state(config).values["log"] == ["acme"]
    assert next(runner.get_state_history(config)).values["log"] == ["acme"]
    assert runner.for_tenant("acme").get_state(THREAD).values["log"] == ["acme"]
    assert runner.get_state(THREAD).values == {}


def test_what_with_config_binds_counts_for_every_call(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(tell_tenant))
    bound = runner.durable.with_config(
        {"configurable": {"thread_id": "order-1", "tenant_id": "acme"}}
    )
    bound.invoke({"log": ["in"]})
    assert bound.get_state({}).values["log"] == ["in", "acme"]
    assert runner.for_tenant("acme").get_state(THREAD).values["log"] == ["in", "acme"]
    assert runner.get_state(THREAD).values == {}
    with pytest.raises(TenantMismatchError):
        runner.for_tenant("umbrella").durable.with_config(
            {"configurable": {"tenant_id": "acme"}}
        ).invoke({"log": []}, THREAD)


async def test_with_config_counts_for_asynchronous_calls(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(tell_tenant))
    bound = runner.durable.with_config({"configurable": {"tenant_id": "acme"}})
    await bound.ainvoke({"log": ["in"]}, THREAD)
    assert runner.for_tenant("acme").get_state(THREAD).values["log"] == ["in", "acme"]


def test_callbacks_of_with_config_are_called_once(make_runner: MakeRunner) -> None:
    class Heard(BaseCallbackHandler):
        def __init__(self) -> None:
            self.runs = 0

        def on_chain_start(self, *args: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
            self.runs += parent_run_id is None

    of_graph, of_call = Heard(), Heard()
    graph = chain(tell_tenant).with_config({"callbacks": [of_graph]})
    runner = make_runner(graph)
    runner.durable.with_config({"callbacks": [of_call]}).invoke({"log": []}, THREAD)
    assert (of_graph.runs, of_call.runs) == (1, 1)


def test_a_config_from_outside_is_not_taken_for_that_of_a_node(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(tell_tenant))
    runner.invoke({"log": ["in"]}, THREAD)
    sent = {"thread_id": "order-1", "tenant_id": "acme", "__pregel_task_id": "x"}
    assert runner.get_state({"configurable": sent}).values == {}
    runner.invoke({"log": ["in"]}, {"configurable": sent})
    assert runner.for_tenant("acme").get_state(THREAD).values["log"] == ["in", "acme"]


def test_two_tenants_in_one_call_are_refused(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    config: Any = {"configurable": {"thread_id": "order-1", "tenant_id": "umbrella"}}
    acme = runner.for_tenant("acme")
    for call in (
        lambda: acme.invoke({"x": 1}, config),
        lambda: acme.get_state(config),
        lambda: acme.for_tenant("umbrella"),
    ):
        with pytest.raises(TenantMismatchError) as refused:
            call()
        assert (refused.value.tenant, refused.value.named) == ("acme", "umbrella")
    with pytest.raises(InvalidTenantError):
        runner.for_tenant("")
    with pytest.raises(InvalidTenantError):
        runner.invoke({"x": 1}, {"configurable": {"tenant_id": ""}})
    assert node.executions == 0


async def test_a_run_of_another_is_as_one_that_is_not(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    acme = runner.for_tenant("acme")
    events = acme.run_async({"x": 1}, thread_id="order-1")
    run = (await anext(events))["workflow_id"]
    absent = run[:-1] + "9"
    assert run.startswith(ACME)
    for on in (runner, runner.for_tenant("umbrella")):
        assert on.get_workflow_status(run) is None
        told: list[str] = []
        for id in (run, absent):
            for call in (on.cancel, on.purge):
                with pytest.raises(RunNotFoundError) as refused:
                    call(id)
                told.append(str(refused.value).replace(id, "ID"))
            with pytest.raises(InvalidRunIdError) as no_id:
                await collect(on.run_async({"x": 1}, run_id=id))
            told.append(str(no_id.value).replace(id, "ID"))
        assert told[:3] == told[3:]
        for call in (on.cancel, on.purge):
            with pytest.raises(RunNotFoundError):
                call(thread_id="order-1")
    assert acme.get_workflow_status(run) is not None
    gate.open()
    rest = await collect(events)
    assert rest[-1]["type"] == "workflow_completed"
    acme.purge(run)
    assert acme.get_workflow_status(run) is None


async def test_a_name_of_a_run_is_the_tenants_own(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    runs = {
        tenant: started(
            await collect(runner.for_tenant(tenant).run_async({"x": 1}, run_id="order-7"))
        )
        for tenant in ("acme", "umbrella")
    }
    assert runs["acme"] == f"{ACME}order-7"
    assert node.executions == 2
    acme = runner.for_tenant("acme")
    for name in ("order-7", runs["acme"]):
        again = await collect(acme.run_async({"x": 1}, run_id=name))
        assert started(again) == runs["acme"]
        status = acme.get_workflow_status(name)
        assert status is not None and status["workflow_id"] == runs["acme"]
    assert node.executions == 2
    assert runner.get_workflow_status("order-7") is None
    with pytest.raises(InvalidRunIdError, match="Use 1 to 41 letters"):
        await collect(acme.run_async({"x": 1}, run_id="x" * 42))


def test_dead_letters_are_the_tenants_own(make_runner: MakeRunner) -> None:
    def fails(state: State) -> dict[str, Any]:
        raise ConnectionError("secret of acme")

    runner = make_runner(chain(fails), retry=StepRetry(max_attempts=2, first_interval=0.01))
    acme = runner.for_tenant("acme")
    with pytest.raises(ConnectionError):
        acme.invoke({"x": 1}, THREAD)
    (letter,) = acme.dead_letters().list()
    assert letter.id.startswith(ACME)
    for on in (runner, runner.for_tenant("umbrella")):
        others = on.dead_letters()
        assert others.list() == others.list(run_id=letter.run_id) == []
        assert others.decisions(letter.run_id) == []
        for id in (letter.id, letter.id + "x"):
            with pytest.raises(DeadLetterNotFoundError):
                others.get(id)
            with pytest.raises(DeadLetterNotFoundError):
                others.drop(id, who="eve", why="to see")
    port = runner.store.address.rpartition(":")[2]
    every = DeadLetters(port=port, runner=runner.name, all_tenants=True)
    assert [one.id for one in every.list()] == [letter.id]
    acme.dead_letters().drop(letter.id, who="ann", why="it is over")
    assert [one.what for one in acme.dead_letters().decisions(letter.run_id)] == ["drop"]


def test_a_failed_run_of_a_tenant_is_started_again(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    is_broken = [True]

    def fails(state: State) -> dict[str, Any]:
        if is_broken[0]:
            raise ConnectionError("not yet")
        return {"log": ["done"]}

    runner = make_runner(chain(fails), retry=StepRetry(max_attempts=2, first_interval=0.01))
    acme = runner.for_tenant("acme")
    with pytest.raises(ConnectionError):
        acme.invoke({"log": []}, THREAD)
    (letter,) = acme.dead_letters().list()
    is_broken[0] = False
    wait_for_end(letter.run_id)  # its workflow ends a moment after it is recorded
    acme.dead_letters().retry(letter.id, who="ann", why="it works now")
    assert acme.invoke({"log": []}, THREAD)["log"] == ["done"]


def test_an_interrupt_is_answered_by_its_tenant_alone(make_runner: MakeRunner) -> None:
    def ask(state: State) -> dict[str, Any]:
        return {"log": [interrupt("may I?")]}

    runner = make_runner(chain(ask))
    acme = runner.for_tenant("acme")
    acme.invoke({"log": []}, THREAD)
    assert acme.get_state(THREAD).interrupts[0].value == "may I?"
    for on in (runner, runner.for_tenant("umbrella")):
        assert on.get_state(THREAD).interrupts == ()
    assert acme.invoke(Command(resume="yes"), THREAD)["log"] == ["yes"]


async def test_another_process_goes_on_with_a_tenants_run(
    make_runner: MakeRunner, build_runner: MakeRunner
) -> None:
    first, gate = Node("first"), Gate()
    before = make_runner(chain(first, gate))
    acme = before.for_tenant("acme")
    events = acme.run_async({"x": 1, "log": []}, thread_id="order-1")
    await anext(events)
    await eventually(lambda: gate.executions == 1)
    gate.open()
    await collect(events)
    before.shutdown()
    after = make_runner(chain(first, gate), name=before.name)
    assert after.for_tenant("acme").get_state(THREAD).values["log"] == ["first", "gate"]
    assert after.get_state(THREAD).values == {}


def test_a_saver_of_the_graph_keeps_tenants_apart_or_is_refused(
    make_runner: MakeRunner, place: Place
) -> None:
    saver = DaprSaver(make_runner(chain(Node("other"))).store, key_prefix="own")
    runner = make_runner(chain(tell_tenant, checkpointer=saver))
    runner.for_tenant("acme").invoke({"log": []}, THREAD)
    assert saver.get_tuple(THREAD) is None
    assert list(saver.list(None)) == []
    kept = saver.for_tenant("acme").get_tuple(THREAD)
    assert kept is not None and kept.checkpoint["channel_values"]["log"] == ["acme"]
    saver.for_tenant("umbrella").delete_thread("order-1")
    assert saver.for_tenant("acme").get_tuple(THREAD) is not None

    mixing = make_runner(chain(tell_tenant, checkpointer=InMemorySaver()))
    with pytest.raises(UnsupportedGraphError, match="where one could read another's"):
        mixing.for_tenant("acme")
    mixing.invoke({"log": []}, THREAD)


async def test_all_keys_of_a_tenants_run_are_under_the_tenant(
    make_runner: MakeRunner, place: Place
) -> None:
    runner = make_runner(chain(Node("node")))
    acme = runner.for_tenant("acme")
    runner.invoke({"log": []}, THREAD)  # what is the runner's own is there now
    await eventually(lambda: any("dr/processes" in key for key in place.stored()))
    before = place.stored().keys()
    acme.invoke({"log": ["x" * 100_000]}, THREAD)
    new = place.stored().keys() - before
    assert new and all(f"/{ACME}" in key for key in new)
