"""pytest plugin: LangGraph's tests that take a checkpointer, with DaprSaver on an embedded sidecar.

    python -m pytest -p saver_plugin tests      in the directory of LangGraph's tests

Of the fixtures' checkpointers the one in memory becomes DaprSaver; tests with others, and without
one, are left out.
"""

import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dapr_runners.langgraph import DaprSaver
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import StateStore

_FIXTURES = ("sync_checkpointer", "async_checkpointer")
_STORE = pytest.StashKey[StateStore]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that get DaprSaver, and have their fixtures make it."""
    kept = [item for item in items if _checkpointer(item) == "memory"]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept

    @contextmanager
    def saver() -> Iterator[DaprSaver]:
        yield DaprSaver(config.stash[_STORE], key_prefix=secrets.token_hex(6))

    vars(sys.modules["tests.conftest"])["_checkpointer_memory"] = saver


def _checkpointer(item: pytest.Item) -> str | None:
    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    return next((str(parameters[name]) for name in _FIXTURES if name in parameters), None)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Have a sidecar while tests run."""
    with (
        tempfile.TemporaryDirectory() as place,
        EmbeddedSidecar(Path(place) / "sidecar.db") as sidecar,
    ):
        store = session.config.stash[_STORE] = StateStore(address=sidecar.address)
        result = yield
        store.close()
        return result
