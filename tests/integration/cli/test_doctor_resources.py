"""What the doctor sees in component files, and the one file it writes."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from doctor_helpers import findings, problems
from fake_daprd import FakeDaprd, metadata

from dapr_runners.cli._resources import Resources, running_resources

pytestmark = pytest.mark.timeout(240)

STORE = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {name: NAME}
spec:
  type: state.sqlite
  version: v1
  metadata:
    - {name: connectionString, value: "PATH"}
    - {name: actorStateStore, value: "ACTORS"}
"""
SHIPPED = Path(__file__).parents[3] / "components"


@pytest.fixture(autouse=True)
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dapr_runners.cli._doctor.begin_frameworks", lambda: lambda: iter(()))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for component files, in the one that the sidecar is started in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resources").mkdir()
    return tmp_path / "resources"


def write_store(place: Path, path: str, name: str = "statestore", actors: str = "true") -> None:
    text = STORE.replace("NAME", name).replace("PATH", path).replace("ACTORS", actors)
    (place / f"{name}.yaml").write_text(text)


def problems_with(place: Path, daprd: FakeDaprd, status: int = 1) -> dict[str, Any]:
    return problems(daprd.port, "--resources-path", str(place), status=status)


# 9. the path of SQLite's file


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("missing/dapr.db", "no {here}/missing"),
        ("file:missing/dapr.db?cache=shared", "no {here}/missing"),
        ("resources", "it is a directory"),
        ("taken/dapr.db", "{here}/taken is not a directory"),
        ("closed/dapr.db", "{here}/closed is not for this user to write"),
        ("closed.db", "the file is not for this user to write"),
    ],
)
def test_a_path_that_cannot_be_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, cause: str
) -> None:
    (tmp_path / "taken").touch()
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed.db").touch()
    # The tests may run as root, for whom everything is open.
    is_open = os.access
    monkeypatch.setattr(
        os, "access", lambda at, mode: "closed" not in Path(at).name and is_open(at, mode)
    )
    write_store(place, path)
    with FakeDaprd() as daprd:
        found = problems_with(place, daprd)
    assert list(found) == ["sqlite path"]
    assert cause.format(here=tmp_path) in found["sqlite path"]["text"]
    assert "connectionString" in found["sqlite path"]["remedy"]


def test_a_sidecar_that_did_not_start_for_it(place: Path) -> None:
    with FakeDaprd() as daprd:
        port = daprd.port
    write_store(place, "missing/dapr.db")
    found = problems(port, "--resources-path", str(place))
    assert list(found) == ["sqlite path", "sidecar"]
    assert "nothing listens" in found["sidecar"]["text"]


@pytest.mark.parametrize("path", ["dapr.db", ":memory:", "resources/dapr.db"])
def test_a_path_that_can(place: Path, path: str) -> None:
    write_store(place, path)
    with FakeDaprd() as daprd:
        assert problems_with(place, daprd, status=0) == {}


# The other files


def test_no_store_for_actors_or_two(place: Path) -> None:
    write_store(place, "a.db", actors="false")
    with FakeDaprd() as daprd:
        found = problems_with(place, daprd)
        assert list(found) == ["actor store"]
        assert "is for actors" in found["actor store"]["text"]
        write_store(place, "a.db")
        write_store(place, "b.db", name="other")
        found = problems_with(place, daprd)
        assert list(found) == ["actor store"]
        assert "other and statestore" in found["actor store"]["text"]


def test_no_store_of_the_name(place: Path) -> None:
    write_store(place, "a.db", name="other")
    with FakeDaprd() as daprd:
        found = problems_with(place, daprd)
    assert "no state store in" in found["resources"]["text"]
    assert "store_name=" in found["resources"]["remedy"]


def test_files_that_cannot_be_read(place: Path) -> None:
    with FakeDaprd() as daprd:
        for text in (
            "kind: [",
            "kind: Component",
            "kind: Component\nmetadata: {name: a}\nspec: {}",
        ):
            (place / "bad.yaml").write_text(text)
            found = problems_with(place, daprd)
            assert "bad.yaml" in found["resources"]["text"]
            assert "cannot be read" in found["resources"]["text"]
        found = problems_with(place / "nowhere", daprd)
        assert "is not a directory" in found["resources"]["text"]


@pytest.mark.parametrize("folder", [".", "redis", "postgresql"])
def test_the_files_of_the_project(folder: str, tmp_path: Path) -> None:
    assert list(Resources(SHIPPED / folder, tmp_path).findings("statestore")) == []


# The Resiliency


def resiliency(daprd: FakeDaprd, *options: str) -> dict[str, Any]:
    """What is found about it; nothing else is broken."""
    told = findings(daprd.port, *options, status=0)
    return next(each for each in told if each["subject"] == "resiliency")


def test_a_resiliency_that_is_missing_is_written(place: Path) -> None:
    write_store(place, "a.db")
    given = ("--resources-path", str(place))
    with FakeDaprd(metadata(id="my-app", resiliencies=[])) as daprd:
        found = resiliency(daprd, *given)
        assert found["status"] == "warning"
        assert "no Resiliency with retries for dapr.internal.default.my-app" in found["text"]
        assert "doctor --fix" in found["remedy"]
        assert len(list(place.iterdir())) == 1
        fixed = resiliency(daprd, *given, "--fix")
        path = place / "dapr-runners-resiliency-my-app.yaml"
        assert f"{path} is written now" in fixed["text"]
        found = resiliency(daprd, *given)
        assert "has not loaded it" in found["text"]
    with FakeDaprd(metadata(id="my-app", resiliencies=[{"name": "dapr-runners-my-app"}])) as daprd:
        assert resiliency(daprd, *given)["status"] == "ok"
    written = yaml.safe_load(path.read_text())
    shipped = yaml.safe_load((SHIPPED / "resiliency.yaml").read_text())
    assert list(written["spec"]["targets"]["actors"]) == [
        each.replace("langgraph-agent", "my-app")
        for each in shipped["spec"]["targets"]["actors"]
        if "langgraph-agent" in each
    ]
    (policy,) = written["spec"]["policies"]["retries"].items()
    assert policy[1] == shipped["spec"]["policies"]["retries"]["soon"]
    assert all(
        each == {"retry": policy[0]} for each in written["spec"]["targets"]["actors"].values()
    )


def test_a_resiliency_for_another_app(place: Path) -> None:
    write_store(place, "a.db")
    (place / "resiliency.yaml").write_text((SHIPPED / "resiliency.yaml").read_text())
    with FakeDaprd(metadata(id="my-app")) as daprd:
        found = resiliency(daprd, "--resources-path", str(place))
    assert found["status"] == "warning"
    assert "what is there is for dapr.internal.default.crew-support.activity" in found["text"]
    assert "dapr.internal.default.langgraph-agent.workflow" in found["text"]


def test_what_is_there_is_not_overwritten(place: Path) -> None:
    write_store(place, "a.db")
    path = place / "dapr-runners-resiliency-my-app.yaml"
    path.write_text("kind: Resiliency\n")
    with FakeDaprd(metadata(id="my-app", resiliencies=[])) as daprd:
        found = resiliency(daprd, "--resources-path", str(place), "--fix")
    assert "was not written" in found["text"]
    assert path.read_text() == "kind: Resiliency\n"


def test_the_namespace_is_that_of_the_actors(place: Path) -> None:
    write_store(place, "a.db")
    active = [{"type": f"dapr.internal.shop.my-app.{kind}"} for kind in ("workflow", "activity")]
    told = metadata(id="my-app", resiliencies=[])
    told["actorRuntime"]["activeActors"] = active
    with FakeDaprd(told) as daprd:
        found = resiliency(daprd, "--resources-path", str(place))
    assert "for dapr.internal.shop.my-app.activity and dapr.internal.shop." in found["text"]


def test_without_a_resources_path(place: Path) -> None:
    with FakeDaprd(metadata(resiliencies=[])) as daprd:
        found = resiliency(daprd, "--fix")
        assert found["status"] == "warning"
        assert "--fix --resources-path DIRECTORY" in found["remedy"]
    with FakeDaprd() as daprd:
        assert resiliency(daprd)["status"] == "ok"
    assert running_resources("1") is None
