"""Options and resource files."""

from pathlib import Path

import pytest

from dapr_runners.sidecar import ResourceFileError
from dapr_runners.sidecar._components import load_components, load_limits
from dapr_runners.sidecar._settings import parse_size

STORE = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {{name: {name}}}
spec:
  type: {type}
  version: v1
  metadata: [{{name: actorStateStore, value: {actors}}}]
---
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [("4194304", 4194304), ("4Mi", 4194304), ("16M", 16_000_000), ("-1", -1), ("1ki", 1024)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "Mi", "4.5Mi", "many"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_components_without_a_directory() -> None:
    components = load_components(None, "app")
    assert list(components.stores) == ["statestore"]
    assert components.actor_store is not None
    assert components.pubsubs == {"pubsub"}


def test_components_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        STORE.format(name="orders", type="state.redis", actors='"true"')
        + STORE.format(name="cache", type="state.in-memory", actors="false")
        + "kind: Subscription\n"
    )
    (tmp_path / "b.yml").write_text(STORE.format(name="news", type="pubsub.kafka", actors="no"))
    (tmp_path / "notes.txt").write_text("kind: [")
    components = load_components(tmp_path, "app")
    assert {store.name: store.actors for store in components.stores.values()} == {
        "orders": True,
        "cache": False,
    }
    assert components.pubsubs == {"news"}


def test_two_components_of_one_name(tmp_path: Path) -> None:
    for file in ("a.yaml", "b.yaml"):
        (tmp_path / file).write_text(STORE.format(name="orders", type="state.redis", actors="no"))
    with pytest.raises(ResourceFileError, match=r"b\.yaml cannot be used: a second component"):
        load_components(tmp_path, "app")


def test_limits(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "kind: Configuration\n"
        "spec:\n"
        "  workflow:\n"
        "    maxConcurrentWorkflowInvocations: 10\n"
        "    maxConcurrentActivityInvocations: 30\n"
        "    globalMaxConcurrentActivityInvocations: 20\n"
        "    activityConcurrencyLimits: [{name: call_llm, maxConcurrent: 5}]\n"
    )
    assert load_limits(config) == {"workflow": 10, "activity": 20, "activity/call_llm": 5}
    config.write_text("kind: Configuration\nspec: {}\n")
    assert load_limits(config) == {}
