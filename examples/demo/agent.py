"""The graph's process: what a user would write, with the events printed as JSON lines."""

import asyncio
import json
import os

from graph import graph

from dapr_runners.langgraph import DaprWorkflowGraphRunner

THREAD = "DEMO_THREAD"


async def main() -> None:
    runner = DaprWorkflowGraphRunner(graph=graph, max_steps=50, name="simple_graph")
    runner.start()
    try:
        async for event in runner.run_async(
            input={"messages": ["hello"], "counter": 0}, thread_id=os.environ[THREAD]
        ):
            print(json.dumps(event, default=str), flush=True)
    finally:
        runner.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
