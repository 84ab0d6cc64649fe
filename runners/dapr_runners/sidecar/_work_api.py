"""What the workflows of a sidecar are at: the steps under way, and whom the others wait for."""

import json
from typing import Any, cast

from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._instance import FOREVER, View
from dapr_runners.sidecar._storage import StoredTask

_MOST = 50
"""Workflows that are looked at."""

Row = dict[str, Any]


def work_under_way(engine: Engine) -> list[Row]:
    """A row for each step under way, and for each workflow that waits: ``run`` (its id),
    ``runner``, ``step``, ``attempt``, ``since`` (seconds since the epoch) and, if nobody works on
    it, ``waits``: "worker", "timer" (with ``until``), "person" or "decision"."""
    rows: list[Row] = []
    for instance_id in engine.ledger.rows.active_ids(_MOST):
        view = engine.ledger.view(instance_id)
        if view is not None:
            rows.extend(_rows_of(engine, view))
    for instance_id, (name, since) in list(engine.unstarted.items()):
        about: Row = {"run": instance_id, "runner": name, "step": "", "attempt": 1}
        rows.append({**about, "since": since, "waits": "worker"})
    return sorted(rows, key=lambda row: row["since"])


def _rows_of(engine: Engine, view: View) -> list[Row]:
    about: Row = {"run": view.id, "runner": view.name, "step": "", "attempt": 1}
    tasks = engine.tasks.of(view.id)
    if tasks:
        return [{**about, **_row_of(engine, view, task)} for task in tasks]
    about["since"] = view.updated_at / 1e9
    told = _plain(view.custom_status)
    if told.get("parked"):
        parked = [str(each.get("step", "")) for each in told["parked"]]
        return [{**about, "step": ", ".join(parked), "waits": "decision"}]
    if told.get("asks"):
        return [{**about, "step": str(told["asks"][0]), "waits": "person"}]
    due = engine.timers.next_of(view.id)
    if due is not None and due != FOREVER:
        return [{**about, "waits": "timer", "until": due / 1e9}]
    return [{**about, "waits": "worker"}] if engine.workers == 0 else []


def _row_of(engine: Engine, view: View, task: StoredTask) -> Row:
    name = task.event.taskScheduled.name
    item = _plain(task.event.taskScheduled.input.value)
    row: Row = {
        "step": name.removeprefix(f"{view.name}/"),
        "attempt": item.get("attempt", 1),
        "since": task.event.timestamp.ToNanoseconds() / 1e9,
    }
    if not engine.tasks.is_out(task):
        row["waits"] = "worker"
    return row


def _plain(text: str | None) -> Row:
    """An object in JSON, which the SDK may have encoded twice; an empty one for anything else."""
    found: Any = text
    for _ in range(2):
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
                return {}
    return cast(Row, found) if isinstance(found, dict) else {}
