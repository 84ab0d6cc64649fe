"""The graph of ``graph.py`` as a durable run: one line makes the runner, the rest is use.

Kill this program at any point and start it again: the run goes on where it was.
"""

import asyncio

from graph import graph

from dapr_runners import progress
from dapr_runners.langgraph import DaprWorkflowGraphRunner


async def main() -> None:
    runner = DaprWorkflowGraphRunner(graph=graph, max_steps=50, name="simple_graph")
    runner.start()
    try:
        events = runner.run_async(
            input={"messages": ["hello"], "counter": 0}, thread_id="order-4711"
        )
        async for event in progress(events):  # shows what takes long, on a terminal
            print(event["type"], event.get("status", ""))
            if event["type"] == "workflow_completed":
                print(event["output"])
    finally:
        runner.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
