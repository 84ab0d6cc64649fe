"""pytest plugin: every run of a graph that is not inside another one is a durable run.

``Pregel.stream`` and ``Pregel.astream`` become those of a ``DaprWorkflowGraphRunner`` of the graph,
on an embedded sidecar (one a test process). ``invoke``, ``batch`` and ``stream_events`` follow, as
LangGraph builds them on these two. The tests define their graphs as closures, so each graph gets a
runner of its own in the process of the test, which is forgotten after the test.
"""

import asyncio
import functools
import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langgraph._internal._config import ensure_config
from langgraph._internal._constants import CONF, CONFIG_KEY_TASK_ID
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from live_codec import LiveCodec, LiveTable

from dapr_runners.engine import Worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner, _runner
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import StateStore

_stream, _astream = Pregel.stream, Pregel.astream
_codec_for = _runner.codec_for


class SuiteRunner(DaprWorkflowGraphRunner):
    """A graph without a saver stays without one."""

    def _prepare(self, *args: Any) -> Any:
        call, extras = super()._prepare(*args)
        call.saver = isinstance(self.graph.checkpointer, BaseCheckpointSaver)
        return call, extras


class Durable:
    """The sidecar and the worker of a test process, and the runners of the running test."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="suite-langgraph-")
        database = Path(self._directory.name, "sidecar.db")
        self.sidecar = EmbeddedSidecar(database, log_level="error").start()
        self.worker = Worker(self.sidecar.address)
        self.store = StateStore(address=self.sidecar.address)
        self.table = LiveTable()
        self._runners: dict[int, SuiteRunner] = {}
        self._numbers = itertools.count(1)
        self.worker.start()

    def codec_for(self, *args: Any) -> LiveCodec:
        return LiveCodec(_codec_for(*args), self.table)

    def runner(self, graph: Any) -> SuiteRunner:
        """The runner of ``graph``, made at its first run in the test."""
        runner = self._runners.get(id(graph))
        if runner is None:
            name = f"g{next(self._numbers)}"
            runner = SuiteRunner(
                graph, name=name, worker=self.worker, store=self.store, on_disconnect="cancel"
            )
            runner.start()
            self._runners[id(graph)] = runner
        self.table.counts["runs"] += 1
        return runner

    def forget(self) -> None:
        """End of a test: nothing of it is kept."""
        for runner in self._runners.values():
            runner.shutdown()
            self._unregister(runner.name)
        self._runners.clear()
        self.table.clear()

    def _unregister(self, name: str) -> None:
        def is_its(known: str) -> bool:
            return known.partition("/")[0] == name

        registry = self.worker._runtime._WorkflowRuntime__worker._registry
        activities = self.worker._activities
        for names in (registry.orchestrators, registry.activities, activities.served):
            for known in filter(is_its, list(names)):
                del names[known]
        activities.registered = {n for n in activities.registered if not is_its(n)}

    def close(self) -> None:
        self.worker.stop()
        self.store.close()
        self.sidecar.stop()
        self._directory.cleanup()


class Plugin:
    """The hooks of a process that runs tests."""

    def __init__(self) -> None:
        self.durable: Durable | None = None

    def patch(self) -> None:
        plugin = self

        @functools.wraps(_stream)
        def stream(self: Any, input: Any, config: Any = None, **arguments: Any) -> Iterator[Any]:
            if plugin.is_inside(self, config):
                return _stream(self, input, config, **arguments)
            return plugin.get().runner(self).stream(input, config, **arguments)

        @functools.wraps(_astream)
        async def astream(
            self: Any, input: Any, config: Any = None, **arguments: Any
        ) -> AsyncIterator[Any]:
            if plugin.is_inside(self, config):
                chunks = _astream(self, input, config, **arguments)
            else:
                durable = plugin.get()
                # What the tests make (locks, events, savers) is of the test's event loop.
                durable.worker._loop = asyncio.get_running_loop()
                chunks = durable.runner(self).astream(input, config, **arguments)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

        Pregel.stream, Pregel.astream = stream, astream

    def is_inside(self, graph: Any, config: Any) -> bool:
        return CONFIG_KEY_TASK_ID in ensure_config(graph.config, config)[CONF]

    def get(self) -> Durable:
        if self.durable is None:
            self.durable = Durable()
            _runner.codec_for = self.durable.codec_for
        return self.durable

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        before = self._runs()
        try:
            return (yield)
        finally:
            if self.durable is not None:
                self.durable.forget()
                self.durable.table.counts["tests with runs"] += self._runs() > before

    def _runs(self) -> int:
        return 0 if self.durable is None else self.durable.table.counts["runs"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.durable is None:
            return
        counts = dict(self.durable.table.counts)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["durable"] = counts
        else:
            session.config.stash[_COUNTS].update(counts)
        self.durable.worker._loop = None
        self.durable.close()


_COUNTS: pytest.StashKey[Counter[str]] = pytest.StashKey()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended: add what it counted."""
    node.config.stash[_COUNTS].update(getattr(node, "workeroutput", {}).get("durable", {}))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = Counter()
    plugin = Plugin()
    plugin.patch()
    config.pluginmanager.register(plugin, "durable-runs")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    counts = config.stash[_COUNTS]
    terminalreporter.section("durable runs")
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{count:8} {name}")
