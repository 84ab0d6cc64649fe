"""The same LangGraph graph on our runner. Started again, it makes the same call."""

from chaos.setups.durable_charge import charge_of
from chaos.setups.orders_graph import orders_graph
from chaos.trial import ORDER, Trial
from dapr_runners.engine import Worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import StateStore


def run(trial: Trial) -> None:
    """The program."""
    charge = charge_of(trial)
    graph = orders_graph(
        prepare=lambda: None,
        charge=lambda _: charge(),
        finalize=lambda: trial.reach("recorded"),  # it begins when the charge is recorded
    )
    runner = DaprWorkflowGraphRunner(
        graph,
        name="orders",
        store=StateStore(address=trial.sidecar),
        worker=Worker(trial.sidecar),
    )
    with runner:
        result = runner.invoke({"order": ORDER}, {"configurable": {"thread_id": trial.run}})
    assert result["finalized"]
