"""A CrewAI flow with Checkpointing: a checkpoint after each method; the newest is restored."""

import json
import threading
from pathlib import Path

from crewai import CheckpointConfig
from crewai.events import crewai_event_bus
from crewai.events.types.checkpoint_events import CheckpointCompletedEvent

from chaos.setups.orders_flow import orders_flow
from chaos.trial import Trial

_CHECKPOINT_SECONDS = 10.0


def run(trial: Trial) -> None:
    """The program."""

    def finalize() -> None:
        if trial.kill == "recorded":
            threading.Event().wait(_CHECKPOINT_SECONDS)  # it dies here
            raise RuntimeError("the checkpoint after the charge was not written")

    @crewai_event_bus.on(CheckpointCompletedEvent)
    def saved(source: object, event: CheckpointCompletedEvent) -> None:
        if _has_charged(Path(event.location)):
            trial.reach("recorded")

    location = trial.directory / "checkpoints"
    found = sorted(location.rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    config = CheckpointConfig(
        location=str(location),
        on_events=["method_execution_finished"],
        restore_from=found[-1] if found else None,
    )
    orders_flow(trial, finalize)().kickoff(from_checkpoint=config)
    crewai_event_bus.flush()


def _has_charged(checkpoint: Path) -> bool:
    flows = json.loads(checkpoint.read_text())["entities"]
    return any("charge" in (flow["checkpoint_completed_methods"] or []) for flow in flows)
