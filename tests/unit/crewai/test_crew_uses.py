"""Uses of a tool with a limit are seen, and counted, as they were the first time."""

from typing import Any

from crewai.tools import BaseTool

from dapr_runners.crewai._driver import Driver
from dapr_runners.crewai._outcomes import Known
from dapr_runners.crewai._strands import current_place, here
from dapr_runners.crewai._types import Types


class Scarce(BaseTool):
    """A tool that may be used three times."""

    name: str = "scarce"
    description: str = "Used up soon."
    max_usage_count: int | None = 3

    def _run(self) -> str:
        return "used"


def _drive(counts: dict[str, int], known: list[Known]) -> tuple[list[int], int, list[Known]]:
    """Let a program ask a tool for its count and set it, in a place of its own each time: what it
    was told, the last count, and what was noted."""
    tool = Scarce()

    def body() -> Any:
        place, seen = current_place(), list[int]()
        assert place is not None
        for name, count in counts.items():
            token = here.set(place.inner(name))
            seen.append(tool.current_usage_count)
            tool.current_usage_count = count
            here.reset(token)
        return seen

    driver = Driver("run", body, known, Types((), ()), False, lambda: None)
    driver.start()
    assert driver.settle_down() == "done"
    assert driver.error is None
    return driver.result, tool.current_usage_count, driver.take_notes()


def test_what_was_seen_is_seen_again_in_any_order() -> None:
    seen, last, notes = _drive({"a": 1, "b": 2}, [])
    assert (seen, last) == ([0, 1], 2)
    seen, last, more = _drive({"b": 2, "a": 1}, notes)
    assert seen == [1, 0]
    assert last == 2  # b was the last to set it
    assert more == []


def test_counting_goes_on_from_the_last_count() -> None:
    _, _, notes = _drive({"a": 1, "b": 2}, [])
    seen, last, more = _drive({"b": 2, "a": 1, "c": 3}, notes)
    assert seen == [1, 0, 2]
    assert last == 3
    assert {known.key for known in more} == {"main.c!use.0", "main.c!uses.0"}
