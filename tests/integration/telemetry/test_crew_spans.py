"""Spans of crews: a step for each call of a model or a tool, by GenAI's conventions."""

from pathlib import Path
from typing import Any

import pytest
import traced_crews as crews
import traced_graphs as graphs
from exported import FileExporter, Instrumented, Spans, provider_to, spans_in, until_ended

from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.telemetry import instrument, uninstrument
from engines import Sidecar
from worker_processes import WorkerProcess

pytestmark = pytest.mark.filterwarnings("ignore")

TREE = [
    "attempt llm < step llm < invoke_agent crew",
    "attempt llm < step llm < invoke_agent crew",
    "attempt llm < step llm < invoke_agent crew",
    "attempt search < step search < invoke_agent crew",
    "chat scripted-1 < attempt llm < step llm < invoke_agent crew",
    "chat scripted-1 < attempt llm < step llm < invoke_agent crew",
    "chat scripted-1 < attempt llm < step llm < invoke_agent crew",
    "execute_tool search < attempt search < step search < invoke_agent crew",
    "in guardrail < invoke_agent crew",
    "in model < attempt llm < step llm < invoke_agent crew",
    "in model < attempt llm < step llm < invoke_agent crew",
    "in model < attempt llm < step llm < invoke_agent crew",
    "in search < attempt search < step search < invoke_agent crew",
    "invoke_agent crew",
    "step llm < invoke_agent crew",
    "step llm < invoke_agent crew",
    "step llm < invoke_agent crew",
    "step search < invoke_agent crew",
]


def below_caller(exported: Spans) -> list[str]:
    span = exported.one("caller")
    return Spans([one for one in exported.all if one != span]).tree(span.span_id)


def test_a_crew_is_one_trace(
    told: Instrumented, make_runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        graphs, "own_span", told.provider.get_tracer("the user's").start_as_current_span
    )
    runner = make_runner(crews.crew, DaprWorkflowCrewRunner, name="crew")
    with told.provider.get_tracer("the caller's").start_as_current_span("caller"):
        runner.kickoff({}, session_id="s")
    spans = told.ended("crew")
    assert below_caller(spans) == TREE
    chat = spans.named("chat scripted-1")[0].attributes
    assert chat == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.system": "azure.ai.openai",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.agent.name": "first",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
    }
    tool = spans.one("execute_tool search").attributes
    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert tool["gen_ai.tool.name"] == "search"
    assert "secret" not in str(spans)
    assert spans.one("step search").attributes["dapr_runners.step.id"].endswith("!tool.0")
    usage = {
        point.attributes["gen_ai.token.type"]: (point.count, point.sum)
        for point in told.points("gen_ai.client.token.usage")
    }
    assert usage == {"input": (3, 30), "output": (3, 6)}


def test_content_is_captured_on_demand(told: Instrumented, make_runner: Any) -> None:
    instrument(told.provider, capture_content=True)
    runner = make_runner(crews.crew, DaprWorkflowCrewRunner, name="open")
    runner.kickoff({})
    spans = told.ended("open")
    tool = spans.one("execute_tool search").attributes
    assert tool["gen_ai.tool.call.arguments"] == '{"query": "a secret"}'
    assert tool["gen_ai.tool.call.result"] == "found a secret"
    chats = [span.attributes for span in spans.named("chat scripted-1")]
    assert any("search" in chat["gen_ai.input.messages"] for chat in chats)
    assert any("a secret" in chat["gen_ai.output.messages"] for chat in chats)


@pytest.mark.timeout(300)
def test_a_cold_process_tells_nothing_twice(sidecar: Sidecar, tmp_path: Path) -> None:
    entered, hold = tmp_path / "hold.entered", tmp_path / "hold"
    hold.touch()
    provider = provider_to(FileExporter(tmp_path / "spans"))
    instrument(provider)
    variables = {
        **sidecar.env(),
        graphs.SPANS: str(tmp_path / "spans"),
        graphs.HOLD: str(hold),
    }

    def worker() -> WorkerProcess:
        folder = Path(__file__).parent
        return WorkerProcess(folder, "traced_crews:traced", variables=variables)

    runner = DaprWorkflowCrewRunner(crews.crew, name="crew", port=sidecar.grpc_port)
    runner.connect()
    with worker() as first:
        with provider.get_tracer("the caller's").start_as_current_span("caller"):
            start = runner.run_async({}, session_id="s")
            step_until(start, entered.exists)
        first.kill()
    hold.unlink()
    with worker():
        runner.resume("s")
        spans = until_ended(lambda: spans_in(tmp_path / "spans"), "crew")
    runner.shutdown()
    runner.store.close()
    uninstrument()
    tree = below_caller(spans)
    lost = "attempt search < step search < invoke_agent crew"
    again = "in search < attempt search < step search < invoke_agent crew"
    assert again in tree
    assert sorted([*TREE, lost, again]) == tree


def step_until(events: Any, is_there: Any) -> None:
    """Start a run, and listen no longer once something is so."""
    import asyncio

    async def listen() -> None:
        await anext(events)
        while not is_there():  # noqa: ASYNC110 - what is so is in another process
            await asyncio.sleep(0.01)
        await events.aclose()

    asyncio.run(listen())
