"""The runners of the corpus: the same in every process of a test session."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from langgraph.cache.sqlite import SqliteCache
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from corpus.case import Case, Services
from corpus.every_case import CASES
from corpus.marks import watch_activities
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import StateStore

DAPR_SAVER, OWN_SAVER = SAVERS = "dapr-saver", "own-saver"


class AsyncSqliteSaver(SqliteSaver):
    """A saver on a file, for threads and event loops."""

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, config: Any, **filters: Any) -> AsyncIterator[Any]:
        for found in self.list(config, **filters):
            yield found

    async def aput(self, *args: Any) -> Any:
        return self.put(*args)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self.put_writes(*args, **kwargs)


def services_on_files(folder: Path) -> Services:
    """Services that processes can share."""
    folder.mkdir(exist_ok=True)
    saver = AsyncSqliteSaver(_connection(folder / "saver.db"))
    saver.setup()
    store = SqliteStore(_connection(folder / "store.db", isolation_level=None))
    store.setup()
    return Services(saver, store, SqliteCache(path=str(folder / "cache.db")))


def runner_of(
    case: Case,
    saver: str,
    services: Services,
    state: StateStore,
    tag: str,
    port: int | None = None,
) -> Any:
    """A runner of ``case``, with the saver of ``services`` or without one."""
    if saver == DAPR_SAVER:
        services = Services(None, services.store, services.cache)
    graph, name = case.build(services), f"{case.name}-{saver}-{tag}"
    return DaprWorkflowGraphRunner(graph, name=name, store=state, port=port)


def all_runners(folder: str, tag: str) -> Iterator[Any]:
    """For the worker processes: the runners of all cases."""
    watch_activities()
    state = StateStore()
    for saver in SAVERS:
        services = services_on_files(Path(folder) / saver)
        for case in CASES.values():
            yield runner_of(case, saver, services, state, tag)


def _connection(path: Path, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=60, **options)
    connection.execute("pragma synchronous = off")
    return connection
