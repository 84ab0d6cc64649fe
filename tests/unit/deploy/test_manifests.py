"""The manifests in deploy/kubernetes: each can be read, and what refers to something finds it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.engine._serve import GRACE_SECONDS
from dapr_runners.sidecar._components import load_components, load_limits

DEPLOY = Path(__file__).parents[3] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
BASE = KUBERNETES / "base"
OVERLAYS = sorted((KUBERNETES / "overlays").iterdir())
APP = "langgraph-agent"
ANNOTATIONS = {
    "dapr.io/enabled",
    "dapr.io/app-id",
    "dapr.io/config",
    "dapr.io/api-token-secret",
    "dapr.io/enable-native-sidecar",
    "dapr.io/graceful-shutdown-seconds",
    "dapr.io/sidecar-cpu-request",
    "dapr.io/sidecar-memory-request",
    "dapr.io/sidecar-memory-limit",
    "dapr.io/sidecar-seccomp-profile-type",
    "dapr.io/log-as-json",
}
"""Those of daprd 1.18's injector that are used: it ignores what it does not know."""
OPERATIONS = {"schedule", "terminate", "raise", "pause", "resume", "purge", "get", "rerun"}


def read(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def kustomization(folder: Path) -> dict[str, Any]:
    (found,) = read(folder / "kustomization.yaml")
    assert found["kind"] == "Kustomization"
    return found


def every() -> list[dict[str, Any]]:
    """All objects of the base."""
    return [each for name in kustomization(BASE)["resources"] for each in read(BASE / name)]


def one(kind: str) -> dict[str, Any]:
    (found,) = (each for each in every() if each["kind"] == kind)
    return found


def pod() -> dict[str, Any]:
    return one("Deployment")["spec"]["template"]


def annotations() -> dict[str, str]:
    return pod()["metadata"]["annotations"]


def worker() -> dict[str, Any]:
    (found,) = pod()["spec"]["containers"]
    return found


def references(value: Any) -> list[dict[str, str]]:
    """The ``secretKeyRef`` in something, however deep."""
    if isinstance(value, dict):
        own = [value["secretKeyRef"]] if "secretKeyRef" in value else []
        return own + [found for each in value.values() for found in references(each)]
    if isinstance(value, list):
        return [found for each in value for found in references(each)]
    return []


def test_the_base_is_whole() -> None:
    assert sorted(kustomization(BASE)["resources"]) == sorted(
        path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml"
    )
    names = [(each["kind"], each["metadata"]["name"]) for each in every()]
    assert len(set(names)) == len(names)
    assert all("apiVersion" in each and "namespace" not in each["metadata"] for each in every())


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_is_of_what_is_there(overlay: Path) -> None:
    found = kustomization(overlay)
    assert [(overlay / each).resolve() for each in found["resources"]] == [BASE.resolve()]
    assert [each["name"] for each in found["images"]] == [worker()["image"]]
    assert [each["name"] for each in found["replicas"]] == [APP]
    for patch in found["patches"]:
        assert patch["target"] == {"kind": "Deployment", "name": APP}
        for operation in yaml.safe_load(patch["patch"]):
            at: Any = one("Deployment")
            for key in operation["path"].strip("/").split("/"):
                at = at[int(key)] if isinstance(at, list) else at[key]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_kustomize_builds_it(overlay: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl here")
    built = subprocess.run(
        [kubectl, "kustomize", str(overlay)], capture_output=True, text=True, check=True
    )
    found = [each for each in yaml.safe_load_all(built.stdout) if each]
    assert len(found) == len(every())
    assert {each["metadata"]["namespace"] for each in found} == {"agents"}


def test_labels() -> None:
    labels = pod()["metadata"]["labels"]
    selectors = [
        one("Deployment")["spec"]["selector"],
        one("PodDisruptionBudget")["spec"]["selector"],
    ]
    selectors += [each["labelSelector"] for each in pod()["spec"]["topologySpreadConstraints"]]
    assert all(each["matchLabels"] == labels for each in selectors)
    assert pod()["spec"]["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]


def test_the_app_id_is_the_same_everywhere() -> None:
    assert annotations()["dapr.io/app-id"] == APP
    scoped = [each for each in every() if "scopes" in each]
    assert {each["kind"] for each in scoped} == {"Component", "Resiliency", "WorkflowAccessPolicy"}
    assert all(each["scopes"] == [APP] for each in scoped)
    namespace = kustomization(BASE)["namespace"]
    spec = one("Resiliency")["spec"]
    assert list(spec["targets"]["actors"]) == [
        f"dapr.internal.{namespace}.{APP}.{kind}" for kind in ("workflow", "activity")
    ]
    for target in spec["targets"]["actors"].values():
        assert target["retry"] in spec["policies"]["retries"]


def test_the_annotations_are_known_and_point_somewhere() -> None:
    assert set(annotations()) == ANNOTATIONS
    assert all(isinstance(each, str) for each in annotations().values())
    assert annotations()["dapr.io/config"] == one("Configuration")["metadata"]["name"]


def test_secrets() -> None:
    namespace = kustomization(BASE)["namespace"]
    made = {each["metadata"]["name"]: each for each in read(KUBERNETES / "secrets.example.yaml")}
    assert all(each["metadata"]["namespace"] == namespace for each in made.values())
    referred = references(every())
    assert {each["name"] for each in referred} == set(made)
    for each in referred:
        assert each["key"] in made[each["name"]]["stringData"]
    # The injector takes the key "token", and gives it to the sidecar only.
    token = {"name": annotations()["dapr.io/api-token-secret"], "key": "token"}
    (variable,) = worker()["env"]
    assert variable["name"] == "DAPR_API_TOKEN"
    assert variable["valueFrom"]["secretKeyRef"] == token
    assert all("CHANGE-ME" in str(each["stringData"]) for each in made.values())
    assert not [each for each in every() if each["kind"] == "Secret"]


def test_the_state_store(tmp_path: Path) -> None:
    loaded = load_components(BASE, APP)
    assert loaded.actor_store is not None and loaded.actor_store.name == "statestore"
    assert one("Component")["auth"] == {"secretStore": "kubernetes"}


def test_the_configuration() -> None:
    limits = load_limits(BASE / "configuration.yaml")
    assert limits == {"workflow": 100, "activity": 64, "activity/simple_graph/validate": 20}


def test_the_access_policy() -> None:
    rules = one("WorkflowAccessPolicy")["spec"]["rules"]
    for rule in rules:
        assert set(rule) == {"callers", "workflows"}
        assert all(
            set(caller) == {"appID"} and caller["appID"] != APP for caller in rule["callers"]
        )
        for workflow in rule["workflows"]:
            assert set(workflow) == {"name", "operations"}
            assert set(workflow["operations"]) <= OPERATIONS
    program = (DEPLOY / "worker.py").read_text()
    named = {each["name"] for rule in rules for each in rule["workflows"]}
    assert named == set(re.findall(r'name="(\w+)"', program))


def test_there_is_time_to_end() -> None:
    sidecar = int(annotations()["dapr.io/graceful-shutdown-seconds"])
    assert pod()["spec"]["terminationGracePeriodSeconds"] >= GRACE_SECONDS + 5 + sidecar
    rolling = one("Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize("name", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_a_probe(name: str) -> None:
    probe = worker()[name]
    command = probe["exec"]["command"]
    assert command[0] == "dapr-runners"
    nobody_there = CliRunner().invoke(app, [*command[1:], "--dapr-grpc-port", "1"])
    assert nobody_there.exit_code == (0 if name == "livenessProbe" else 1)
    # A sidecar that does not answer is given up before Kubernetes gives up.
    assert probe["timeoutSeconds"] > 5


def test_it_runs_with_few_rights() -> None:
    spec = pod()["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert worker()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    volumes = {each["name"] for each in spec["volumes"]}
    assert {each["name"] for each in worker()["volumeMounts"]} == volumes
    assert worker()["resources"]["limits"]["memory"] and worker()["resources"]["requests"]["cpu"]
