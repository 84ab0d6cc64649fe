"""Metrics of runs, steps, attempts and effects."""

import threading
import time
from typing import Any

import pytest
import traced_crews as crews
import traced_graphs as graphs
from crewai import Agent, Crew, Task
from exported import Instrumented, until
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.effects import effect
from dapr_runners.telemetry import UnsupportedTracerProviderError, instrument


def counted(told: Instrumented, metric: str, *attributes: str) -> dict[tuple[Any, ...], float]:
    """The values of a counter, or how many a histogram has, by ``attributes``."""
    found: dict[tuple[Any, ...], float] = {}
    for point in told.points(metric):
        by = tuple(point.attributes.get(name) for name in attributes)
        found[by] = found.get(by, 0) + getattr(point, "value", getattr(point, "count", 0))
    return found


STEP = "dapr_runners.step.name"


def test_runs_and_steps(told: Instrumented, make_runner: Any) -> None:
    def failing(state: graphs.State) -> graphs.State:
        raise ValueError("no")

    good = make_runner(graphs.chain(one=graphs.one, last=graphs.last_sync), name="good")
    bad = make_runner(graphs.chain(one=graphs.one, failing=failing), name="bad")
    good.invoke({"x": 1})
    good.invoke({"x": 1})
    with pytest.raises(ValueError, match="no"):
        bad.invoke({"x": 1})
    by = ("dapr_runners.runner", "dapr_runners.run.status")
    assert counted(told, "dapr_runners.runs.started", by[0]) == {("good",): 2, ("bad",): 1}
    ends = {("good", "completed"): 2, ("bad", "failed"): 1}
    # A caller may have the result a little before.
    until(lambda: counted(told, "dapr_runners.run.duration", *by) == ends)
    assert counted(told, "dapr_runners.runs.ended", *by) == ends
    steps = {
        ("good", "one", None): 2,
        ("good", "last", None): 2,
        ("bad", "one", None): 1,
        ("bad", "failing", "ValueError"): 1,
    }
    assert counted(told, "dapr_runners.steps", by[0], STEP, "error.type") == steps
    assert counted(told, "dapr_runners.step.duration", by[0], STEP, "error.type") == steps
    assert counted(told, "dapr_runners.attempt.duration", STEP) == {
        ("one",): 3,
        ("last",): 2,
        ("failing",): 1,
    }
    assert sum(counted(told, "dapr_runners.step.queue_time").values()) == 6
    assert sum(counted(told, "dapr_runners.snapshot.size").values()) == 6  # a plan for each step
    assert all(point.min > 100 for point in told.points("dapr_runners.snapshot.size"))


def test_retries(told: Instrumented, make_runner: Any) -> None:
    failures: list[Exception] = [ConnectionError("no"), ConnectionError("no")]

    def failing(state: graphs.State) -> graphs.State:
        if failures:
            raise failures.pop()
        return {"log": ["done"]}

    retry = graphs.StepRetry(max_attempts=3, first_interval=0.05, backoff=2)
    make_runner(graphs.chain(failing=failing), name="again", retry=retry).invoke({"x": 1})
    told.ended("again")
    assert counted(told, "dapr_runners.step.retries", STEP) == {("failing",): 2}
    assert counted(told, "dapr_runners.attempt.duration", STEP, "error.type") == {
        ("failing", "ConnectionError"): 2,
        ("failing", None): 1,
    }
    (waited,) = told.points("dapr_runners.step.wait_time")
    assert (waited.count, round(waited.sum, 3)) == (2, 0.15)
    assert waited.attributes["dapr_runners.waits_for"] == "retry"


def test_effects_whose_outcome_is_not_known(told: Instrumented, make_runner: Any) -> None:
    @effect(name="charge", on_unknown="fail")
    def charge() -> None:
        raise SystemExit(1)

    def charging(state: graphs.State) -> graphs.State:
        charge()
        return {}

    with pytest.raises(SystemExit):
        make_runner(graphs.chain(charging=charging)).invoke({"x": 1})
    assert counted(told, "dapr_runners.effects.unknown", "dapr_runners.effect") == {("charge",): 1}


@pytest.mark.filterwarnings("ignore")
def test_a_question_to_a_person(told: Instrumented, make_runner: Any) -> None:
    def asking(_: Any) -> Crew:
        agent = Agent(role="r", goal="g", backstory="b", llm=crews.ScriptedLLM(crews.answering))
        task = Task(description="d", expected_output="e", agent=agent, human_input=True)
        return Crew(agents=[agent], tasks=[task])

    runner = make_runner(asking, DaprWorkflowCrewRunner, name="asks")
    running = threading.Thread(target=runner.kickoff, args=({},), kwargs={"session_id": "s"})
    running.start()
    while not (asked := _pending(runner)):
        time.sleep(0.01)
    runner.answer("s", asked[0].key, "")
    runner.answer("s", asked[0].key, "")
    running.join(60)
    spans = told.ended("asks")
    waited = spans.one("step human")
    assert spans.parent_of(waited).name == "invoke_agent asks"
    assert waited.attributes["dapr_runners.waits_for"] == "person"
    (point,) = told.points("dapr_runners.step.wait_time")
    assert (point.count, point.attributes[STEP]) == (1, "human")


def _pending(runner: Any) -> list[Any]:
    from dapr_runners.engine import RunNotFoundError

    try:
        return runner.pending("s")
    except RunNotFoundError:
        return []


def test_a_cancelled_run(told: Instrumented, make_runner: Any) -> None:
    entered, leave = threading.Event(), threading.Event()

    def waiting(state: graphs.State) -> graphs.State:
        entered.set()
        leave.wait(60)
        return {}

    runner = make_runner(graphs.chain(waiting=waiting), name="cancelled")
    thread = {"configurable": {"thread_id": "t"}}

    def call() -> None:
        from dapr_runners.engine import RunCancelledError

        with pytest.raises(RunCancelledError):
            runner.invoke({"x": 1}, thread)

    running = threading.Thread(target=call)
    running.start()
    assert entered.wait(60)
    runner.cancel(thread_id="t")
    runner.cancel(thread_id="t")
    leave.set()
    running.join(60)
    run = told.ended("cancelled").one("invoke_agent cancelled")
    assert run.attributes["dapr_runners.run.status"] == "cancelled"
    assert not run.is_error


def test_providers_that_cannot_be_used() -> None:
    class Other(TracerProvider):
        def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
            return object()

    with pytest.raises(UnsupportedTracerProviderError, match="a Other, makes no tracers"):
        instrument(Other())


def test_only_metrics(make_runner: Any) -> None:
    from dapr_runners.telemetry import uninstrument

    reader = InMemoryMetricReader()
    meters = MeterProvider([reader])
    instrument(None, meters)  # no global tracer provider is set
    try:
        make_runner(graphs.chain(one=graphs.one)).invoke({"x": 1})
        data = reader.get_metrics_data()
    finally:
        uninstrument()
        meters.shutdown()
    assert data is not None
    assert "dapr_runners.steps" in str(data)
