"""The instances: what memory holds of them, what is durable, and who waits for what to become so.

Memory is ahead of the file by the commits under way. It is bounded: what can be read back is
forgotten when it was not used for long.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from dapr_runners.sidecar._database import Database
from dapr_runners.sidecar._instance import Instance, View
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import Reader, Transaction

_CACHE_INSTANCES = 20_000


class Ledger:
    """All instances; histories of at most ``cache`` bytes are kept for those that only wait."""

    def __init__(self, database: Database, cache: int) -> None:
        self.rows = Reader(database.reader)
        self._database = database
        self._cache = cache
        self._loop = asyncio.get_running_loop()
        self._instances: OrderedDict[str, Instance] = OrderedDict()
        self._cached = 0
        self._waiters: dict[str, list[tuple[Callable[[View], bool], asyncio.Future[View]]]] = {}

    def find(self, instance_id: str) -> Instance | None:
        """The instance as of now, with what is not durable yet; None when there is none."""
        instance = self._instances.get(instance_id)
        if instance is None:
            view = self.rows.view(instance_id)
            if view is None:
                return None
            instance = Instance(view, published=view)
            if instance.terminal:
                return instance
            instance.inbox = self.rows.inbox(instance_id)
            self._instances[instance_id] = instance
        return None if instance.gone else instance

    def loaded(self, instance_id: str) -> Instance | None:
        """The instance if it is in memory."""
        return self._instances.get(instance_id)

    def view(self, instance_id: str) -> View | None:
        """The instance as far as it is durable."""
        instance = self._instances.get(instance_id)
        return self.rows.view(instance_id) if instance is None else instance.published

    def history(self, instance: Instance) -> list[pb.HistoryEvent]:
        """All events of an instance, read back if they are not in memory."""
        if instance.history is None:
            instance.history = []
            self.extend(instance, self.rows.history(instance.id))
        if instance.id in self._instances:
            self._instances.move_to_end(instance.id)
        return instance.history

    def extend(self, instance: Instance, events: list[pb.HistoryEvent]) -> None:
        """Add events to the history in memory."""
        assert instance.history is not None
        instance.history.extend(events)
        size = 0
        for happened in events:
            size += happened.ByteSize()
            kind = happened.WhichOneof("eventType")
            if kind == "executionSuspended":
                instance.suspended = True
            elif kind == "executionResumed":
                instance.suspended = False
            elif kind == "workflowStarted":
                instance.patches.extend(happened.workflowStarted.version.patches)
        instance.size += size
        self._cached += size

    def add(self, instance: Instance, transaction: Transaction) -> None:
        """Take in a new instance that ``transaction`` creates."""
        self._instances[instance.id] = instance
        transaction.touch(instance, instance.view)

    def bury(self, instance: Instance, transaction: Transaction) -> None:
        """Remember until the commit that an instance is gone, though its rows still are there."""
        self._instances[instance.id] = instance
        transaction.touch(instance, None)

    def drop_history(self, instance: Instance) -> None:
        """Let go of the history in memory."""
        self._cached -= instance.size
        instance.history = None
        instance.size = 0
        instance.patches = []
        instance.suspended = False

    # -- durability

    def submit(self, transaction: Transaction, *, patient: bool = False) -> None:
        """Make ``transaction`` durable; its effects show when it is."""
        self._database.submit(
            transaction.apply, lambda _, error: self._committed(transaction, error), patient=patient
        )

    async def commit(self, transaction: Transaction, *, patient: bool = False) -> None:
        """Make ``transaction`` durable, and wait until it is.

        ``patient`` where a turn follows: its own commit will do for both.
        """
        done: asyncio.Future[None] = self._loop.create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        transaction.after.append(finish)
        self.submit(transaction, patient=patient)
        await done

    async def settled(self, instance: Instance) -> None:
        """Wait until all that memory knows of ``instance`` is durable."""
        if instance.writes:
            await self.commit(Transaction())

    def _committed(self, transaction: Transaction, error: Exception | None) -> None:
        if error is not None:
            return  # The database has said so to the process, which is about to end.
        for instance, view in transaction.published:
            instance.writes -= 1
            instance.published = view
            if view is not None:
                self._announce(view)
            if not instance.writes and (instance.gone or instance.terminal):
                self.drop_history(instance)
                if self._instances.get(instance.id) is instance:
                    del self._instances[instance.id]
        for action in transaction.after:
            action()
        if self._cached > self._cache or len(self._instances) > _CACHE_INSTANCES:
            self._shrink()

    def _shrink(self) -> None:
        """Forget what was not used for longest, down to three quarters of the bounds."""
        for instance in list(self._instances.values()):
            if self._cached < self._cache * 3 // 4 and (
                len(self._instances) < _CACHE_INSTANCES * 3 // 4
            ):
                return
            if instance.idle:
                self.drop_history(instance)
                del self._instances[instance.id]

    # -- waiting

    async def wait(self, instance_id: str, until: Callable[[View], bool]) -> View:
        """The first durable view of an instance, existing yet or not, that satisfies ``until``."""
        view = self.view(instance_id)
        if view is not None and until(view):
            return view
        waiter = (until, self._loop.create_future())
        waiters = self._waiters.setdefault(instance_id, [])
        waiters.append(waiter)
        try:
            return await waiter[1]
        finally:
            waiters.remove(waiter)
            if not waiters and self._waiters.get(instance_id) is waiters:
                del self._waiters[instance_id]

    def _announce(self, view: View) -> None:
        for until, future in self._waiters.get(view.id, ()):
            if not future.done() and until(view):
                future.set_result(view)
