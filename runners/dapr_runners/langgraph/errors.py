"""What can go wrong between this package and LangGraph."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class UnsupportedLangGraphError(DaprRunnersError):
    """LangGraph {version} lacks something the runner needs ({symbol}), so it could not run a graph
    exactly. Install a tested version: pip install 'dapr-runners[langgraph]'."""

    version: str
    symbol: str


@dataclass(eq=False)
class UnsupportedGraphError(DaprRunnersError):
    """The runner {runner!r} cannot run this graph exactly: {reason}. Nothing was started.
    {remedy}"""

    runner: str
    reason: str
    remedy: str


@dataclass(eq=False)
class GraphChangedError(DaprRunnersError):
    """The run {run_id!r} is in the middle of node {node!r}, which the graph of runner {runner!r} no
    longer has, so the run cannot go on with this program. Start a program whose graph has the
    node, or cancel the run."""

    run_id: str
    runner: str
    node: str


@dataclass(eq=False)
class StreamModeNotRecordedError(DaprRunnersError):
    """The run {run_id!r} was started with {recorded}, so what {wanted} would show was not
    recorded. Call with the arguments it was started with to attach to it (run_async needs the
    modes 'updates' and 'values' beside those it shows)."""

    run_id: str
    recorded: str
    wanted: str
