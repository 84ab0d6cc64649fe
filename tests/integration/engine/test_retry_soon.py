"""A run is retried at once, while a step beside the one that ended it is about to fail too."""

import threading
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from place import Place
from run_helpers import MakeRunner, State

from dapr_runners.engine import IO, Overview, Worker, _journal, _retrying, record_key, run_in_thread
from dapr_runners.langgraph import DaprWorkflowGraphRunner


def test_a_step_that_fails_late_is_done_again(
    make_runner: MakeRunner, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_broken, go_on = [True], threading.Event()

    def first(state: State) -> State:
        if is_broken[0]:
            raise ConnectionError("no")
        return {"log": ["first"]}

    def late(state: State) -> State:
        assert go_on.wait(60)
        if is_broken[0]:
            raise ConnectionError("no")
        return {"log": ["late"]}

    # However long the test takes, the late one is of those that do not look.
    monkeypatch.setattr(_journal, "UNNOTICED_ALONE", 3600.0)
    builder = StateGraph(State)
    for node in (first, late):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
    runner = make_runner(builder.compile())
    with pytest.raises(ConnectionError):
        runner.invoke({"log": []}, thread_id="t")
    run = runner._resolve(None, "t")

    async def until_late_has_failed(io: IO) -> None:
        go_on.set()
        while len(await io.get_many(_keys(runner, run))) < 2:
            await io.sleep(0.01)
        is_broken[0] = False

    monkeypatch.setattr(_retrying, "at_rest", until_late_has_failed)
    runs = Overview(runner.store, Worker(f"127.0.0.1:{place.grpc_port}"))
    run_in_thread(_retrying.retry(runs, run))
    assert sorted(runner.invoke({"log": []}, thread_id="t")["log"]) == ["first", "late"]


def _keys(runner: DaprWorkflowGraphRunner, run: str) -> list[str]:
    """State keys of the records of the two steps."""
    data: Any = runner.store.get(record_key(run, "0"))
    plan = runner._journal.decode("0", data, record_key(run, "0"))
    return [record_key(run, f"0:{step['id']}") for step in plan.outcome["steps"]]
