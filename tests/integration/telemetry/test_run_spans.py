"""Spans of runs, steps and attempts of graphs, in one process."""

from typing import Any

import pytest
import traced_graphs as graphs
from exported import Instrumented, Spans
from opentelemetry import trace
from opentelemetry.trace import format_span_id


@pytest.fixture(autouse=True)
def users(monkeypatch: pytest.MonkeyPatch, told: Instrumented) -> None:
    """The user's own instrumentation exports to the same place."""
    monkeypatch.setattr(
        graphs, "own_span", told.provider.get_tracer("the user's").start_as_current_span
    )


def run_below_caller(told: Instrumented, runner: Any, config: Any = None) -> list[str]:
    """The spans that a run leads to, as a tree below the span of its caller."""
    with told.provider.get_tracer("the caller's").start_as_current_span("caller") as span:
        runner.invoke({"x": 1}, config)
    exported = told.ended(runner.name)
    caller = exported.one("caller")
    assert caller.span_id == format_span_id(span.get_span_context().span_id)
    return Spans([one for one in exported.all if one != caller]).tree(caller.span_id)


def test_a_run_is_one_trace_below_its_caller(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.chain(one=graphs.one, last=graphs.last_sync), name="chain")
    tree = run_below_caller(told, runner)
    assert tree == [
        "attempt last < step last < invoke_agent chain",
        "attempt one < step one < invoke_agent chain",
        "in last < attempt last < step last < invoke_agent chain",
        "in one < attempt one < step one < invoke_agent chain",
        "invoke_agent chain",
        "step last < invoke_agent chain",
        "step one < invoke_agent chain",
    ]
    run = told.spans.one("invoke_agent chain")
    assert run.attributes["dapr_runners.run.status"] == "completed"
    assert run.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert not run.is_error
    assert all(run.began <= span.began and span.ended for span in told.spans.named("step one"))


async def test_asynchronous_nodes(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.chain(last=graphs.last), name="async")
    with told.provider.get_tracer("the caller's").start_as_current_span("caller"):
        await runner.ainvoke({"x": 1})
    exported = told.ended("async")
    caller = exported.one("caller")
    tree = Spans([one for one in exported.all if one != caller]).tree(caller.span_id)
    assert tree[1] == "in last < attempt last < step last < invoke_agent async"
    assert len(tree) == 4


def test_parallel_steps_and_a_commit(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.fan_out(), name="fan")
    tree = run_below_caller(told, runner)
    assert [line.split(" < ")[0] for line in tree] == [
        "attempt beside", "attempt last", "attempt one", "in beside", "in last", "in one",
        "invoke_agent fan", "step beside", "step last", "step one",
    ]  # fmt: skip


def test_a_subgraph_is_a_step_around_its_steps(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.chain(sub=graphs.inner(), last=graphs.last_sync), name="nested")
    tree = run_below_caller(told, runner)
    assert "in one < attempt sub/a < step sub/a < step sub < invoke_agent nested" in tree
    assert "step sub < invoke_agent nested" in tree
    assert len(tree) == 1 + 3 + 3 * 3 + 1 - 3


def test_each_attempt_of_a_retried_step(told: Instrumented, make_runner: Any) -> None:
    errors = iter([ConnectionError("a secret"), None])

    def failing(state: graphs.State) -> graphs.State:
        if (error := next(errors)) is not None:
            raise error
        return {"log": ["done"]}

    runner = make_runner(graphs.chain(failing=failing), name="retried", retry=graphs.retry())
    tree = run_below_caller(told, runner)
    assert tree == [
        "attempt failing < step failing < invoke_agent retried",
        "attempt failing < step failing < invoke_agent retried",
        "invoke_agent retried",
        "step failing < invoke_agent retried",
    ]
    first, second = told.spans.named("attempt failing")
    assert (first.is_error, second.is_error) == (True, False)
    assert [one.attributes["dapr_runners.attempt"] for one in (first, second)] == [1, 2]
    step = told.spans.one("step failing")
    assert (step.is_error, step.attributes["dapr_runners.attempts"]) == (False, 2)
    assert "secret" not in str(told.spans)


def test_a_failed_run(told: Instrumented, make_runner: Any) -> None:
    def failing(state: graphs.State) -> graphs.State:
        raise ValueError("a secret")

    runner = make_runner(graphs.chain(failing=failing), name="failed")
    with pytest.raises(ValueError, match="a secret"):
        runner.invoke({"x": 1})
    spans = told.ended("failed")
    for name in ("attempt failing", "step failing", "invoke_agent failed"):
        span = spans.one(name)
        assert span.is_error
        assert span.attributes["error.type"] == "ValueError"
    assert "secret" not in str(told.spans)
    assert told.spans.one("invoke_agent failed").parent_id == ""


def test_a_run_that_is_continued_as_new(told: Instrumented, make_runner: Any) -> None:
    nodes = {f"n{number}": graphs.one for number in range(60)}
    runner = make_runner(graphs.chain(**nodes), name="long")
    tree = run_below_caller(told, runner, {"recursion_limit": 100})
    assert len(tree) == 1 + 3 * 60


def test_the_fast_lane(told: Instrumented, make_runner: Any) -> None:
    graph = graphs.chain(one=graphs.one, two=graphs.one, last=graphs.last_sync)
    runner = make_runner(graph, name="fast", steps_per_activity=10)
    tree = run_below_caller(told, runner)
    assert len(tree) == 1 + 3 * 3


def test_a_thread_is_a_conversation(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.chain(one=graphs.one), name="talk")
    runner.invoke({"x": 1}, {"configurable": {"thread_id": "t-1"}})
    assert told.ended("talk").one("invoke_agent talk").attributes["gen_ai.conversation.id"] == "t-1"


def test_a_caller_that_is_not_sampled(told: Instrumented, make_runner: Any) -> None:
    runner = make_runner(graphs.chain(one=graphs.one), name="unsampled")
    caller = trace.NonRecordingSpan(
        trace.SpanContext(0xA1, 0xB2, is_remote=True, trace_flags=trace.TraceFlags(0))
    )
    with trace.use_span(caller):
        runner.invoke({"x": 1})
    assert told.spans.all == []


def test_nothing_is_told_when_it_is_off(told: Instrumented, make_runner: Any) -> None:
    from dapr_runners.telemetry import uninstrument

    uninstrument()
    make_runner(graphs.chain(two=graphs.last_sync)).invoke({"x": 1})
    assert [span.name for span in told.spans.all] == ["in last"]
