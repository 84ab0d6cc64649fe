"""The cells of the matrix, and what should come of each."""

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.trial import KEYS, KILLS


@dataclass(frozen=True)
class Expected:
    """Of one trial: how many charges, and whether the run ends or stops at UNKNOWN."""

    charges: int
    ending: str = "done"


@dataclass(frozen=True)
class Setup:
    """A row of the table."""

    name: str
    title: str
    module: str
    """In ``chaos.setups``."""
    keys: tuple[str, ...] = KEYS
    effect: str | None = None
    """How it charges, where it is a durable run of ours: see :class:`chaos.trial.Trial`."""

    @property
    def is_ours(self) -> bool:
        """Whether what is expected is a promise of ours; else it is what was published."""
        return self.effect is not None

    def expected(self, key: str, kill: str) -> Expected:
        """What is promised, or was published, of a cell."""
        if not self.is_ours:
            return Expected(_published(self.name, key, kill))
        if self.effect == "declared" and key != "saved" and kill != "recorded":
            # Nobody can know what became of the charge, so a person is asked.
            return Expected(0 if kill == "before" else 1, "unknown")
        return Expected(1)


def _published(setup: str, key: str, kill: str) -> int:
    if key == "saved" or kill == "before":
        return 1
    return 2 if kill == "after" or setup == "crewai-persist" else 1


_EFFECTS = {
    "undeclared": ", undeclared",
    "declared": ", @effect",
    "reconciled": ", @effect, reconcile",
}

SETUPS = (
    Setup("langgraph", "LangGraph, SQLite saver", "langgraph_sqlite"),
    Setup("llamaindex", "LlamaIndex Workflows, snapshots", "llamaindex_snapshots"),
    Setup("crewai-persist", "CrewAI, @persist", "crewai_persist"),
    Setup("crewai-checkpoint", "CrewAI, Checkpointing", "crewai_checkpoint"),
    *(
        Setup(
            f"durable-{framework}-{effect}",
            f"{title} runner{shown}",
            f"{framework}_durable",
            # Undeclared, it is repeated as plain code is: what the runner gives it is a key.
            ("saved",) if effect == "undeclared" else KEYS,
            effect,
        )
        for framework, title in (("langgraph", "LangGraph"), ("crewai", "CrewAI"))
        for effect, shown in _EFFECTS.items()
    ),
)


@dataclass(frozen=True)
class Cell:
    """Trials that are alike."""

    setup: Setup
    key: str
    kill: str

    @property
    def expected(self) -> Expected:
        """What should come of each trial."""
        return self.setup.expected(self.key, self.kill)


def cells(setups: tuple[Setup, ...]) -> Iterator[Cell]:
    """All cells of ``setups``."""
    for setup in setups:
        for key in setup.keys:
            for kill in KILLS:
                yield Cell(setup, key, kill)
