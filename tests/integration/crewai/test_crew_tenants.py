"""Crews, agents and flows of tenants: nobody else finds them, or answers their questions."""

from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions
from crewai import Flow, Task
from crewai.flow.flow import start

from dapr_runners import current_step
from dapr_runners.crewai import (
    DaprWorkflowAgentRunner,
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
)
from dapr_runners.effects import effect
from dapr_runners.engine import RunNotFoundError, TenantMismatchError, tenant_mark

pytestmark = pytest.mark.timeout(240)
ACME = tenant_mark("acme")


@effect
def whose() -> str:
    step = current_step()
    assert step is not None
    return step.tenant_id


class Asked(Flow[Any]):
    @start()
    def begin(self) -> str:
        return f"{whose()}:{self.state.get('word', '')}"


def test_a_question_is_answered_by_its_tenant_alone(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    acme, umbrella = runner.for_tenant("acme"), runner.for_tenant("umbrella")
    running = Background(acme)
    (question,) = questions(acme)
    run = acme._resolve(None, "s")
    assert run.startswith(ACME)
    for on in (runner, umbrella):
        told: list[str] = []
        for id in (run, run[:-1] + "9"):
            for call in (
                lambda id, on=on: on.pending(run_id=id),
                lambda id, on=on: on.answer(None, question.key, "", run_id=id),
                lambda id, on=on: on.result(run_id=id),
                lambda id, on=on: on.resume(run_id=id),
                lambda id, on=on: on.cancel(id),
                lambda id, on=on: on.purge(id),
            ):
                with pytest.raises(RunNotFoundError) as refused:
                    call(id)
                told.append(str(refused.value).replace(id, "ID"))
        assert told[:6] == told[6:]
        for by_session in (on.pending, on.result, on.resume):
            with pytest.raises(RunNotFoundError):
                by_session("s")
    acme.answer("s", question.key, "")
    running.result()
    assert acme.result("s").raw == acme.result(run_id=run).raw


@pytest.mark.parametrize("name_it", ["for_tenant", "tenant_id"])
def test_a_session_is_another_for_each_tenant(make: Any, name_it: str) -> None:
    runner = make(DaprWorkflowFlowRunner, Asked)

    def kickoff(tenant: str, word: str) -> Any:
        inputs = {"word": word}
        if name_it == "for_tenant":
            return runner.for_tenant(tenant).kickoff(inputs, session_id="s")
        return runner.kickoff(inputs, session_id="s", tenant_id=tenant)

    assert kickoff("acme", "one") == "acme:one"
    assert kickoff("umbrella", "two") == "umbrella:two"
    assert runner.kickoff({"word": "three"}, session_id="s") == ":three"
    assert runner.for_tenant("acme").result("s") == "acme:one"
    assert runner.for_tenant("umbrella").result("s") == "umbrella:two"
    assert runner.result("s") == ":three"
    with pytest.raises(TenantMismatchError):
        runner.for_tenant("acme").kickoff({}, session_id="s", tenant_id="umbrella")


async def test_events_and_runs_of_an_agent_are_under_its_tenant(make: Any) -> None:
    agent = make_agent()
    runner = make(DaprWorkflowAgentRunner, agent)
    task = Task(description="d", expected_output="e", agent=agent)
    acme = runner.for_tenant("acme")
    events = [event async for event in acme.run_async(task=task, run_id="ticket-1")]
    assert {event["workflow_id"] for event in events} == {f"{ACME}ticket-1"}
    assert acme.result(run_id="ticket-1").raw == events[-1]["output"].raw
    assert runner.get_workflow_status("ticket-1") is None
    assert acme.get_workflow_status("ticket-1") is not None
