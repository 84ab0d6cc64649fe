"""Writes of threads that do not wait, gathered."""

import threading

import pytest

from dapr_runners.state import _batch
from dapr_runners.state._batch import RelayBatcher


@pytest.mark.timeout(60)
def test_expected_writes_are_sent_as_soon_as_the_last_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_batch, "_GATHERING", 3600.0)
    monkeypatch.setattr(_batch, "_QUIET", 3600.0)
    calls: list[list[str]] = []
    sending, go_on, told = threading.Event(), threading.Event(), threading.Semaphore(0)

    def send(writes: list[str]) -> list[bool]:
        calls.append(writes)
        sending.set()
        go_on.wait()
        return [True] * len(writes)

    names = [f"step {number}" for number in range(6)]
    batcher = RelayBatcher[str](send, name=str)
    batcher.expect(names)
    first = threading.Thread(
        target=batcher.write, args=(names[0], lambda *_: told.release()), daemon=True
    )
    first.start()
    sending.wait()
    go_on.set()
    for name in names[1:]:
        threading.Thread(
            target=batcher.write, args=(name, lambda *_: told.release()), daemon=True
        ).start()
    for _ in names:
        told.acquire()
    assert sorted(name for call in calls for name in call) == names
    assert calls[0] == names[:1]


@pytest.mark.timeout(60)
def test_a_write_that_was_never_expected_is_sent_as_well() -> None:
    told: list[bool] = []
    batcher = RelayBatcher[str](lambda writes: [True] * len(writes), name=str)
    batcher.expect(["a step that never comes"])
    batcher.write("another", lambda created, _: told.append(created))
    assert told == [True]
