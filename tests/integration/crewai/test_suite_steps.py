"""What `make suite-crewai` drives CrewAI's own tests with."""

from pathlib import Path

import pytest
from crew_helpers import make_agent, make_crew
from scripted import searching

_SUITES = Path(__file__).parents[2] / "suites"


def test_a_crew_is_driven_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (_SUITES, _SUITES / "crewai"):
        monkeypatch.syspath_prepend(str(folder))
    from steps import Steps

    steps = Steps()
    result = steps.run(lambda: make_crew(make_agent(searching(count=2))).kickoff())
    assert result.raw == make_crew(make_agent(searching(count=2))).kickoff().raw
    assert steps.counts == {"runs": 1, "llm steps": 3, "tool steps": 2}
