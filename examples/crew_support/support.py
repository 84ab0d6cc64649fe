"""The crew as a durable run: ``support.py --session ticket-981``.

Killed and started again with the same session, it goes on where it was.
"""

import argparse

from crew import support_crew

from dapr_runners.crewai import DaprWorkflowCrewRunner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", default="ticket-981")
    parser.add_argument("--message", default="My order A-17 arrived broken!")
    options = parser.parse_args()

    runner = DaprWorkflowCrewRunner(support_crew, name="crew_support")
    runner.start()
    try:
        output = runner.kickoff(inputs={"message": options.message}, session_id=options.session)
    finally:
        runner.shutdown()
    for task in output.tasks_output:
        print(f"{task.agent}: {task.raw}")


if __name__ == "__main__":
    main()
