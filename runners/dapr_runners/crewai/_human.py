"""Questions to people as durable waits: they hold no worker, and are never asked twice.

A question is answered with :meth:`answer` of a runner. An own provider of the user's (of a Flow, or
set with CrewAI's ``set_provider``) is asked as it is, in a step.
"""

from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._asks import Ask
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Place, current_place

WAITS = "human"
"""Kind of the steps that are no activity but wait for an answer."""


def install() -> None:
    replace(crew.SyncHumanInputProvider, "_prompt_input", _prompt_input)
    replace(crew.SyncHumanInputProvider, "_prompt_input_async", _prompt_input_async)
    replace(crew.Flow, "_resolve_input_provider", _input_provider)
    for module, prompt in (
        (crew.flow_runtime, "Feedback on a flow's method"),
        (crew.flow_providers, "Feedback on a flow's method"),
        (crew.tool_hooks, "Approval of a tool call"),
        (crew.llm_hooks, "Approval of an LLM call"),
    ):
        vars(module)["input"] = _asking(prompt)


def question(place: Place, prompt: str, **about: Any) -> Ask:
    """A question with ``prompt``; ``about`` is plain data that pending() shows."""

    def nobody() -> None:
        raise AssertionError("a question is answered, not performed")

    return Ask(
        kind=WAITS,
        name="human",
        head=prompt,
        messages=[],
        execute=nobody,
        asked={"prompt": prompt, **{k: v for k, v in about.items() if v is not None}},
    )


def _asking(prompt: str) -> Any:
    def ask(text: object = "") -> str:
        place = current_place()
        if place is None:
            return input(text)
        shown = str(text).strip() or prompt
        return str(place.driver.step(place, question(place, shown)))

    return ask


def _about_crew(crew_of: Any) -> dict[str, Any]:
    place = current_place()
    return {"crew": getattr(crew_of, "name", None), "task": _task_of(crew_of, place)}


def _task_of(crew_of: Any, place: Place | None) -> str | None:
    """The description of the task that ``place`` is in."""
    if crew_of is None or place is None:
        return None
    for part in reversed(place.path.replace("+", ".").split(".")):
        number = part.removeprefix("task").partition("-")[0]
        if part.startswith("task") and number.isdigit() and int(number) < len(crew_of.tasks):
            return crew_of.tasks[int(number)].description
    return None


_FEEDBACK = "Feedback on the result of a task (empty: it is good)"


def _prompt_input(original: Any) -> Any:
    def call(crew_of: Any) -> str:
        place = current_place()
        if place is None:
            return original(crew_of)
        return str(place.driver.step(place, question(place, _FEEDBACK, **_about_crew(crew_of))))

    return call


def _prompt_input_async(original: Any) -> Any:
    async def call(crew_of: Any) -> str:
        place = current_place()
        if place is None:
            return await original(crew_of)
        ask = question(place, _FEEDBACK, **_about_crew(crew_of))
        return str(await place.driver.astep(place, ask))

    return call


class _Provider:
    """Asks what a flow asks with ``ask()``."""

    def request_input(self, message: str, flow: Any, metadata: Any = None) -> Any:
        place = current_place()
        assert place is not None
        asked = question(place, message, flow=type(flow).__name__, metadata=metadata)
        return place.driver.step(place, asked)


def _input_provider(original: Any) -> Any:
    def call(self: Any) -> Any:
        provider = original(self)
        is_console = isinstance(provider, crew.flow_providers.ConsoleProvider)
        return _Provider() if is_console and current_place() is not None else provider

    return call
