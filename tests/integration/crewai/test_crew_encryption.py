"""With keys, nothing of a crew's run is in clear in the sidecar's database."""

import base64
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions, until
from scripted import ScriptedLLM, Tool, final, use

from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import EncryptionKeys, StateStore

pytestmark = pytest.mark.timeout(240)
PLANTED = "planted-51c07e9d"


def _said(said: str) -> str:
    return final(f"{PLANTED} answer") if "found" in said else use("search", query=PLANTED)


@pytest.mark.parametrize("keys", [None, EncryptionKeys({"one": b"1" * 32})], ids=["off", "on"])
def test_what_is_in_the_database(tmp_path: Path, keys: EncryptionKeys | None) -> None:
    with EmbeddedSidecar(tmp_path / "db" / "a.db") as sidecar:
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
        files = [path.read_bytes() for path in sidecar.path.parent.iterdir() if path.is_file()]
        alike = [base64.b64encode(b"x" * n + PLANTED.encode())[4:-4] for n in range(3)]
        found = any(each in data for data in files for each in (PLANTED.encode(), *alike))
        assert found == (keys is None)
        assert _states(sidecar.path) > 5


def _states(path: Path) -> int:
    with sqlite3.connect(path) as database:
        count: Any = database.execute("SELECT count(*) FROM state").fetchone()[0]
    database.close()
    return count
