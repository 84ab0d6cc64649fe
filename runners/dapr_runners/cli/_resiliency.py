"""The Resiliency that daprd's workflow engine needs, as ``dapr-runners doctor`` looks for it and
writes it.

Without one, daprd 1.18 waits a second before it goes on after some fan-outs.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dapr_runners.cli._findings import Finding
from dapr_runners.cli._resources import Resources

_KUBERNETES = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PREFIX, _KINDS = "dapr.internal.", ("workflow", "activity")
_PAUSES = "some fan-outs will pause for a second"

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_TEMPLATE = """\
# Written by `dapr-runners doctor --fix`: the retries of daprd's workflow engine for the app {app}.
# Without them, daprd 1.18 waits a second before it goes on after some fan-outs.
apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata:
  name: dapr-runners-{app}
scopes: ["{app}"]
spec:
  policies:
    retries:
      workflowActorsOf{policy}: {{policy: constant, duration: 10ms, maxRetries: 200}}
  targets:
    actors:
      {workflow}: {{retry: workflowActorsOf{policy}}}
      {activity}: {{retry: workflowActorsOf{policy}}}
"""


def resiliency_findings(metadata: Any, resources: Resources | None, fix: bool) -> Iterator[Finding]:
    """Whether the workflow actors of the app have retries of their own. ``fix`` writes them into
    ``resources``, if that has none for them."""
    wanted = _actor_types(metadata)
    loaded = [each.name for each in metadata.resiliencies]
    covered = _covered(resources, metadata.id)
    if covered is not None and wanted <= covered:
        if loaded:
            yield Finding("resiliency", "ok", f"{', '.join(loaded)}, for {' and '.join(_KINDS)}")
        else:
            yield Finding(
                "resiliency",
                "warning",
                f"that for {metadata.id} is there, and the sidecar has not loaded it: {_PAUSES}",
                "restart the sidecar",
            )
        return
    if covered is None and loaded:
        # It cannot be seen for whom they are.
        yield Finding("resiliency", "ok", f"{', '.join(loaded)} (--resources-path tells more)")
        return
    missing = " and ".join(sorted(wanted - (covered or set())))
    others = f"; what is there is for {', '.join(sorted(covered))}" if covered else ""
    cause = f"no Resiliency with retries for {missing}{others}: {_PAUSES}"
    if fix and resources is not None:
        yield _write(resources, metadata.id, wanted, cause)
    else:
        where = "" if resources is not None else " --resources-path DIRECTORY"
        remedy = (
            f"`dapr-runners doctor --fix{where}` writes one; on Kubernetes, apply"
            " components/resiliency.yaml with this app id and namespace"
        )
        yield Finding("resiliency", "warning", cause, remedy)


def _actor_types(metadata: Any) -> set[str]:
    """The types of the app's workflow actors. While a worker is there, the sidecar tells them."""
    kinds = tuple(f".{metadata.id}.{kind}" for kind in _KINDS)
    active = [each.type for each in metadata.actor_runtime.active_actors]
    told = {each for each in active if each.startswith(_PREFIX) and each.endswith(kinds)}
    if len(told) == len(_KINDS):
        return told
    return {f"{_PREFIX}{_namespace()}.{metadata.id}.{kind}" for kind in _KINDS}


def _namespace() -> str:
    if _KUBERNETES.is_file():
        return _KUBERNETES.read_text().strip()
    return os.environ.get("NAMESPACE") or "default"


def _covered(resources: Resources | None, app_id: str) -> set[str] | None:
    """The actor types that Resiliency files give retries, to this app; None where they are not
    known."""
    if resources is None:
        return None
    try:
        documents = resources.documents("Resiliency")
    except (OSError, ValueError):
        return None
    covered: set[str] = set()
    for each in documents:
        targets: Mapping[str, Any] = each["spec"].get("targets") or _NOTHING
        actors: Mapping[str, Any] = targets.get("actors") or _NOTHING
        for name, policies in actors.items():
            if policies and policies.get("retry") and app_id in (each.get("scopes") or [app_id]):
                covered.add(name)
    return covered


def _write(resources: Resources, app_id: str, wanted: set[str], cause: str) -> Finding:
    path = resources.path / f"dapr-runners-resiliency-{app_id}.yaml"
    activity, workflow = sorted(wanted)
    text = _TEMPLATE.format(
        app=app_id,
        policy="".join(filter(str.isalnum, app_id.title())),
        workflow=workflow,
        activity=activity,
    )
    try:
        with path.open("x") as file:
            file.write(text)
    except OSError as error:
        remedy = f"put it there by hand, as in components/resiliency.yaml, for {app_id}"
        return Finding("resiliency", "warning", f"{cause}; {path} was not written: {error}", remedy)
    return Finding(
        "resiliency",
        "warning",
        f"there was {cause}. {path} is written now",
        "daprd 1.18 takes it up by itself, and starts anew for it; restart an older one",
    )
