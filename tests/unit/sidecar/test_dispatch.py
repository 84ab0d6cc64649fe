"""Work items and worker streams: who gets what, and what a lost stream leaves."""

from dapr_runners.sidecar._dispatch import Dispatcher, Stream, Work
from dapr_runners.sidecar._protos import pb


def _work(number: int, limit: str = "activity/a", prefer: str | None = None) -> Work:
    item = pb.WorkItem(completionToken=str(number))
    return Work(number, lambda _: item, prefer=prefer, limit=limit)


def _held(stream: Stream) -> list[object]:
    return list(stream.out)


def test_work_waits_for_a_worker() -> None:
    dispatcher = Dispatcher()
    for number in range(3):
        dispatcher.submit(_work(number))
    stream = dispatcher.open(keeps_history=False)
    assert _held(stream) == [0, 1, 2]


def test_work_is_spread_evenly() -> None:
    dispatcher = Dispatcher()
    streams = [dispatcher.open(keeps_history=False) for _ in range(3)]
    for number in range(60):
        dispatcher.submit(_work(number))
    assert [len(stream.out) for stream in streams] == [20, 20, 20]


def test_workers_take_turns_at_work_that_is_soon_done() -> None:
    dispatcher = Dispatcher()
    streams = [dispatcher.open(keeps_history=False) for _ in range(2)]
    done: list[Stream | None] = []
    for number in range(10):
        dispatcher.submit(_work(number))
        done.append(dispatcher.finish(number))
    assert [done.count(stream) for stream in streams] == [5, 5]


def test_the_worker_that_holds_the_history_is_preferred() -> None:
    dispatcher = Dispatcher()
    streams = [dispatcher.open(keeps_history=True) for _ in range(2)]
    streams[1].cached["instance"] = ("execution", 3)
    for number in range(4):
        dispatcher.submit(_work(number, prefer="instance"))
    assert [len(stream.out) for stream in streams] == [0, 4]


def test_lost_work_goes_first_to_the_others() -> None:
    dispatcher = Dispatcher({"activity": 4})
    first = dispatcher.open(keeps_history=False)
    for number in range(6):
        dispatcher.submit(_work(number))
    assert _held(first) == [0, 1, 2, 3]
    second = dispatcher.open(keeps_history=False)
    assert _held(second) == []
    dispatcher.close(first)
    assert _held(second) == [0, 1, 2, 3]
    assert dispatcher.finish(0) is second
    assert _held(second) == [1, 2, 3, 4]


def test_work_of_the_last_worker_waits_for_the_next() -> None:
    dispatcher = Dispatcher()
    first = dispatcher.open(keeps_history=False)
    dispatcher.submit(_work(1))
    dispatcher.close(first)
    assert dispatcher.workers == 0
    second = dispatcher.open(keeps_history=False)
    assert _held(second) == [1]


def test_finished_work_is_not_given_out_again() -> None:
    dispatcher = Dispatcher()
    first = dispatcher.open(keeps_history=False)
    dispatcher.submit(_work(1))
    assert dispatcher.finish(1) is first
    assert dispatcher.finish(1) is None
    dispatcher.close(first)
    assert _held(dispatcher.open(keeps_history=False)) == []


def test_limits_by_kind_and_by_name() -> None:
    dispatcher = Dispatcher({"activity": 3, "activity/slow": 1})
    stream = dispatcher.open(keeps_history=False)
    for number, limit in enumerate(
        ["activity/slow", "activity/slow", "activity/a", "workflow/w", "activity/b", "activity/c"]
    ):
        dispatcher.submit(_work(number, limit))
    assert _held(stream) == [0, 2, 3, 4]
    dispatcher.finish(2)
    assert _held(stream) == [0, 3, 4, 5]
    dispatcher.finish(0)
    assert _held(stream) == [3, 4, 5, 1]
