"""Plain LangGraph with its SQLite saver. Started again, it calls with no input, which resumes."""

import sqlite3

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite import SqliteSaver

from chaos.setups.orders_graph import orders_graph
from chaos.trial import ORDER, Trial


class _Saver(SqliteSaver):
    """Says when the checkpoint after the charging node is in the database."""

    trial: Trial

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        saved = super().put(config, checkpoint, metadata, new_versions)
        if "charge" in checkpoint["channel_values"]:
            self.trial.reach("recorded")
        return saved


def run(trial: Trial) -> None:
    """The program."""
    database = sqlite3.connect(trial.directory / "checkpoints.db", check_same_thread=False)
    saver = _Saver(database)
    saver.trial = trial
    graph = orders_graph(trial.saved_key, trial.charge, lambda: None, saver)
    config: RunnableConfig = {"configurable": {"thread_id": trial.run}}
    # Not .next: that is empty once the node in flight has its writes saved.
    has_begun = graph.get_state(config).created_at is not None
    result = graph.invoke(None if has_begun else {"order": ORDER}, config)
    assert result["finalized"]
