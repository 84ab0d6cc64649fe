"""Starting, connecting and stopping runners."""

import pytest
from langgraph.graph import StateGraph
from run_helpers import MakeRunner, Node, State, chain, collect

from dapr_runners.engine import DuplicateRunnerError, InvalidOptionError, RunnerNotStartedError
from dapr_runners.langgraph import UnsupportedGraphError


def test_a_runner_that_is_not_started(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    assert not runner.is_running
    with pytest.raises(RunnerNotStartedError) as refused:
        runner.invoke({"x": 1})
    assert str(refused.value) == (
        f"The runner {runner.name!r} is not started, so nobody would work on a run. Call start() "
        "on it first, or connect() if other processes do the work."
    )


async def test_a_runner_that_is_not_started_async(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    with pytest.raises(RunnerNotStartedError):
        await runner.ainvoke({"x": 1})
    with pytest.raises(RunnerNotStartedError):
        await collect(runner.run_async({"x": 1}))


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("multitask_strategy", "queue", "'reject', 'enqueue' or 'interrupt'"),
        ("retention", 0, "seconds, more than 0"),
        ("retention", "30d", "seconds, more than 0"),
        ("step_timeout", -1.0, "seconds, more than 0"),
    ],
)
def test_an_option_that_means_nothing(
    build_runner: MakeRunner, option: str, value: object, wanted: str
) -> None:
    with pytest.raises(InvalidOptionError, match=f"{option}={value!r}: it has to be {wanted}"):
        build_runner(chain(Node("node")), **{option: value})


def test_two_runners_of_one_name(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    with pytest.raises(DuplicateRunnerError) as refused:
        build_runner(chain(Node("node")), name=runner.name)
    assert str(refused.value) == (
        f"A runner named {runner.name!r} already exists in this process, and recorded runs find "
        "their runner by its name. Give one of the two another name."
    )


def test_starting_and_stopping_twice(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    runner.start()
    assert runner.is_running
    assert runner.invoke({"x": 1})["log"] == ["node"]
    runner.shutdown()
    runner.shutdown()
    assert not runner.is_running
    with pytest.raises(RunnerNotStartedError):
        runner.invoke({"x": 1})


def test_starting_again_after_a_stop(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    runner.invoke({"x": 1}, thread_id="t")
    runner.shutdown()
    runner.start()
    assert runner.invoke({"x": 2}, thread_id="t") == {"x": 2, "log": ["node", "node"]}


def test_a_stopped_runner_frees_its_name(make_runner: MakeRunner) -> None:
    """While another runner keeps the process's stream open, too."""
    other = make_runner(chain(Node("other")))
    before = make_runner(chain(Node("before")))
    before.shutdown()
    after = make_runner(chain(Node("before"), Node("after")), name=before.name)
    before.shutdown()
    assert after.invoke({"x": 1}) == {"x": 1, "log": ["before", "after"]}
    assert other.invoke({"x": 1}) == {"x": 1, "log": ["other"]}


def test_runners_started_one_after_another(make_runner: MakeRunner) -> None:
    runners = []
    for number in range(3):
        runners.append(make_runner(chain(Node(f"node {number}"))))
        for each, runner in enumerate(runners):
            assert runner.invoke({"x": 1})["log"] == [f"node {each}"]
    runners[0].shutdown()
    assert runners[1].invoke({"x": 1})["log"] == ["node 1"]


def test_what_is_not_a_compiled_graph(build_runner: MakeRunner) -> None:
    with pytest.raises(UnsupportedGraphError) as refused:
        build_runner(StateGraph(State), name="builder")
    assert str(refused.value) == (
        "The runner 'builder' cannot run this graph exactly: it is a StateGraph, not a compiled "
        "graph. Nothing was started. Pass what StateGraph.compile() or @entrypoint returns."
    )


def test_the_graph_is_not_changed(make_runner: MakeRunner) -> None:
    graph = chain(Node("node"))
    before = dict(vars(graph))
    runner = make_runner(graph)
    runner.invoke({"x": 1}, thread_id="t")
    assert vars(graph) == before
    assert graph.invoke({"x": 1}) == {"x": 1, "log": ["node"]}


def test_a_with_block(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    with pytest.raises(ZeroDivisionError), runner as entered:
        assert entered is runner
        assert runner.is_running
        assert runner.invoke({"x": 1})["log"] == ["node"]
        _ = 1 // 0
    assert not runner.is_running
