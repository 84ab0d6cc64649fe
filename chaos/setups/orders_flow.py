"""prepare -> charge -> finalize, as a CrewAI flow."""

from collections.abc import Callable

from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel

from chaos.trial import Trial


class Order(BaseModel):
    """The flow's state."""

    id: str = ""
    key: str | None = None
    charge: str = ""
    finalized: bool = False


def orders_flow(trial: Trial, finalize: Callable[[], None]) -> type[Flow[Order]]:
    """The flow's class; ``finalize`` is called in its last method."""
    before_the_end = finalize

    class Orders(Flow[Order]):
        @start()
        def prepare(self) -> None:
            self.state.key = trial.saved_key()

        @listen(prepare)
        def charge(self) -> None:
            self.state.charge = trial.charge(self.state.key)

        @listen(charge)
        def finalize(self) -> None:
            before_the_end()
            self.state.finalized = True

    return Orders
