"""A CrewAI flow with ``@persist``. Started again, it is kicked off with the id of its state."""

from typing import Any

from crewai.flow.persistence import SQLiteFlowPersistence, persist

from chaos.setups.orders_flow import orders_flow
from chaos.trial import Trial


class _Persistence(SQLiteFlowPersistence):
    """Says when the state after the charging method is in the database."""

    trial: Any = None

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        super().save_state(flow_uuid, method_name, state_data)
        if method_name == "charge":
            self.trial.reach("recorded")


def run(trial: Trial) -> None:
    """The program."""
    persistence = _Persistence(db_path=str(trial.directory / "flow.db"), trial=trial)

    flow: Any = persist(persistence)(orders_flow(trial, lambda: None))()
    flow.kickoff(inputs={"id": trial.run})
    assert flow.state.finalized
