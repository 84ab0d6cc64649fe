"""A node that charges a card once, whenever its program is killed.

The ledger, a file, stands for the payment service. With ``--die`` the program kills itself after
the charge and before it is recorded; started again, it finds the charge in the ledger and goes on.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import TypedDict

from langgraph.graph import START, StateGraph

from dapr_runners.effects import NOT_DONE, EffectRecord, current_effect, done, effect
from dapr_runners.langgraph import DaprWorkflowGraphRunner

LEDGER = Path(".dapr-runners/ledger.jsonl")


class State(TypedDict, total=False):
    order: str
    receipt: str


def charges() -> list[dict[str, str]]:
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


def find_charge(key: str, record: EffectRecord):
    """What the payment service says of a charge of which nobody knows whether it was made."""
    found = [charge["id"] for charge in charges() if charge["key"] == key]
    return done(found[0]) if found else NOT_DONE


@effect(reconcile=find_charge)
def charge(order: str) -> str:
    key = current_effect().idempotency_key
    LEDGER.parent.mkdir(exist_ok=True)
    with LEDGER.open("a") as ledger:
        ledger.write(json.dumps({"id": f"charge of {order}", "key": key}) + "\n")
    if "--die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"charge of {order}"


def checkout(state: State) -> State:
    return {"receipt": charge(state["order"])}


graph = StateGraph(State)
graph.add_node("checkout", checkout)
graph.add_edge(START, "checkout")

if __name__ == "__main__":
    with DaprWorkflowGraphRunner(graph=graph.compile(), name="charge_once") as runner:
        print(runner.invoke({"order": "order-7"}, thread_id="order-7"))
    print(f"the ledger has {len(charges())} charge(s)")
