"""Activities that have no result yet: handed out to workers, and matched with their answers."""

from dapr_runners.sidecar._dispatch import Dispatcher, Work
from dapr_runners.sidecar._instance import text
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import StoredTask


class Tasks:
    """The activities under way, by instance and task id.

    The completion token of an activity is its execution: an answer counts whoever was asked, and
    by whichever sidecar process, but not when the workflow has begun another generation.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._tasks: dict[str, dict[int, StoredTask]] = {}
        self._left: set[str] = set()

    def plan(self, task: StoredTask) -> None:
        """An activity is scheduled; it is to run once that is durable."""
        self._tasks.setdefault(task.instance_id, {})[task.event.eventId] = task

    def run(self, task: StoredTask) -> None:
        """Hand out an activity, unless its instance ended meanwhile."""
        self._tasks.setdefault(task.instance_id, {})[task.event.eventId] = task
        scheduled = task.event.taskScheduled
        request = pb.ActivityRequest(
            name=scheduled.name,
            version=scheduled.version if scheduled.HasField("version") else None,
            input=scheduled.input if scheduled.HasField("input") else None,
            workflowInstance=pb.WorkflowInstance(
                instanceId=task.instance_id, executionId=text(task.execution_id)
            ),
            taskId=task.event.eventId,
            taskExecutionId=scheduled.taskExecutionId,
        )
        item = pb.WorkItem(activityRequest=request, completionToken=task.execution_id)
        key = ("task", task.instance_id, task.event.eventId)
        self._dispatcher.submit(Work(key, lambda _: item, limit=f"activity/{scheduled.name}"))

    def run_planned(self, tasks: list[StoredTask]) -> None:
        """Hand out the activities whose schedule is durable and still wanted."""
        for task in tasks:
            if self._tasks.get(task.instance_id, {}).get(task.event.eventId) is task:
                self.run(task)

    def take(self, response: pb.ActivityResponse) -> StoredTask | None:
        """The activity that ``response`` ends; None if it is not the first answer, or unwanted."""
        self._left.discard(response.instanceId)
        task = self._tasks.get(response.instanceId, {}).get(response.taskId)
        if task is None or task.execution_id != response.completionToken:
            return None
        self._forget(task)
        return task

    def leave_all(self, instance_id: str) -> None:
        """An instance is over, whatever its activities still do. As on daprd, its id is not free
        until one of them has answered: see :meth:`keeps`."""
        if instance_id in self._tasks:
            self._left.add(instance_id)

    def of(self, instance_id: str) -> list[StoredTask]:
        """The activities of an instance that have no result yet."""
        return list(self._tasks.get(instance_id, {}).values())

    def is_out(self, task: StoredTask) -> bool:
        """Whether a worker has an activity."""
        return self._dispatcher.is_out(("task", task.instance_id, task.event.eventId))

    def keeps(self, instance_id: str) -> bool:
        """Whether the id of an instance that is over is not free yet."""
        return instance_id in self._left

    def erase(self, instance_id: str) -> None:
        """An instance vanishes."""
        self._left.discard(instance_id)

    def forget_all(self, instance_id: str) -> None:
        """Nobody waits for the activities of an instance any more."""
        for task in list(self._tasks.get(instance_id, {}).values()):
            self._forget(task)

    def _forget(self, task: StoredTask) -> None:
        tasks = self._tasks[task.instance_id]
        del tasks[task.event.eventId]
        if not tasks:
            del self._tasks[task.instance_id]
        self._dispatcher.finish(("task", task.instance_id, task.event.eventId))
