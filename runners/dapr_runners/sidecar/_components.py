"""Dapr's YAML files, as far as the sidecar cares: stores, pub/subs, secrets, limits."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from dapr_runners.sidecar.errors import ResourceFileError

_Mapping = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Store:
    """A state store; ``actors`` says whether workflows are kept in it."""

    name: str
    actors: bool


@dataclass(frozen=True, slots=True)
class SecretStore:
    """The secrets in the JSON file ``file``, or of the sidecar's environment."""

    file: Path | None

    def get(self, name: str) -> str | None:
        """The secret ``name``, or None. Raises :class:`ResourceFileError`."""
        if self.file is None:
            return os.environ.get(name)
        try:
            found: Any = json.loads(self.file.read_text("utf-8"))
            if name in found and isinstance(found[name], (dict, list)):
                raise ValueError(f"{name!r} is nested, and a flat file is read")
            return str(found[name]) if name in found else None
        except (OSError, ValueError, TypeError) as error:
            raise ResourceFileError(path=str(self.file), reason=f"secrets: {error}") from error


@dataclass(frozen=True, slots=True)
class Components:
    """State stores by name, the names of pub/subs, and secret stores by name."""

    stores: Mapping[str, Store]
    pubsubs: frozenset[str]
    secrets: Mapping[str, SecretStore] = field(default_factory=dict[str, SecretStore])

    @property
    def actor_store(self) -> Store | None:
        """Where workflows are kept."""
        return next((store for store in self.stores.values() if store.actors), None)


DEFAULT = Components({"statestore": Store("statestore", actors=True)}, frozenset({"pubsub"}))


def load_components(directory: Path | None, app_id: str) -> Components:
    """The components declared in ``directory``; without one, ``statestore`` and ``pubsub``.

    Whatever type a store or pub/sub is declared with, the embedded sidecar stands in for it: its
    name and the actor flag are what a program can tell apart. Secret stores are those of the
    environment and of a flat JSON file (its path is from ``directory`` on).
    """
    if directory is None:
        return DEFAULT
    if not directory.is_dir():
        raise ResourceFileError(path=str(directory), reason="it is not a directory")
    names: set[str] = set()
    stores: dict[str, Store] = {}
    pubsubs: set[str] = set()
    secrets: dict[str, SecretStore] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix not in (".yaml", ".yml"):
            continue
        for kind, name, metadata in _components(path, app_id):
            if name in names:
                raise ResourceFileError(
                    path=str(path), reason=f"a second component is named {name!r}"
                )
            names.add(name)
            if kind.startswith("state."):
                actors = metadata.get("actorStateStore", "").lower() == "true"
                stores[name] = Store(name, actors)
            elif kind.startswith("pubsub."):
                pubsubs.add(name)
            elif kind == "secretstores.local.env":
                secrets[name] = SecretStore(None)
            elif kind == "secretstores.local.file":
                secrets[name] = SecretStore(directory / metadata.get("secretsFile", ""))
    return Components(stores, frozenset(pubsubs), secrets)


def load_limits(path: Path) -> dict[str, int]:
    """The workflow concurrency limits of a Configuration file."""
    limits: dict[str, int] = {}
    for document in _documents(path):
        if document.get("kind") != "Configuration":
            continue
        try:
            workflow = cast(_Mapping, document["spec"].get("workflow") or {})
            for kind in ("Workflow", "Activity"):
                # One process stands for all replicas, so the global limit is one of its own too.
                for key in (f"maxConcurrent{kind}", f"globalMaxConcurrent{kind}"):
                    given = workflow.get(f"{key}Invocations")
                    if given is not None:
                        known = limits.get(kind.lower(), int(given))
                        limits[kind.lower()] = min(known, int(given))
                for entry in workflow.get(f"{kind.lower()}ConcurrencyLimits") or ():
                    limits[f"{kind.lower()}/{entry['name']}"] = int(entry["maxConcurrent"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ResourceFileError(path=str(path), reason=f"spec.workflow: {error!r}") from error
    return limits


def _documents(path: Path) -> list[_Mapping]:
    try:
        documents = list(cast(Any, yaml).safe_load_all(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ResourceFileError(path=str(path), reason=str(error)) from error
    return [document for document in documents if isinstance(document, dict)]


def _components(path: Path, app_id: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Type, name and metadata of the components in a file that are meant for this app."""
    for document in _documents(path):
        if document.get("kind") != "Component":
            continue
        try:
            scopes: list[str] = document.get("scopes") or []
            name = str(document["metadata"]["name"])
            kind = str(document["spec"]["type"])
            entries: list[_Mapping] = document["spec"].get("metadata") or []
            metadata = {str(entry["name"]): str(entry.get("value", "")) for entry in entries}
        except (KeyError, TypeError, AttributeError) as error:
            raise ResourceFileError(path=str(path), reason=f"a component: {error!r}") from error
        if not scopes or app_id in scopes:
            yield kind, name, metadata
