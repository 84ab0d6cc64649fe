"""pytest plugin: ``SUITE_SAMPLE=K`` keeps about every K-th test, chosen by its name alone."""

import hashlib
import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = int(os.environ.get("SUITE_SAMPLE", "1"))
    kept = [item for item in items if _number(item.nodeid) % share == 0]
    dropped = [item for item in items if _number(item.nodeid) % share != 0]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def _number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
