"""Tasks as plain data: one given with a call is built anew wherever its run goes on."""

from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai.errors import UnsupportedCrewError
from dapr_runners.state import Codec

_GIVEN = frozenset(("id", "agent", "tools", "context", "fingerprint", "security_config"))


def freeze_task(task: Any, runner: str, codec: Codec) -> bytes:
    """The fields that were set of ``task``, whose agent is the runner's."""
    context: Any = task.context
    if isinstance(context, list) and context:
        raise UnsupportedCrewError(
            runner=runner,
            reason="the task takes the results of other tasks (context)",
            remedy="Run them together: pass a crew to DaprWorkflowCrewRunner.",
        )
    own: list[Any] = task.tools or []
    others: list[Any] = getattr(task.agent, "tools", None) or []
    if own and [tool.name for tool in own] != [tool.name for tool in others]:
        raise UnsupportedCrewError(
            runner=runner,
            reason="the task brings tools of its own",
            remedy="Give them to the agent, or pass a crew to DaprWorkflowCrewRunner.",
        )
    fields = {name: getattr(task, name) for name in task.model_fields_set - _GIVEN}
    return codec.encode({k: v for k, v in fields.items() if v is not None}, "task")


def thaw_task(data: bytes, codec: Codec, agent: Any) -> Any:
    """The reverse of :func:`freeze_task`, for ``agent``."""
    return crew.Task(**codec.decode(data, "the task"), agent=agent)
