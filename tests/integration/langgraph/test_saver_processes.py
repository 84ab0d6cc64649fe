"""Several processes at one thread, and processes that are killed while they write."""

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from langgraph.checkpoint.base import CheckpointTuple
from saver_writer import SHARED, checkpoint, named

from dapr_runners.langgraph import DaprSaver
from engines import Sidecar

WRITERS = 3
PUTS = 25
KILLS = 5


@contextmanager
def writers(
    sidecar: Sidecar, *arguments: tuple[str | int, ...]
) -> Iterator[list[subprocess.Popen[str]]]:
    """Writing processes that are ready to start."""
    command = [sys.executable, str(Path(__file__).with_name("saver_writer.py")), sidecar.address]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, *map(str, each)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for each in arguments
        ]
        try:
            assert [said(process) for process in processes] == ["ready"] * len(processes)
            yield processes
        finally:
            for process in processes:
                process.kill()


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def said_all(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    return process.stdout.read().split()


def test_nothing_that_three_processes_write_at_once_is_lost(sidecar: Sidecar) -> None:
    saver = DaprSaver()
    shared = checkpoint(0, saver, None)
    shared["id"] = SHARED
    saver.put(named("t"), shared, {}, shared["channel_versions"])
    work = [("together", "t", number, PUTS) for number in range(WRITERS)]
    with writers(sidecar, *work) as processes:
        for process in processes:
            start(process)
        recorded = [said_all(process) for process in processes]
    assert [len(ids) for ids in recorded] == [PUTS] * WRITERS

    found = list(saver.list(named("t")))
    assert [each.checkpoint["id"] for each in found] == sorted(
        {SHARED, *itertools.chain(*recorded)}, reverse=True
    )
    assert all(each.checkpoint["channel_values"]["same"] == "s" * 5000 for each in found)
    assert found[-1].pending_writes is not None
    written = {(task_id, value) for task_id, _, value in found[-1].pending_writes}
    assert written == {(f"{number}-{put}", put) for number in range(WRITERS) for put in range(PUTS)}
    saver.delete_for_runs(["run-0"])
    assert len(list(saver.list(named("t")))) == 1 + (WRITERS - 1) * PUTS


def test_new_threads_of_several_processes_are_all_listed(sidecar: Sidecar) -> None:
    threads = ["one", "two"]
    with writers(sidecar, *(("go-on", thread, 0, 2) for thread in threads)) as processes:
        for process in processes:
            start(process)
        assert [len(said_all(process)) for process in processes] == [2, 2]
    found = [each.config["configurable"]["thread_id"] for each in DaprSaver().list(None)]
    assert sorted(found) == ["one", "one", "two", "two"]


def test_killed_writers_leave_a_consistent_history(sidecar: Sidecar) -> None:
    choice = random.Random(1)
    acknowledged: list[str] = []
    history: list[CheckpointTuple] = []
    with writers(sidecar, *[("go-on", "t", 0, 1000)] * KILLS) as processes:
        for process in processes:
            start(process)
            acknowledged += [said(process) for _ in range(choice.randint(1, 12))]
            process.kill()
            acknowledged += said_all(process)
            history = list(DaprSaver().list(named("t")))
            consistent(history)
            assert set(acknowledged) <= {each.checkpoint["id"] for each in history}
    assert len(history) <= len(acknowledged) + KILLS


def consistent(history: list[CheckpointTuple]) -> None:
    """A chain of checkpoints without a gap, each with the values and writes it was put with."""
    for number, each in enumerate(reversed(history)):
        values = each.checkpoint["channel_values"]
        assert values == {"number": number, "text": f"{number} " * number, "same": "s" * 5000}
        assert each.metadata["step"] == number
        if number < len(history) - 1:
            assert each.pending_writes is not None
            assert [value for _, _, value in each.pending_writes] in ([], [number + 1])
    for child, parent in itertools.pairwise(history):
        assert child.parent_config == parent.config
