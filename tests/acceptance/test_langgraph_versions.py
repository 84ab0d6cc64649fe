"""A run that one LangGraph began ends on another: programs are upgraded, and rolled back, while
their runs go on."""

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.other_python import InstallError, python_with
from langgraph.types import Command

_OLDEST = "1.2.20"
"""The oldest LangGraph that pyproject.toml allows."""
_QUICK = [("upgrade", "left"), ("upgrade", "draft"), ("rollback", "check")]


@pytest.fixture(scope="module")
def oldest(request: pytest.FixtureRequest) -> Path:
    """An interpreter with the oldest LangGraph."""
    try:
        directory = request.config.cache.mkdir("langgraph-versions")
        return python_with([f"langgraph=={_OLDEST}"], directory)
    except InstallError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"langgraph {_OLDEST} cannot be installed here: {error}")


def test_it_is_the_oldest_that_is_allowed() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    assert f'"langgraph>={_OLDEST},<1.3"' in pyproject.read_text()


@pytest.mark.parametrize(
    ("way", "dies_in"),
    [
        pytest.param(way, name, marks=() if (way, name) in _QUICK else pytest.mark.slow)
        for way in ("upgrade", "rollback")
        for name in ("plan", "left", "draft", "check", "last")
    ],
)
@pytest.mark.timeout(360)  # the first has to install something
def test_a_run_goes_on_with_another_version(
    way: str, dies_in: str, oldest: Path, cluster: Cluster
) -> None:
    cluster.use("upgrade_graphs:whole")
    cluster.effects.arm(f"{dies_in} in", "die")
    first = cluster.worker_on(oldest) if way == "upgrade" else cluster.worker()
    versions = [first.ask("langgraph_version")]
    caller = cluster.caller()
    caller.send("call", "thread", {"log": ["input"], "messages": [("user", "hello")]})
    if dies_in in ("plan", "left"):
        first.wait_dead()
        second = cluster.worker() if way == "upgrade" else cluster.worker_on(oldest)
        caller.reply()
        caller.send("call", "thread", Command(resume="yes"))
    else:
        caller.reply()
        caller.send("call", "thread", Command(resume="yes"))
        first.wait_dead()
        second = cluster.worker() if way == "upgrade" else cluster.worker_on(oldest)
    result = caller.reply()
    versions.append(second.ask("langgraph_version"))
    new = version("langgraph")
    assert versions == ([_OLDEST, new] if way == "upgrade" else [new, _OLDEST])

    inside = ["input", "plan", "left", "right", "yes"]
    assert result["log"] == [*inside, *inside, "draft", "check", "check", "last"]
    assert [message.content for message in result["messages"]] == ["hello", "left", "right"]
    assert result["at"].isoformat() == "2026-01-02T00:00:00+00:00"
    assert result["text"] == "draft" * 500
    counts = {name: cluster.effects.count(f"{name} start") for name in ("plan", "draft", "last")}
    assert counts == {name: 1 + (name == dies_in) for name in counts}
