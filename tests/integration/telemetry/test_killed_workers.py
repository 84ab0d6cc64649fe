"""One trace, although the workers of a run are killed and others go on."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import traced_graphs as graphs
from exported import FileExporter, Spans, provider_to, spans_in, until_ended
from opentelemetry.sdk.trace import TracerProvider

from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.telemetry import instrument, uninstrument
from engines import Sidecar
from worker_processes import WorkerProcess

FOLDER = Path(__file__).parent
HELD = graphs.held_graph()
THREAD = {"configurable": {"thread_id": "t"}}


def worker(sidecar: Sidecar, folder: Path) -> WorkerProcess:
    """A process that works and exports to a file."""
    variables = {
        **sidecar.env(),
        graphs.SPANS: str(folder / "spans"),
        graphs.HOLD: str(folder / "hold"),
    }
    return WorkerProcess(FOLDER, "traced_graphs:traced", variables=variables)


@pytest.fixture
def tracing(tmp_path: Path, enabled: None) -> Iterator[TracerProvider]:
    """This process exports to the same file."""
    provider = provider_to(FileExporter(tmp_path / "spans"))
    instrument(provider)
    yield provider
    uninstrument()


@contextmanager
def caller(sidecar: Sidecar, name: str, graph: Any) -> Iterator[DaprWorkflowGraphRunner]:
    runner = DaprWorkflowGraphRunner(graph, name=name, port=sidecar.grpc_port)
    runner.connect()
    yield runner
    runner.shutdown()
    runner.store.close()


def leave_at(runner: DaprWorkflowGraphRunner, is_there: Callable[[], bool]) -> None:
    """Start a run, and listen no longer once something is so."""

    async def listen() -> None:
        chunks = runner.astream({"x": 1}, THREAD)
        first = asyncio.create_task(anext(chunks))
        while not is_there():  # noqa: ASYNC110 - what is so is in another process
            await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.wait([first])

    asyncio.run(listen())


def collect(runner: DaprWorkflowGraphRunner) -> None:
    """Wait for the end of the run."""

    async def listen() -> None:
        async for _ in runner.astream({"x": 1}, THREAD):
            pass

    asyncio.run(listen())


def below_caller(path: Path) -> tuple[Spans, list[str]]:
    exported = spans_in(path)
    span = exported.one("caller")
    spans = Spans([one for one in exported.all if one != span])
    return spans, spans.tree(span.span_id)


def kill_while_held(
    sidecar: Sidecar, folder: Path, tracing: TracerProvider, name: str, graph: Any
) -> None:
    """Start a run below the caller's span, and kill its worker in the node that is held."""
    (folder / "hold").touch()
    with (
        worker(sidecar, folder) as first,
        tracing.get_tracer("the caller's").start_as_current_span("caller"),
        caller(sidecar, name, graph) as runner,
    ):
        leave_at(runner, (folder / "hold.entered").exists)
        first.kill()
    (folder / "hold").unlink()


def gone_on(sidecar: Sidecar, folder: Path, name: str, graph: Any) -> tuple[Spans, list[str]]:
    """The spans below the caller's when another worker has ended the run."""
    with worker(sidecar, folder), caller(sidecar, name, graph) as runner:
        collect(runner)
        until_ended(lambda: spans_in(folder / "spans"), runner.name)
    return below_caller(folder / "spans")


@pytest.mark.timeout(300)
def test_killed_in_the_middle_of_a_node(
    sidecar: Sidecar, tmp_path: Path, tracing: TracerProvider
) -> None:
    kill_while_held(sidecar, tmp_path, tracing, "held", HELD)
    spans, tree = gone_on(sidecar, tmp_path, "held", HELD)
    assert tree == [
        "attempt held < step held < invoke_agent held",
        "attempt held < step held < invoke_agent held",
        "attempt last < step last < invoke_agent held",
        "attempt one < step one < invoke_agent held",
        "in held < attempt held < step held < invoke_agent held",
        "in held < attempt held < step held < invoke_agent held",
        "in last < attempt last < step last < invoke_agent held",
        "in one < attempt one < step one < invoke_agent held",
        "invoke_agent held",
        "step held < invoke_agent held",
        "step last < invoke_agent held",
        "step one < invoke_agent held",
    ]
    lost, made = sorted(spans.named("attempt held"), key=lambda span: span.began)
    assert lost.is_error
    assert lost.attributes["error.type"] == "lost"
    assert not made.is_error
    numbers = [one.attributes["dapr_runners.attempt"] for one in (lost, made)]
    assert numbers == [1, 2]
    # Each is above what was made in its process.
    assert {span.parent_id for span in spans.named("in held")} == {lost.span_id, made.span_id}
    step = spans.one("step held")
    assert step.attributes["dapr_runners.attempts"] == 2
    assert step.began <= lost.began <= made.began <= made.ended <= step.ended


@pytest.mark.timeout(300)
def test_killed_before_the_attempt_was_marked(
    sidecar: Sidecar, tmp_path: Path, tracing: TracerProvider
) -> None:
    (tmp_path / "hold").touch()
    with (
        worker(sidecar, tmp_path) as first,
        tracing.get_tracer("the caller's").start_as_current_span("caller"),
        caller(sidecar, "quick", graphs.quick()) as runner,
    ):
        leave_at(runner, lambda: not (tmp_path / "hold").exists())
        first.kill()
    spans, tree = gone_on(sidecar, tmp_path, "quick", graphs.quick())
    assert [line.split(" < ")[0] for line in tree] == [
        "attempt dying", "attempt dying", "attempt one", "in dying", "in dying", "in one",
        "invoke_agent quick", "step dying", "step one",
    ]  # fmt: skip
    attempts = {span.span_id for span in spans.named("attempt dying")}
    assert {span.parent_id for span in spans.named("in dying")} == attempts


@pytest.mark.timeout(300)
def test_a_caller_that_traces_nothing(sidecar: Sidecar, tmp_path: Path) -> None:
    with (
        worker(sidecar, tmp_path),
        caller(sidecar, "quick", graphs.quick()) as runner,
    ):
        runner.invoke({"x": 1})
        spans = until_ended(lambda: spans_in(tmp_path / "spans"), "quick")
    assert len(spans.tree("")) == 1 + 2 * 3
    assert spans.one("invoke_agent quick").began <= min(span.began for span in spans.all)


@pytest.mark.timeout(300)
def test_killed_twice(sidecar: Sidecar, tmp_path: Path, tracing: TracerProvider) -> None:
    entered = tmp_path / "hold.entered"
    (tmp_path / "hold").touch()
    for is_first in (True, False):
        entered.unlink(missing_ok=True)  # before there is a worker, which may enter at once
        with worker(sidecar, tmp_path) as one, caller(sidecar, "held", HELD) as runner:
            if is_first:
                with tracing.get_tracer("the caller's").start_as_current_span("caller"):
                    leave_at(runner, entered.exists)
            else:
                leave_at(runner, entered.exists)
            one.kill()
    (tmp_path / "hold").unlink()
    spans, tree = gone_on(sidecar, tmp_path, "held", HELD)
    assert len(tree) == 1 + 3 + (1 + 3 + 1) + (1 + 3 + 1)
    attempts = sorted(spans.named("attempt held"), key=lambda span: span.began)
    assert [one.is_error for one in attempts] == [True, True, False]
    assert [one.attributes["dapr_runners.attempt"] for one in attempts] == [1, 2, 3]
    made = sorted(spans.named("in held"), key=lambda span: span.began)
    assert [span.parent_id for span in made] == [span.span_id for span in attempts]


@pytest.mark.timeout(300)
def test_a_recorded_answer_is_told_once(
    sidecar: Sidecar, tmp_path: Path, tracing: TracerProvider
) -> None:
    graph = graphs.asking_graph()
    kill_while_held(sidecar, tmp_path, tracing, "asking", graph)
    spans, tree = gone_on(sidecar, tmp_path, "asking", graph)
    assert tree == [
        "attempt asking < step asking < invoke_agent asking",
        "attempt asking < step asking < invoke_agent asking",
        "attempt last < step last < invoke_agent asking",
        "chat scripted-1 < attempt asking < step asking < invoke_agent asking",
        "in held < attempt asking < step asking < invoke_agent asking",
        "in held < attempt asking < step asking < invoke_agent asking",
        "in last < attempt last < step last < invoke_agent asking",
        "invoke_agent asking",
        "step asking < invoke_agent asking",
        "step last < invoke_agent asking",
    ]
    assert spans.parent_of(spans.one("chat scripted-1")).is_error
