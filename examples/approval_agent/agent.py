"""The agent of ``graph.py`` as a durable run that waits for a person.

``agent.py`` starts it: it stops at the payment and asks. Nothing waits meanwhile, neither this
process nor a worker; the question is in the state store. ``agent.py --answer yes`` (or ``no``),
minutes or weeks later and on any machine, goes on from there.
"""

import argparse

from graph import graph
from langgraph.types import Command

from dapr_runners.langgraph import DaprWorkflowGraphRunner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thread", default="invoice-17")
    parser.add_argument("--answer", choices=["yes", "no"])
    options = parser.parse_args()

    input = {"messages": [("user", "Settle the invoice of ACME.")]}
    if options.answer is not None:
        input = Command(resume=options.answer)

    runner = DaprWorkflowGraphRunner(graph=graph, name="approval_agent")
    runner.start()
    try:
        state = runner.invoke(input, {"configurable": {"thread_id": options.thread}})
    finally:
        runner.shutdown()

    for question in state.get("__interrupt__", ()):
        print(question.value["question"], "Answer with: agent.py --answer yes|no")
    if "__interrupt__" not in state:
        print(state["messages"][-1].text)


if __name__ == "__main__":
    main()
