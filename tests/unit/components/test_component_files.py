"""The files in components/: what daprd would refuse, or take and not heed."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dapr_runners.sidecar._components import load_components, load_limits

COMPONENTS = Path(__file__).parents[3] / "components"
EXAMPLES = COMPONENTS.parent / "examples"
MULTI_APP = COMPONENTS.parent / "deploy" / "dapr.yaml"
FILES = sorted(COMPONENTS.rglob("*.yaml"))
FOLDERS = [COMPONENTS, COMPONENTS / "redis", COMPONENTS / "postgresql"]
DURATION = re.compile(r"(\d+(ns|us|ms|s|m|h))+")
STORES = {"state.sqlite": "v1", "state.redis": "v1", "state.postgresql": "v2"}
WORKFLOW_FIELDS = {
    "maxConcurrentWorkflowInvocations",
    "maxConcurrentActivityInvocations",
    "globalMaxConcurrentWorkflowInvocations",
    "globalMaxConcurrentActivityInvocations",
    "workflowConcurrencyLimits",
    "activityConcurrencyLimits",
    "stateRetentionPolicy",
}


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def of_kind(kind: str) -> list[Path]:
    return [path for path in FILES if load(path).get("kind") == kind]


def documents(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [found for path in folder.glob("*.yaml") if (found := load(path)).get("kind") == kind]


def entries(component: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in component["spec"]["metadata"]}


def apps() -> list[dict[str, Any]]:
    return load(MULTI_APP)["apps"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(COMPONENTS)))
def test_each_says_when_to_use_it(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert re.match(r"# (Use it|For --config)", first)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(COMPONENTS)))
def test_its_kind_and_name(path: Path) -> None:
    found = load(path)
    assert found["apiVersion"] == "dapr.io/v1alpha1"
    assert found["kind"] in ("Component", "Configuration", "Resiliency")
    assert re.fullmatch(r"[a-z][a-z-]*", found["metadata"]["name"])
    assert set(found) <= {"apiVersion", "kind", "metadata", "spec", "auth"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_has_one_store_for_both_and_no_name_twice(folder: Path) -> None:
    loaded = load_components(folder, "langgraph-agent")
    assert set(loaded.stores) == {"statestore"}
    assert loaded.actor_store is not None
    (store,) = (each for each in documents(folder, "Component") if each["spec"]["type"] in STORES)
    assert store["spec"]["version"] == STORES[store["spec"]["type"]]
    assert entries(store)["actorStateStore"]["value"] == "true"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_secrets_are_there_by_reference(folder: Path) -> None:
    components = documents(folder, "Component")
    stores = {
        each["metadata"]["name"]
        for each in components
        if each["spec"]["type"].startswith("secretstores.")
    }
    for component in components:
        told = entries(component)
        for name, entry in told.items():
            assert ("value" in entry) != ("secretKeyRef" in entry)
            if "assword" in name or (
                name == "connectionString" and component["spec"]["type"] == "state.postgresql"
            ):
                assert entry["secretKeyRef"]["name"] == entry["secretKeyRef"]["key"]
                assert component["auth"]["secretStore"] in stores
            assert "value" not in entry or isinstance(entry["value"], str)
        referring = any("secretKeyRef" in entry for entry in told.values())
        assert ("auth" in component) == referring


def test_the_two_secret_stores_have_one_name() -> None:
    names = {
        load(path)["metadata"]["name"]
        for path in of_kind("Component")
        if load(path)["spec"]["type"].startswith("secretstores.")
    }
    assert names == {"secrets"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_resiliency_is_for_the_apps_that_are_run_with_it(folder: Path) -> None:
    (found,) = documents(folder, "Resiliency")
    policies: dict[str, Any] = found["spec"]["policies"]["retries"]
    actors: dict[str, Any] = found["spec"]["targets"]["actors"]
    assert list(actors) == [
        f"dapr.internal.default.{app['appID']}.{kind}"
        for app in apps()
        for kind in ("workflow", "activity")
    ]
    for target in actors.values():
        assert target["retry"] in policies
    for policy in policies.values():
        assert policy["policy"] == "constant"
        assert DURATION.fullmatch(policy["duration"])


@pytest.mark.parametrize("path", of_kind("Configuration"), ids=lambda path: path.name)
def test_a_configuration(path: Path) -> None:
    spec = load(path)["spec"]
    assert isinstance(spec["tracing"]["samplingRate"], str)
    assert 0 <= float(spec["tracing"]["samplingRate"]) <= 1
    if float(spec["tracing"]["samplingRate"]):
        otel = spec["tracing"]["otel"]
        assert set(otel) == {"endpointAddress", "protocol", "isSecure"}
        assert otel["protocol"] in ("grpc", "http")
    assert set(spec["workflow"]) <= WORKFLOW_FIELDS
    for duration in spec["workflow"]["stateRetentionPolicy"].values():
        assert DURATION.fullmatch(duration)
    assert set(spec["workflow"]["stateRetentionPolicy"]) == {"completed", "terminated", "failed"}
    load_limits(path)


def test_the_limits_of_production() -> None:
    assert load_limits(COMPONENTS / "config" / "production.yaml") == {
        "workflow": 100,
        "activity": 64,
        "workflow/simple_graph": 200,
        "activity/simple_graph/validate": 20,
    }


def test_the_multi_app_run() -> None:
    found = load(MULTI_APP)
    assert found["version"] == 1
    common = found["common"]
    assert (MULTI_APP.parent / common["resourcesPath"] / "statestore.yaml").is_file()
    assert (MULTI_APP.parent / common["configFilePath"]).is_file()
    identities = [app["appID"] for app in apps()]
    assert len(set(identities)) == len(identities)
    for app in apps():
        place = (MULTI_APP.parent / app["appDirPath"]).resolve()
        assert place.parent == EXAMPLES
        assert app["command"][0] == "python3"
        assert (place / app["command"][1]).is_file()
