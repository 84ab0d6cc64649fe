"""pytest plugin: every blocking run of a crew, a task, a flow or an agent is driven step by step.

``SUITE_DRIVEN=0`` leaves it out, so that the same command tells what CrewAI does by itself.
"""

import functools
import os
from collections import Counter
from typing import Any

import pytest
from crewai import Agent, Crew, Flow, Task
from steps import Steps

import dapr_runners.crewai  # noqa: F401  # it patches CrewAI

_DRIVEN = (
    (Crew, "kickoff"),
    (Task, "execute_sync"),
    (Flow, "kickoff"),
    (Agent, "kickoff"),
    (Agent, "execute_task"),
)
_COUNTS: pytest.StashKey[Counter[str]] = pytest.StashKey()


class Plugin:
    """The hooks of a process that runs tests."""

    def __init__(self) -> None:
        self.steps = Steps()

    def patch(self) -> None:
        for owner, name in _DRIVEN:
            setattr(owner, name, self._driven(getattr(owner, name)))

    def _driven(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(target: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.steps.is_due(target):
                return original(target, *args, **kwargs)
            return self.steps.run(lambda: original(target, *args, **kwargs))

        return call

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        try:
            return (yield)
        finally:
            self.steps.table.clear()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        counts = dict(self.steps.counts + self.steps.table.counts)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["driven"] = counts
        else:
            session.config.stash[_COUNTS].update(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended: add what it counted."""
    node.config.stash[_COUNTS].update(getattr(node, "workeroutput", {}).get("driven", {}))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = Counter()
    if os.environ.get("SUITE_DRIVEN") != "0":
        plugin = Plugin()
        plugin.patch()
        config.pluginmanager.register(plugin, "driven-runs")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    terminalreporter.section("driven runs")
    for name, count in sorted(config.stash[_COUNTS].items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{count:8} {name}")
