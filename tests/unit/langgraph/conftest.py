"""What all tests of the saver on a store in memory have in common."""

import pytest

from dapr_runners.langgraph._checkpoints import flow, log, record, threads, values, writes


@pytest.fixture(autouse=True)
def small_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages, branches and values with documents of their own come about early, and no pause
    between attempts."""
    monkeypatch.setattr(log, "PAGE_BYTES", 45)
    monkeypatch.setattr(threads, "BRANCH_NAMES", 2)
    monkeypatch.setattr(flow, "CALL_BYTES", 250)
    monkeypatch.setattr(flow, "_LONGEST_PAUSE", 0.0)
    for module in (record, writes):
        monkeypatch.setattr(module, "FRESH_BYTES", 30)
    monkeypatch.setattr(record, "SETTLED_BYTES", 20)
    monkeypatch.setattr(values, "PART_BYTES", 50)
