"""A graph's own checkpointer that fails: the run fails with it, as without the runner."""

import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from place import Place
from run_helpers import MakeRunner

from dapr_runners.engine import Worker

pytestmark = pytest.mark.timeout(240)
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class FailingSaver(InMemorySaver):
    """Fails the first ``times`` puts of ``step``, or writes of ``node``."""

    def __init__(self, step: int | None = None, node: str = "", times: int = 1) -> None:
        super().__init__()
        self.step, self.node, self.times = step, node, times

    def _fail(self) -> None:
        if self.times > 0:
            self.times -= 1
            raise ConnectionError("the database is away")

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["step"] == self.step:
            self._fail()
        return super().put(config, checkpoint, metadata, new_versions)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if ("log", [self.node]) in writes:
            self._fail()
        super().put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)


def graph(saver: Any, ran: list[str], parallel: bool = False) -> Any:
    """``a -> b -> c``, or ``a -> (b, c)``."""

    def node(name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            ran.append(name)
            return {"log": [name]}

        return run

    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, node(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a" if parallel else "b", "c")
    return builder.compile(checkpointer=saver)


SAVERS = [
    pytest.param({"step": -1}, id="the first checkpoint"),
    pytest.param({"step": 1}, id="a checkpoint in between"),
    pytest.param({"step": 3}, id="the last checkpoint"),
]


@pytest.mark.parametrize("failing", SAVERS)
@pytest.mark.parametrize("steps", [1, 10], ids=["each", "fast lane"])
async def test_its_exception_fails_the_run_and_the_thread_goes_on(
    make_runner: MakeRunner, failing: dict[str, Any], steps: int
) -> None:
    outcomes: list[Any] = []
    for durable in (False, True):
        ran: list[str] = []
        compiled = graph(FailingSaver(**failing), ran)
        used: Any = make_runner(compiled, steps_per_activity=steps) if durable else compiled
        with pytest.raises(ConnectionError, match="the database is away"):
            used.invoke({"log": ["in"]}, CONFIG, durability="sync")
        before = used.get_state(CONFIG)
        again = {"log": ["in"]} if failing == {"step": -1} else None
        result = await used.ainvoke(again, CONFIG, durability="sync")
        outcomes.append((before.values, before.next, result, used.get_state(CONFIG).values, ran))
    assert outcomes[1] == outcomes[0]


def test_a_nodes_writes_that_are_not_saved_fail_its_run(make_runner: MakeRunner) -> None:
    """At once, where LangGraph tells of it when the run is over."""
    ran: list[str] = []
    runner = make_runner(graph(FailingSaver(node="b"), ran))
    with pytest.raises(ConnectionError, match="the database is away"):
        runner.invoke({"log": []}, CONFIG)
    assert runner.get_state(CONFIG).next == ("b",)
    assert runner.invoke(None, CONFIG)["log"] == ["a", "b", "c"]
    assert ran.count("a") == 1


def test_a_parallel_nodes_writes_fail_its_run(make_runner: MakeRunner) -> None:
    ran: list[str] = []
    runner = make_runner(graph(FailingSaver(node="b"), ran, parallel=True))
    with pytest.raises(ConnectionError, match="the database is away"):
        runner.invoke({"log": []}, CONFIG)
    assert sorted(runner.invoke(None, CONFIG)["log"]) == ["a", "b", "c"]
    assert ran.count("a") == 1
    assert ran.count("b") == 2


def test_a_caller_in_another_process_gets_the_exception(
    make_runner: MakeRunner, build_runner: MakeRunner, place: Place
) -> None:
    compiled = graph(FailingSaver(step=1), [])
    runner = make_runner(compiled)
    worker = Worker(f"127.0.0.1:{place.grpc_port}")  # as another process has it
    caller = build_runner(compiled, name=runner.name, worker=worker)
    caller.connect()
    with pytest.raises(ConnectionError, match="the database is away"):
        caller.invoke({"log": []}, CONFIG)


def test_what_is_recorded_is_sent_again_where_that_is_wanted(make_runner: MakeRunner) -> None:
    ran: list[str] = []
    saver = FailingSaver(step=1, times=2)
    runner = make_runner(graph(saver, ran), on_saver_error="retry")
    assert runner.invoke({"log": []}, CONFIG)["log"] == ["a", "b", "c"]
    assert ran == ["a", "b", "c"]
    steps = [state.metadata["step"] for state in runner.get_state_history(CONFIG)]
    assert steps == [3, 2, 1, 0, -1]


def test_writes_of_a_parallel_node_are_saved_while_the_others_run(make_runner: MakeRunner) -> None:
    go_on = threading.Event()

    def slow(state: State) -> dict[str, Any]:
        assert go_on.wait(60)
        return {"log": ["slow"]}

    builder = StateGraph(State)
    builder.add_node("quick", lambda state: {"log": ["quick"]})
    builder.add_node("slow", slow)
    builder.add_edge(START, "quick")
    builder.add_edge(START, "slow")
    runner = make_runner(builder.compile(checkpointer=InMemorySaver()))
    stream = runner.stream({"log": []}, CONFIG, stream_mode="updates")
    assert next(stream) == {"quick": {"log": ["quick"]}}
    state = runner.get_state(CONFIG)
    assert (state.values, state.next) == ({"log": ["quick"]}, ("slow",))
    go_on.set()
    assert list(stream) == [{"slow": {"log": ["slow"]}}]
    assert sorted(runner.get_state(CONFIG).values["log"]) == ["quick", "slow"]
