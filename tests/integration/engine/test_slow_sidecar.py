"""A sidecar that takes its time to start a run."""

import logging
import threading
from typing import Any

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from run_helpers import MakeRunner, Node, chain

pytestmark = pytest.mark.timeout(240)


class _Told(logging.Handler):
    """Keeps what is logged, and tells when something is."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self.is_there = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.is_there.set()


def test_nobody_is_told_that_no_worker_is_there(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make_runner(chain(Node("node")))
    told = _Told()
    untyped: Any = DaprWorkflowClient
    schedule = untyped.schedule_new_workflow

    def slow(*args: Any, **options: Any) -> Any:
        assert told.is_there.wait(60)
        return schedule(*args, **options)

    monkeypatch.setattr(untyped, "schedule_new_workflow", slow)
    logging.getLogger("dapr_runners").addHandler(told)
    try:
        assert runner.invoke({"x": 1}, {"configurable": {"thread_id": "t"}})["log"] == ["node"]
    finally:
        logging.getLogger("dapr_runners").removeHandler(told)
    (message,) = told.messages
    assert message.endswith("is recorded, but not started yet: the sidecar is slow.")
