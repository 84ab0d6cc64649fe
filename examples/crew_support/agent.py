"""The crew's process in the demo: the events of a run, printed as JSON lines."""

import asyncio
import json
import os

from crew import support_crew

from dapr_runners.crewai import DaprWorkflowCrewRunner

SESSION = "DEMO_SESSION"


async def main() -> None:
    runner = DaprWorkflowCrewRunner(support_crew, name="crew_support")
    runner.start()
    try:
        async for event in runner.run_async(
            {"message": "My order A-17 arrived broken!"}, session_id=os.environ[SESSION]
        ):
            print(json.dumps(event, default=str), flush=True)
    finally:
        runner.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
