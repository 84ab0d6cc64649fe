"""How many threads of control can go on, and how they are named."""

from typing import Any

from dapr_runners.crewai._driver import Driver
from dapr_runners.crewai._strands import Calls, Place, Strand, safe, strand_of
from dapr_runners.crewai._types import Types


def _main() -> tuple[Driver, Place]:
    driver = Driver("run", lambda: None, [], Types((), ()), False, lambda: None)
    return driver, Place(driver._main, "main")


def test_names_are_those_of_the_order_in_which_they_are_asked_for() -> None:
    _, main = _main()
    assert main.inner("a b").path == "main.a-b"
    assert main.inner("a b").path == "main.a-b-1"
    forked = main.inner("crew").fork("task")
    assert forked.path == "main.crew+task"
    assert strand_of(f"{forked.inner('x').path}!tool.3") == "main.crew+task"
    assert strand_of("main.crew!llm.0") == "main"
    assert safe("näme/with:odd~chars!") == "n-me-with-odd-chars-"


def test_who_waits_for_those_it_opened_does_not_count() -> None:
    driver, main = _main()
    first, second = main.fork("a"), main.fork("a")
    assert main.strand.running() == 3
    driver.wait_for_children(main.strand, +1)
    assert main.strand.running() == 2
    driver.close(first.strand)
    assert main.strand.running() == 1
    driver.close(second.strand)
    assert main.strand.running() == 1  # the last one ended: it goes on at once


def test_calls_at_once_are_open_from_the_start_and_named_in_order() -> None:
    _, main = _main()
    requests: list[Any] = [object() for _ in range(10)]
    calls = Calls(main, requests, 8)
    assert main.strand.running() == 8
    places = [calls.place_of(request) for request in requests[:8]]
    assert [place.path for place in places if place] == [f"main+call{n}" for n in range(8)]
    for place in places:
        assert place is not None
        calls.ended(place)
    assert main.strand.running() == 2
    for request in requests[8:]:
        place = calls.place_of(request)
        assert place is not None
        calls.ended(place)
    assert main.strand.running() == 1
    assert isinstance(main.strand, Strand)
    assert calls.place_of(object()) is None
