"""What ``dapr-runners doctor`` sees in a sidecar's resources path: what a sidecar that did not
start can tell nobody."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import yaml

from dapr_runners.cli._findings import Finding

_SQLITE = ("state.sqlite", "state.sqlite3")


@dataclass(frozen=True, slots=True)
class Resources:
    """A resources path; relative paths in its files are from ``start`` (where the sidecar was
    started)."""

    path: Path
    start: Path

    def findings(self, store_name: str) -> Iterator[Finding]:
        """Whether the files can be read, and name one actor store, which can be written."""
        if not self.path.is_dir():
            yield Finding(
                "resources",
                "problem",
                f"{self.path} is not a directory, so a sidecar does not start with it",
                "point --resources-path at a directory of component files, such as components/",
            )
            return
        try:
            stores = [each for each in self.documents("Component") if _is_store(each)]
        except (OSError, ValueError) as error:
            yield Finding(
                "resources",
                "problem",
                f"a file in {self.path} cannot be read: {' '.join(str(error).split())}",
                "correct it: a sidecar does not start with it",
            )
            return
        yield from self._actor_stores(stores)
        named = [_name(each) for each in stores]
        if store_name not in named:
            yield Finding(
                "resources",
                "problem",
                f"no state store in {self.path} is named {store_name!r} (there is"
                f" {', '.join(named) or 'none'}), and the runners keep their records in it",
                "name yours with --store-name here and store_name= in the program, or add one",
            )
        for store in stores:
            if store["spec"]["type"] in _SQLITE:
                yield from self._sqlite(store)

    def documents(self, kind: str) -> list[dict[str, Any]]:
        """The documents of ``kind``. Raises OSError, and ValueError for a file that is no YAML,
        or has one without a name, a type or a spec."""
        found: list[dict[str, Any]] = []
        for path in sorted(self.path.iterdir()):
            if path.suffix in (".yaml", ".yml"):
                try:
                    found += _documents(path, kind)
                except (KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError) as error:
                    raise ValueError(f"{path.name}: {_wrong_with(error)}") from error
        return found

    def _actor_stores(self, stores: list[dict[str, Any]]) -> Iterator[Finding]:
        marked = [
            _name(each) for each in stores if str(_entry(each, "actorStateStore")).lower() == "true"
        ]
        if len(marked) > 1:
            yield Finding(
                "actor store",
                "problem",
                f"{' and '.join(marked)} in {self.path} are both for actors, and a sidecar takes"
                " one",
                'leave `actorStateStore: "true"` in one of them, and restart the sidecar',
            )
        if not marked:
            yield Finding(
                "actor store",
                "problem",
                f"no state store in {self.path} is for actors, so no workflow runs",
                'add `actorStateStore: "true"` to one (components/ of dapr-runners has ready'
                " files), and restart the sidecar",
            )

    def _sqlite(self, store: dict[str, Any]) -> Iterator[Finding]:
        told = _entry(store, "connectionString")
        if not isinstance(told, str) or not told or ":memory:" in told:
            return
        path = self.start / told.removeprefix("file:").partition("?")[0]
        reason = _unwritable(path)
        if reason is not None:
            yield Finding(
                "sqlite path",
                "problem",
                f"the file of {_name(store)}, {path}, cannot be written: {reason}. A sidecar does"
                " not start with it",
                "make the directory, and give the sidecar's user the right to write it and the"
                " file, or name another path in connectionString",
            )


def running_resources(grpc_port: str) -> Resources | None:
    """The resources path of the daprd on this machine that was started with ``grpc_port``, where
    the system tells."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text().split("\0")
            is_daprd = Path(line[0]).name == "daprd"
            if not is_daprd or f"--dapr-grpc-port={grpc_port}" not in _options(line):
                continue
            start = (process / "cwd").resolve()
        except (OSError, UnicodeDecodeError):
            continue  # it has ended, or is another user's
        for option in _options(line):
            name, _, value = option.partition("=")
            if name in ("--resources-path", "--components-path") and value:
                return Resources(start / value, start)
    return None


def _options(line: list[str]) -> list[str]:
    """Options as ``--name=value``, whether they were given so, apart, or with one dash."""
    options = [each if "=" in each else f"{each}={value}" for each, value in pairwise([*line, ""])]
    return [f"--{each.lstrip('-')}" for each in options if each.startswith("-")]


def _documents(path: Path, kind: str) -> list[dict[str, Any]]:
    every: list[Any] = list(cast(Any, yaml).safe_load_all(path.read_text("utf-8")))
    found = [each for each in every if each and each.get("kind") == kind]
    for each in found:
        _ = each["metadata"]["name"], each["spec"].get("metadata")
        if kind == "Component":
            _ = each["spec"]["type"], _entry(each, "")
    return found


def _wrong_with(error: Exception) -> str:
    """Without the lines of the file that YAML quotes: a password may be in them."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    at = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
    return f"{error.problem}{at}"


def _is_store(component: dict[str, Any]) -> bool:
    return str(component["spec"]["type"]).startswith("state.")


def _name(component: dict[str, Any]) -> str:
    return str(component["metadata"]["name"])


def _entry(component: dict[str, Any], name: str) -> Any:
    entries: Any = component["spec"].get("metadata") or ()
    return next((each.get("value") for each in entries if each["name"] == name), None)


def _unwritable(path: Path) -> str | None:
    directory = path.parent
    if path.is_dir():
        return "it is a directory"
    if not directory.is_dir():
        return f"{directory} is not a directory" if directory.exists() else f"no {directory}"
    if path.exists() and not os.access(path, os.W_OK):
        return "the file is not for this user to write"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"{directory} is not for this user to write, and SQLite makes files beside its own"
    return None
