"""Crews on the newest CrewAI that is allowed, and on the minor version before the locked one, which
is the oldest allowed: what is private differs between them."""

import os
from collections import Counter
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.other_python import InstallError, python_with

_LOCKED = "1.15.17"
_NEWEST = "1.15.30"
_BEFORE = "1.14.7"
"""The newest of the minor version before."""
_PACKAGES = ("crewai", "crewai-core", "crewai-cli")
_WITH_IT = {_NEWEST: ["lancedb==0.40.0"]}
"""What a version cannot share with the locked one."""
_SEARCHES = {
    "two_agents": ("a report", ["a0", "a1", "b0"], "a1"),
    "hierarchical": ("managed", ["w0", "w1"], "w0"),
    "flow": ("result end 1", ["left-0", "right-0", "end-0"], "end-0"),
    "three_at_once": ("all", [f"{task}-{n}" for task in range(3) for n in range(2)], "1-1"),
}
_QUICK = [(_BEFORE, "two_agents"), (_BEFORE, "flow"), (_NEWEST, "two_agents")]


@pytest.fixture(scope="module")
def pythons(request: pytest.FixtureRequest) -> dict[str, Path]:
    """An interpreter for each version."""
    directory = request.config.cache.mkdir("crewai-versions")
    try:
        return {
            version: python_with(
                [*(f"{name}=={version}" for name in _PACKAGES), *_WITH_IT.get(version, [])],
                directory,
            )
            for version in (_BEFORE, _NEWEST)
        }
    except InstallError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"other versions of CrewAI cannot be installed here: {error}")


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CrewAI's own, without what another version of it has left there: an older one cannot read
    the outputs of tasks that a newer one has written."""
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))


def test_they_are_what_the_project_says() -> None:
    root = Path(__file__).parents[2]
    assert f'"crewai>={_LOCKED},<1.16"' in (root / "pyproject.toml").read_text()
    assert f"\ncrewai=={_LOCKED} " in (root / "requirements" / "dev.lock").read_text()
    assert f"CREWAI := {_LOCKED}\n" in (root / "Makefile").read_text()
    readme = (root / "README.md").read_text()
    assert all(f" {version} | CI" in readme for version in (_LOCKED, _NEWEST, _BEFORE))
    assert f"OLD_CREWAI := {_BEFORE}\n" in (root / "Makefile").read_text()


@pytest.mark.parametrize(
    ("version", "program"),
    [
        pytest.param(at, name, marks=() if (at, name) in _QUICK else pytest.mark.slow)
        for at in (_BEFORE, _NEWEST)
        for name in _SEARCHES
    ],
)
@pytest.mark.timeout(300)  # the first has to install something
def test_a_crew_goes_on_after_its_worker_was_killed(
    version: str, program: str, pythons: dict[str, Path], cluster: Cluster
) -> None:
    result, searches, dies_in = _SEARCHES[program]
    cluster.use_crew(f"crews:{program}")
    cluster.effects.arm(f"searched {dies_in}", "die", "go")
    first = cluster.worker_on(pythons[version])
    first.send("call", "s", {"topic": "Dapr"})
    first.wait_dead()
    before = Counter(cluster.effects.points())
    second = cluster.worker_on(pythons[version])
    assert second.ask("crewai_version") == version
    told = second.ask("resume", "s")
    assert (told if program == "flow" else told["raw"]) == result

    after = Counter(cluster.effects.points())
    assert after[f"search {dies_in}"] == 2
    others = [f"search {search}" for search in searches if search != dies_in]
    # Of tasks at once, more than one call may have been in flight.
    again = [search for search in others if after[search] > 1]
    assert all(after[search] == 2 and before[search] == 1 for search in again)
    assert set(others) <= set(after)
    if program != "three_at_once":
        assert again == []
