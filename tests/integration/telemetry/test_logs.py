"""Log records of the user's code say of which step they are."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import traced_crews as crews
import traced_graphs as graphs

from dapr_runners import StepFilter, current_step
from dapr_runners.crewai import DaprWorkflowCrewRunner

logger = logging.getLogger("the.users")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def kept() -> Iterator[list[str]]:
    handler = Kept()
    handler.addFilter(StepFilter())
    handler.setFormatter(logging.Formatter("%(run_id)s|%(step)s|%(attempt)s|%(message)s"))
    root = logging.getLogger("the")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler.lines
    root.removeHandler(handler)


def test_of_a_node(kept: list[str], make_runner: Any) -> None:
    failures, ids = [ConnectionError("no")], list[str]()

    def node(state: graphs.State) -> graphs.State:
        logger.info("hello")
        step = current_step()
        assert step is not None
        ids.append(step.run_id)
        if failures:
            raise failures.pop()
        return {"log": ["done"]}

    logger.info("before")
    make_runner(graphs.chain(node=node), retry=graphs.retry()).invoke({"x": 1})
    logger.info("after", extra={"run_id": "mine"})
    assert kept == [
        "||0|before",
        f"{ids[0]}|node|1|hello",
        f"{ids[0]}|node|2|hello",
        "mine||0|after",
    ]


async def test_of_an_asynchronous_node(kept: list[str], make_runner: Any) -> None:
    async def node(state: graphs.State) -> graphs.State:
        logger.info("hello")
        return {"log": ["done"]}

    await make_runner(graphs.chain(node=node), name="async-log").ainvoke({"x": 1})
    assert [line.split("|")[1:] for line in kept] == [["node", "1", "hello"]]


@pytest.mark.filterwarnings("ignore")
def test_of_a_tool(kept: list[str], make_runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Any, query: str) -> str:
        logger.info("hello")
        return f"found {query}"

    monkeypatch.setattr(crews.Search, "_run", run)
    make_runner(crews.crew, DaprWorkflowCrewRunner).kickoff({})
    assert [line.split("|")[1:] for line in kept] == [["search", "1", "hello"]]
