"""A CrewAI flow with ``@persist``. Started again, it is kicked off with the id of its state."""

from typing import Any

from crewai.flow.flow import Flow, listen, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from pydantic import BaseModel

from chaos.trial import Trial


class _Persistence(SQLiteFlowPersistence):
    """Says when the state after the charging method is in the database."""

    trial: Any = None

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        super().save_state(flow_uuid, method_name, state_data)
        if method_name == "charge":
            self.trial.reach("recorded")


class Order(BaseModel):
    """The flow's state."""

    id: str = ""
    key: str | None = None
    charge: str = ""
    finalized: bool = False


def run(trial: Trial) -> None:
    """The program."""
    persistence = _Persistence(db_path=str(trial.directory / "flow.db"), trial=trial)

    @persist(persistence)
    class Orders(Flow[Order]):
        @start()
        def prepare(self) -> None:
            self.state.key = trial.saved_key()

        @listen(prepare)
        def charge(self) -> None:
            self.state.charge = trial.charge(self.state.key)

        @listen(charge)
        def finalize(self) -> None:
            self.state.finalized = True

    flow = Orders()
    flow.kickoff(inputs={"id": trial.run})
    assert flow.state.finalized
