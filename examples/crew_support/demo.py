"""``make demo-crew``: kill a crew's process with SIGKILL between two tool calls; start it again.

Four processes: this one; an embedded sidecar (or the one it is run beside, with ``dapr run``); one
that counts (``../demo/tally.py``); and the crew's (``agent.py``). That one is killed when the clerk
has refunded the customer, and its model is about to say so: between two tool calls.

The exit status is 0 if the result is right, each recorded call of a model or a tool was made once,
and the one in flight at most twice.
"""

import queue
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from agent import SESSION
from outside import ADDRESS

HERE = Path(__file__).parent
DEMO = HERE.parent / "demo"
sys.path.append(str(DEMO))

import show  # noqa: E402
from processes import PATIENCE_SECONDS, Child, Inbox, child, sidecar_env  # noqa: E402

RECORDED, IN_FLIGHT = "refund", "clerk/3"
PROMISED = {
    "clerk/1": 1,
    "find_order": 1,
    "clerk/2": 1,
    "refund": 1,
    "clerk/3": 2,
    "writer/1": 1,
    "send_reply": 1,
    "writer/2": 1,
}
RESULT = (
    "Refunded and told: mail to Ada: We are sorry about your lamp. 49 EUR are on their way to you."
)


class Demo:
    """What happened so far."""

    def __init__(self) -> None:
        self.inbox: Inbox = queue.Queue()
        self.counts = dict.fromkeys(PROMISED, 0)
        self.recorded: set[str] = set()
        self.result: str | None = None
        self.problems: list[str] = []

    def run(self) -> list[str]:
        """The whole demo; the promises that were broken."""
        counting = (str(DEMO / "tally.py"), "--hold", IN_FLIGHT)
        with (
            tempfile.TemporaryDirectory() as storage,
            sidecar_env() as found,
            child("tally", self.inbox, *counting, env={}) as tally,
        ):
            kind, message = self.inbox.get(timeout=PATIENCE_SECONDS)
            assert kind == "tally"
            env = {
                **found,
                ADDRESS: f"127.0.0.1:{message['port']}",
                SESSION: f"ticket-{uuid.uuid4().hex[:8]}",
                "CREWAI_LLM": "",  # what is promised is about the scripted model
                "CREWAI_DISABLE_TELEMETRY": "true",
                # CrewAI keeps the outputs of tasks for all programs in folders of one name, and
                # cannot read those of a newer version.
                "CREWAI_STORAGE_DIR": storage,
            }
            self.first_life(env)
            self.second_life(env, tally)
        return self.problems + self.broken_counts()

    def first_life(self, env: dict[str, str]) -> None:
        with child("agent", self.inbox, str(HERE / "agent.py"), env=env) as agent:
            show.heading(f"The crew runs in process {agent.pid}")
            self.follow_until(f"recorded {RECORDED}", f"begun {IN_FLIGHT}")
            agent.kill()
            show.killed(
                f"SIGKILL: process {agent.pid} is dead. The refund is made and recorded, the reply "
                "is not written yet"
            )
            self.follow_until("exit")

    def second_life(self, env: dict[str, str], tally: Child) -> None:
        with child("agent", self.inbox, str(HERE / "agent.py"), env=env) as agent:
            show.heading(f"Started again with the same session id, in process {agent.pid}")
            tally.tell("go on")
            self.follow_until("exit")
            if (code := agent.end()) != 0:
                self.problems.append(f"the second process ended with status {code}")

    def follow_until(self, *wanted: str) -> None:
        """Show what arrives until all that is ``wanted`` has.

        It can be "recorded STEP", "begun CALL", or "exit".
        """
        missing = set(wanted)
        while missing:
            kind, message = self.inbox.get(timeout=PATIENCE_SECONDS)
            if kind == "tally":
                self.counts[message["node"]] = message["count"]
                show.counted(message)
                missing.discard(f"begun {message['node']}")
            elif message["type"] == "exit":
                missing.discard("exit")
                if missing:
                    raise RuntimeError(f"the crew's process ended before {sorted(missing)}")
            else:
                self.happened(message)
                if message["type"] == "step_completed":
                    missing.discard(f"recorded {message['name']}")

    def happened(self, event: dict[str, Any]) -> None:
        kind = "replayed" if event["replayed"] else "recorded"
        match event["type"]:
            case "workflow_started":
                how = "attached to the run" if event["replayed"] else "started the run"
                show.line(kind, "run", f"{how} {event['workflow_id']}")
            case "step_completed":
                self.completed(kind, event)
            case "workflow_completed":
                self.result = event["final_response"]
                show.result(self.result)
                if self.result != RESULT:
                    self.problems.append(f"the result should be {RESULT!r}")
            case "workflow_failed":
                self.problems.append(f"the run failed: {event['error']}")

    def completed(self, kind: str, event: dict[str, Any]) -> None:
        how = "from its record, not called" if event["replayed"] else "what it gave is durable"
        show.line(kind, event["name"], f"{how} (attempt {event['attempt']})")
        if event["replayed"] and event["id"] not in self.recorded:
            self.problems.append(f"{event['id']} is said to be recorded, but never was")
        self.recorded.add(event["id"])

    def broken_counts(self) -> list[str]:
        rows: list[tuple[str, int, str, bool]] = []
        for call, most in PROMISED.items():
            promised = "1" if most == 1 else f"at most {most}, it was in flight"
            rows.append((call, self.counts[call], promised, 1 <= self.counts[call] <= most))
        show.table(rows)
        if self.result is None:
            self.problems.append("there is no result")
        return [f"{call} was called {count} times" for call, count, _, kept in rows if not kept]


def main() -> int:
    problems = Demo().run()
    show.verdict(problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
