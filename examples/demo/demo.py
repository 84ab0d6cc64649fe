"""``make demo``: kill a graph's process with SIGKILL in the middle of a node, and start it again.

Four processes: this one; an embedded sidecar (or the one it is run beside, with ``dapr run``); one
that counts (``tally.py``); and the graph's (``agent.py``), which is killed while ``validate`` runs.
The exit status is 0 if the result is right, each recorded node was executed once, and the node in
flight at most twice.
"""

import queue
import sys
import uuid
from typing import Any

import show
from agent import THREAD
from processes import PATIENCE_SECONDS, Child, Inbox, child, sidecar_env
from tally import ADDRESS

IN_FLIGHT = "validate"
PROMISED = {"process": 1, "validate": 2, "finalize": 1}
RESULT = {"messages": ["hello", "processed", "validated", "finalized"], "counter": 3}


class Demo:
    """What happened so far."""

    def __init__(self) -> None:
        self.inbox: Inbox = queue.Queue()
        self.counts = dict.fromkeys(PROMISED, 0)
        self.recorded: set[str] = set()
        self.planned: set[str] = set()
        self.early: dict[str, dict[str, Any]] = {}
        self.output: Any = None
        self.problems: list[str] = []

    def run(self) -> list[str]:
        """The whole demo; the promises that were broken."""
        with (
            sidecar_env() as found,
            child("tally", self.inbox, "tally.py", "--hold", IN_FLIGHT, env={}) as tally,
        ):
            port = self.next("tally")["port"]
            env = {**found, ADDRESS: f"127.0.0.1:{port}", THREAD: f"order-{uuid.uuid4().hex[:8]}"}
            self.first_life(env)
            self.second_life(env, tally)
        return self.problems + self.broken_counts()

    def first_life(self, env: dict[str, str]) -> None:
        with child("agent", self.inbox, "agent.py", env=env) as agent:
            show.heading(f"The graph runs in process {agent.pid}")
            self.follow_until(f"planned {IN_FLIGHT}", f"begun {IN_FLIGHT}")
            agent.kill()
            show.killed(f"SIGKILL: process {agent.pid} is dead, in the middle of {IN_FLIGHT}")
            self.follow_until("exit")

    def second_life(self, env: dict[str, str], tally: Child) -> None:
        with child("agent", self.inbox, "agent.py", env=env) as agent:
            show.heading(f"Started again with the same thread id, in process {agent.pid}")
            self.planned.clear()
            self.follow_until(f"planned {IN_FLIGHT}", f"begun {IN_FLIGHT}")
            tally.tell("go on")
            self.follow_until("exit")
            if (code := agent.end()) != 0:
                self.problems.append(f"the second process ended with status {code}")

    def follow_until(self, *wanted: str) -> None:
        """Show what arrives until all that is ``wanted`` has.

        It can be "planned NODE", "begun NODE", or "exit".
        """
        missing = set(wanted)
        while missing:
            kind, message = self.inbox.get(timeout=PATIENCE_SECONDS)
            if kind == "tally":
                self.counted(message)
                missing.discard(f"begun {message['node']}")
            elif message["type"] == "exit":
                missing.discard("exit")
                if missing:
                    raise RuntimeError(f"the graph's process ended before {sorted(missing)}")
            else:
                self.happened(message)
                missing -= {f"planned {node}" for node in message.get("nodes", ())}

    def next(self, wanted: str) -> dict[str, Any]:
        kind, message = self.inbox.get(timeout=PATIENCE_SECONDS)
        assert kind == wanted
        return message

    def counted(self, mark: dict[str, Any]) -> None:
        self.counts[mark["node"]] = mark["count"]
        # Two processes tell of it: shown in the order in which it happened.
        if mark["node"] in self.planned:
            show.counted(mark)
        else:
            self.early[mark["node"]] = mark

    def happened(self, event: dict[str, Any]) -> None:
        show.event(event)
        for node in event.get("nodes", ()):
            self.planned.add(node)
            if node in self.early:
                show.counted(self.early.pop(node))
        if event["replayed"] and event["id"] not in self.recorded:
            self.problems.append(f"{event['id']} is said to be recorded, but never was")
        self.recorded.add(event["id"])
        if event["type"] == "workflow_completed":
            self.output = event["output"]
            show.result(self.output)
            if self.output != RESULT:
                self.problems.append(f"the result should be {RESULT}")

    def broken_counts(self) -> list[str]:
        rows: list[tuple[str, int, str, bool]] = []
        for node, most in PROMISED.items():
            promised = "1" if most == 1 else f"at most {most}, it was in flight"
            rows.append((node, self.counts[node], promised, 1 <= self.counts[node] <= most))
        show.table(rows)
        if self.output is None:
            self.problems.append("there is no result")
        return [f"{node} ran {count} times" for node, count, _, kept in rows if not kept]


def main() -> int:
    problems = Demo().run()
    show.verdict(problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
