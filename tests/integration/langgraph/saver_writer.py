"""A process that puts checkpoints, run by the tests of several processes at one thread.

It says ``ready``, waits for a line, and then says the id of each checkpoint once that is recorded.
"""

import sys
from typing import Any

from langgraph.checkpoint.base import Checkpoint, empty_checkpoint

from dapr_runners.langgraph import DaprSaver
from dapr_runners.state import StateStore

SHARED = "00000000-0000-6000-8000-000000000000"
"""The id of a checkpoint to which all writers add writes."""


def named(thread: str, checkpoint_id: str | None = None) -> Any:
    configurable = {"thread_id": thread, "checkpoint_ns": ""}
    return {
        "configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})
    }


def checkpoint(number: int, saver: DaprSaver, version: str | None) -> Checkpoint:
    """A checkpoint of a counter, of a text that grows, and of one that stays as it is."""
    made = empty_checkpoint()
    new = saver.get_next_version(version, None)
    made["channel_values"] = {"number": number, "text": f"{number} " * number, "same": "s" * 5000}
    made["channel_versions"] = {"number": new, "text": new, "same": "1"}
    return made


def go_on(saver: DaprSaver, thread: str, count: int) -> None:
    """Put ``count`` checkpoints after the latest one, each with a write."""
    latest = saver.get_tuple(named(thread))
    number = latest.checkpoint["channel_values"]["number"] + 1 if latest else 0
    parent = latest.checkpoint["id"] if latest else None
    version = str(latest.checkpoint["channel_versions"]["number"]) if latest else None
    for _ in range(count):
        made = checkpoint(number, saver, version)
        version = str(made["channel_versions"]["number"])
        changed = {"number": version, "text": version}
        metadata: Any = {"source": "loop", "step": number}
        config = saver.put(named(thread, parent), made, metadata, changed)
        saver.put_writes(config, [("number", number + 1)], f"task{number}")
        print(made["id"], flush=True)  # noqa: T201
        parent = made["id"]
        number += 1


def main(address: str, work: str, thread: str, writer: str, count: int) -> None:
    saver = DaprSaver(StateStore(address=address))
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    if work == "go-on":
        go_on(saver, thread, count)
        return
    for number in range(count):
        made = checkpoint(number, saver, None)
        metadata: Any = {"source": "loop", "step": number, "run_id": f"run-{writer}"}
        saver.put(named(thread, SHARED), made, metadata, made["channel_versions"])
        saver.put_writes(named(thread, SHARED), [("number", number)], f"{writer}-{number}")
        print(made["id"], flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
