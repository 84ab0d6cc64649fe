"""Workflow instances as rows: the statements of a transaction, and what a restart reads back."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dapr_runners.sidecar._instance import TERMINAL, Arrival, Instance, Parent, View
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._timers import Timer
from dapr_runners.sidecar._turns import TimerStart

_COLUMNS = (
    "id, name, status, execution_id, created_at, start_at, started_at, completed_at, parent_id,"
    " parent_task, parent_name, parent_execution, custom_status"
)


class Transaction:
    """Statements that become durable together, and what happens then."""

    __slots__ = ("after", "published", "statements", "touched")

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[Any, ...]]] = []
        self.touched: list[Instance] = []
        self.published: list[tuple[Instance, View | None]] = []
        self.after: list[Callable[[], None]] = []

    def apply(self, db: sqlite3.Connection) -> None:
        """Execute the statements."""
        for sql, values in self.statements:
            db.execute(sql, values)

    def touch(self, instance: Instance, view: View | None) -> None:
        """``view`` is what clients may see of ``instance`` from the commit on."""
        instance.writes += 1
        self.touched.append(instance)
        self.published.append((instance, view))

    def create(self, view: View) -> None:
        """A new instance."""
        parent = view.parent
        self._add(
            # _COLUMNS is a constant of this module.
            f"INSERT INTO instances ({_COLUMNS})"  # nosec B608
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            view.id,
            view.name,
            view.status,
            view.execution_id,
            view.created_at,
            view.start_at,
            view.started_at,
            view.completed_at,
            parent.id if parent else None,
            parent.task if parent else None,
            parent.name if parent else None,
            parent.execution_id if parent else None,
            view.custom_status,
        )
        self._add("INSERT INTO payloads (id, input) VALUES (?, ?)", view.id, view.input)

    def update(self, view: View) -> None:
        """The columns of an instance that change."""
        self._add(
            "UPDATE instances SET status = ?, execution_id = ?, created_at = ?, start_at = ?,"
            " started_at = ?, completed_at = ?, custom_status = ? WHERE id = ?",
            view.status,
            view.execution_id,
            view.created_at,
            view.start_at,
            view.started_at,
            view.completed_at,
            view.custom_status,
            view.id,
        )

    def set_input(self, instance_id: str, value: str | None) -> None:
        """The input of the next generation of an instance that continues as new."""
        self._add("UPDATE payloads SET input = ? WHERE id = ?", value, instance_id)

    def set_outcome(self, view: View) -> None:
        """Output and failure of an instance that is over."""
        failure = view.failure.SerializeToString() if view.failure is not None else None
        self._add(
            "UPDATE payloads SET output = ?, failure = ? WHERE id = ?",
            view.output,
            failure,
            view.id,
        )

    def append(self, instance_id: str, nr: int, at: int, events: list[pb.HistoryEvent]) -> None:
        """More history."""
        packed = pb.GetInstanceHistoryResponse(events=events).SerializeToString()
        self._add("INSERT INTO history VALUES (?, ?, ?, ?)", nr, instance_id, at, packed)

    def arrive(self, instance_id: str, arrival: Arrival) -> None:
        """An event in the inbox."""
        packed = arrival.event.SerializeToString()
        self._add("INSERT INTO inbox VALUES (?, ?, ?)", arrival.nr, instance_id, packed)

    def consume(self, instance_id: str, arrivals: Iterable[Arrival]) -> None:
        """Take events out of the inbox."""
        for arrival in arrivals:
            if arrival.nr is not None:
                self._add("DELETE FROM inbox WHERE nr = ?", arrival.nr)
            else:
                self.remove_timer(instance_id, arrival.event.timerFired.timerId)

    def schedule(self, instance_id: str, task: int, history: int) -> None:
        """An activity that has no result yet; its event is in row ``history``."""
        self._add("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)", instance_id, task, history)

    def finish_task(self, instance_id: str, task: int) -> None:
        """An activity has its result."""
        self._add("DELETE FROM tasks WHERE id = ? AND task = ?", instance_id, task)

    def start_timer(self, instance_id: str, timer: TimerStart) -> None:
        """A timer."""
        self._add(
            "INSERT OR REPLACE INTO timers VALUES (?, ?, ?, ?)",
            instance_id,
            timer.id,
            timer.fire_at,
            timer.event,
        )

    def remove_timer(self, instance_id: str, timer: int) -> None:
        """A timer fired or lost its purpose."""
        self._add("DELETE FROM timers WHERE id = ? AND timer = ?", instance_id, timer)

    def drop(self, instance_id: str, *tables: str) -> None:
        """Everything of an instance in ``tables``."""
        for table in tables:
            # Callers name tables of the schema, in their own code.
            self._add(f"DELETE FROM {table} WHERE id = ?", instance_id)  # nosec B608

    def _add(self, sql: str, *values: Any) -> None:
        self.statements.append((sql, values))


@dataclass(frozen=True, slots=True)
class StoredTask:
    """An activity without a result."""

    instance_id: str
    execution_id: str
    event: pb.HistoryEvent


class Reader:
    """Committed rows."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def view(self, instance_id: str) -> View | None:
        """What is known of an instance, with its payloads."""
        row = self._db.execute(
            # _COLUMNS is a constant of this module.
            f"SELECT {_COLUMNS} FROM instances WHERE id = ?",  # nosec B608
            (instance_id,),
        ).fetchone()
        if row is None:
            return None
        value, output, failure = self._db.execute(
            "SELECT input, output, failure FROM payloads WHERE id = ?", (instance_id,)
        ).fetchone()
        (updated,) = self._db.execute(
            "SELECT max(at) FROM (SELECT at FROM history WHERE id = ? ORDER BY nr DESC LIMIT 1)",
            (instance_id,),
        ).fetchone()
        (_, name, status, execution_id, created, start, started, completed, *rest) = row
        *parent, custom_status = rest
        return View(
            id=instance_id,
            name=name,
            status=status,
            execution_id=execution_id,
            created_at=created,
            updated_at=updated or created,
            start_at=start,
            started_at=started,
            completed_at=completed,
            parent=Parent(*parent) if parent[0] else None,
            custom_status=custom_status,
            input=value,
            output=output,
            failure=pb.TaskFailureDetails.FromString(failure) if failure is not None else None,
        )

    def history(self, instance_id: str) -> list[pb.HistoryEvent]:
        """All events of an instance, in order."""
        rows = self._db.execute(
            "SELECT events FROM history WHERE id = ? ORDER BY nr", (instance_id,)
        )
        # Serialized messages of one type, one after the other, are one message with their lists.
        packed = b"".join(events for (events,) in rows)
        return list(pb.GetInstanceHistoryResponse.FromString(packed).events)

    def inbox(self, instance_id: str) -> list[Arrival]:
        """Events no turn has taken in yet."""
        rows = self._db.execute(
            "SELECT nr, event FROM inbox WHERE id = ? ORDER BY nr", (instance_id,)
        )
        return [Arrival(pb.HistoryEvent.FromString(packed), nr) for nr, packed in rows]

    def with_inbox(self) -> list[str]:
        """The instances that have something to take in, in order of arrival."""
        rows = self._db.execute("SELECT id FROM inbox GROUP BY id ORDER BY min(nr)")
        return [instance_id for (instance_id,) in rows]

    def tasks(self) -> Iterator[StoredTask]:
        """Every activity without a result, the oldest first."""
        rows = self._db.execute(
            "SELECT t.id, t.task, i.execution_id, h.events FROM tasks t"
            " JOIN history h ON h.nr = t.history JOIN instances i ON i.id = t.id"
            " ORDER BY t.history, t.task"
        )
        for instance_id, task, execution_id, packed in rows:
            for event in pb.GetInstanceHistoryResponse.FromString(packed).events:
                if event.eventId == task and event.HasField("taskScheduled"):
                    yield StoredTask(instance_id, execution_id, event)

    def timers(self) -> Iterator[tuple[str, int, Timer]]:
        """Every timer that has not fired."""
        for instance_id, timer, fire_at, event in self._db.execute(
            "SELECT id, timer, fire_at, event FROM timers ORDER BY id, timer"
        ):
            yield instance_id, timer, Timer(fire_at, event)

    def scheduled_starts(self) -> list[tuple[str, int]]:
        """Instances that are to start at a given time and have not."""
        return self._db.execute(
            "SELECT id, start_at FROM instances WHERE start_at IS NOT NULL AND started_at IS NULL"
        ).fetchall()

    def ids(self, after: str, limit: int) -> list[str]:
        """Instance ids in order, from the one that follows ``after``; -1 is no limit."""
        rows = self._db.execute(
            "SELECT id FROM instances WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
        )
        return [instance_id for (instance_id,) in rows]

    def highest(self, table: str) -> int:
        """The highest row number in ``table``."""
        # Callers name a table of the schema, in their own code.
        (nr,) = self._db.execute(f"SELECT max(nr) FROM {table}").fetchone()  # nosec B608
        return nr or 0

    def active_ids(self, limit: int) -> list[str]:
        """Ids of instances that are not over."""
        marks = ", ".join(str(status) for status in sorted(TERMINAL))
        rows = self._db.execute(
            # The marks are numbers of an enumeration.
            f"SELECT id FROM instances WHERE status NOT IN ({marks}) LIMIT ?",  # nosec B608
            (limit,),
        )
        return [instance_id for (instance_id,) in rows]

    def active(self) -> int:
        """How many instances are not over."""
        marks = ", ".join(str(status) for status in sorted(TERMINAL))
        (count,) = self._db.execute(
            # The marks are numbers of an enumeration.
            f"SELECT count(*) FROM instances WHERE status NOT IN ({marks})"  # nosec B608
        ).fetchone()
        return count
