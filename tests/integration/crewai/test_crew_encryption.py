"""With keys, nothing of a crew's run is in clear in the state store."""

import base64

import pytest
from crew_helpers import Background, make_agent, make_crew, questions, until
from scripted import ScriptedLLM, Tool, final, use

from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.state import EncryptionKeys, StateStore
from engines import Sidecar
from state_files import everything, stored

pytestmark = pytest.mark.timeout(240)
PLANTED = "planted-51c07e9d"


def _said(said: str) -> str:
    return final(f"{PLANTED} answer") if "found" in said else use("search", query=PLANTED)


@pytest.mark.parametrize("keys", [None, EncryptionKeys({"one": b"1" * 32})], ids=["off", "on"])
def test_what_is_in_the_store(sidecar: Sidecar, keys: EncryptionKeys | None) -> None:
    store = StateStore(address=f"127.0.0.1:{sidecar.grpc_port}", keys=keys)
    runner = DaprWorkflowCrewRunner(
        lambda inputs: make_crew(
            make_agent(llm=ScriptedLLM(_said), tools=[Tool(lambda q: f"found {q}")]),
            human_input=True,
            description=f"{PLANTED} task {inputs}",
        ),
        name="crew",
        port=sidecar.grpc_port,
        store=store,
    )
    with runner:
        running = Background(runner, inputs={"input": PLANTED})
        (question,) = questions(runner)
        assert PLANTED in str(question.about)
        runner.answer("s", question.key, f"make it better {PLANTED}")
        again = until(lambda: [q for q in questions(runner) if q.key != question.key])[0]
        runner.answer("s", again.key, "")
        assert PLANTED in running.result().raw
    store.close()
    alike = [base64.b64encode(b"x" * n + PLANTED.encode())[4:-4] for n in range(3)]
    kept = everything(sidecar)
    found = any(each in data for data in kept for each in (PLANTED.encode(), *alike))
    assert found == (keys is None)
    assert len(stored(sidecar)) > 5
