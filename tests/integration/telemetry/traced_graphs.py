"""Graphs that processes of a test trace, each for itself."""

import operator
import os
import signal
import threading
from pathlib import Path
from typing import Annotated, Any

from exported import FileExporter, provider_to
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from typing_extensions import TypedDict

from dapr_runners.engine import process_worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry
from dapr_runners.state import StateStore, sidecar_address
from dapr_runners.telemetry import instrument

SPANS, HOLD = "TRACED_SPANS", "TRACED_HOLD"
"""Environment variables: the file that spans are exported to, and the one that holds nodes while it
is there."""


class State(TypedDict, total=False):
    x: int
    log: Annotated[list[str], operator.add]


def own_span(name: str) -> Any:
    """As a user's instrumentation makes them."""
    return trace.get_tracer("the user's").start_as_current_span(name)


def one(state: State) -> State:
    with own_span("in one"):
        return {"log": ["one"]}


def held(state: State) -> State:
    with own_span("in held"):
        pass
    hold = Path(os.environ[HOLD])
    if hold.exists():
        hold.with_suffix(".entered").touch()
        threading.Event().wait()
    return {"log": ["held"]}


async def last(state: State) -> State:
    with own_span("in last"):
        return {"log": ["last"]}


def last_sync(state: State) -> State:
    with own_span("in last"):
        return {"log": ["last"]}


def dying(state: State) -> State:
    """Takes its worker down at once, the first time."""
    with own_span("in dying"):
        pass
    hold = Path(os.environ[HOLD])
    if hold.exists():
        hold.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["dying"]}


def beside(state: State) -> State:
    with own_span("in beside"):
        return {"log": ["beside"]}


class Model(BaseChatModel):
    """Answers "a secret", or asks for a tool if it has one."""

    tools: list[Any] = []  # noqa: RUF012 - a field of pydantic's

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "mistralai", "ls_model_name": "scripted-1", "ls_temperature": 0.5}

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return Model(tools=list(tools))

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if not messages:
            raise ValueError("a secret")
        asks = self.tools and not any(message.type == "tool" for message in messages)
        call = {"name": "look", "args": {"what": "a secret"}, "id": "call-1"}
        answer = AIMessage(
            "a secret",
            tool_calls=[call] if asks else [],
            usage_metadata={"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
            response_metadata={"model_name": "scripted-1b", "id": "r-1", "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def asking(state: State) -> State:
    """Asks a model, and then does as the file says."""
    said = str(Model().invoke("tell me a secret").content)
    held(state)
    return {"log": [said]}


async def asking_async(state: State) -> State:
    return {"log": [str((await Model().ainvoke("tell me a secret")).content)]}


def asking_graph() -> Any:
    return chain(asking=asking, last=last_sync)


def inner() -> Any:
    builder = StateGraph(State)
    builder.add_node("a", one)
    builder.add_node("b", beside)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return builder.compile()


def chain(**nodes: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile()


def fan_out() -> Any:
    builder = StateGraph(State)
    builder.add_node("one", one)
    builder.add_node("beside", beside)
    builder.add_node("last", last_sync)
    for name in ("one", "beside"):
        builder.add_edge(START, name)
        builder.add_edge(name, "last")
    return builder.compile()


def held_graph() -> Any:
    return chain(one=one, held=held, last=last_sync)


def quick() -> Any:
    return chain(one=one, dying=dying)


def make(name: str, graph: Any, **options: Any) -> DaprWorkflowGraphRunner:
    address = sidecar_address()
    return DaprWorkflowGraphRunner(
        graph,
        name=name,
        store=StateStore(address=address),
        worker=process_worker(address),
        **options,
    )


def traced() -> list[DaprWorkflowGraphRunner]:
    """For worker processes."""
    provider = provider_to(FileExporter(Path(os.environ[SPANS])))
    trace.set_tracer_provider(provider)
    instrument()
    graphs = {"held": held_graph(), "quick": quick(), "asking": asking_graph()}
    return [make(name, graph) for name, graph in graphs.items()]


def traced_over_otlp() -> list[DaprWorkflowGraphRunner]:
    """For worker processes that export as the usual variables say."""
    trace.set_tracer_provider(provider_to(OTLPSpanExporter(insecure=True)))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(insecure=True))
    metrics.set_meter_provider(MeterProvider([reader]))
    instrument()
    return [make("asking", asking_graph())]


def retry() -> StepRetry:
    return StepRetry(max_attempts=2, first_interval=0.01)
