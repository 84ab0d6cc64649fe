"""The gRPC service the workflow part of the Dapr SDK speaks: workers and clients."""

import asyncio
import uuid
from collections.abc import Callable

import grpc

from dapr_runners.sidecar import _effects, _lifecycle, _rerun
from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._grpc import Context, abort
from dapr_runners.sidecar._instance import TERMINAL, Instance, View, event, timestamp, unwrap
from dapr_runners.sidecar._protos import STATEFUL_HISTORY, Empty, pb, task_hub
from dapr_runners.sidecar._storage import Transaction

_NOT_FOUND = "no such instance exists"
_NO_ACTOR_STORE = (
    "the state store is not configured to use the actor runtime. Have you set the - name:"
    ' actorStateStore value: "true" in your state store component file?'
)
_NO_WORKER = (
    "failed to lookup actor: api error: code = FailedPrecondition desc = did not find address for"
    " actor 'dapr.internal.default.{app}.workflow/{id}'"
)
_STALLED = "failed to invoke method for workflow '{id}': actor is stalled"
_CREATE = "failed to create workflow instance: "
_TERMINATE = "failed to submit termination request: "
_PURGE = "failed to purge workflow state: "
_LOAD = "failed to load workflow metadata: "
_API_ERROR = "api error: code = Internal desc = "


class WorkflowApi(task_hub.TaskHubSidecarServiceServicer):
    """``TaskHubSidecarService`` on an :class:`Engine`.

    As on daprd, instances are actors of the app, which exist only while it has a worker connected:
    until then what would change or watch one is refused or waits. ``actors`` says whether there is
    a state store to keep them in.
    """

    def __init__(self, engine: Engine, *, actors: bool) -> None:
        self._engine = engine
        self._actors = actors

    # -- workers

    async def Hello(self, request: Empty, context: Context) -> Empty:
        return Empty()

    async def GetWorkItems(self, request: pb.GetWorkItemsRequest, context: Context) -> None:
        if not self._actors:
            await asyncio.Event().wait()  # daprd lets such a worker wait, too.
        keeps = STATEFUL_HISTORY is not None and STATEFUL_HISTORY in request.capabilities
        stream = self._engine.open(keeps)
        try:
            while True:
                await context.write(await stream.next())
        finally:
            self._engine.close(stream)

    async def CompleteActivityTask(
        self, request: pb.ActivityResponse, context: Context
    ) -> pb.CompleteTaskResponse:
        transaction = self._engine.finish_task(request)
        if transaction is not None:
            await self._engine.ledger.commit(transaction, patient=True)
        return pb.CompleteTaskResponse()

    async def CompleteOrchestratorTask(
        self, request: pb.WorkflowResponse, context: Context
    ) -> pb.CompleteTaskResponse:
        transaction = self._engine.finish_turn(request, _effects.apply)
        if transaction is not None:
            await self._engine.ledger.commit(transaction)
        return pb.CompleteTaskResponse()

    CompleteWorkflowTask = CompleteOrchestratorTask

    # -- clients

    async def StartInstance(
        self, request: pb.CreateInstanceRequest, context: Context
    ) -> pb.CreateInstanceResponse:
        await self._check_store(context, f"{_CREATE}{_API_ERROR}")
        await self._engine.worker_for(request.instanceId, request.name)
        existing = self._engine.ledger.find(request.instanceId)
        if existing is not None:
            await self._check_stalled(existing, context, _CREATE)
        more: dict[str, object] = {}
        for field in ("scheduledStartTimestamp", "parentTraceContext"):
            if request.HasField(field):  # pyright: ignore[reportArgumentType]
                more[field] = getattr(request, field)
        start = _lifecycle.start_event(
            self._engine, request.instanceId, request.name, unwrap(request, "input"), **more
        )
        transaction = Transaction()
        try:
            _lifecycle.create(self._engine, start, transaction)
        except _lifecycle.AlreadyExistsError as error:
            detail = f"{_CREATE}rpc error: code = AlreadyExists desc = {error}"
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, detail)
        except _lifecycle.AwaitingError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"{_CREATE}{error}")
        await self._engine.ledger.commit(transaction, patient=True)
        if not request.HasField("scheduledStartTimestamp"):
            await self._engine.ledger.wait(request.instanceId, lambda view: view.started)
        return pb.CreateInstanceResponse(instanceId=request.instanceId)

    async def GetInstance(
        self, request: pb.GetInstanceRequest, context: Context
    ) -> pb.GetInstanceResponse:
        await self._check_store(context, _LOAD + _API_ERROR)
        view = self._engine.ledger.view(request.instanceId)
        if view is None:
            return pb.GetInstanceResponse(exists=False)
        return _state(view, request.getInputsAndOutputs)

    async def WaitForInstanceStart(
        self, request: pb.GetInstanceRequest, context: Context
    ) -> pb.GetInstanceResponse:
        return await self._wait(request, lambda view: view.started)

    async def WaitForInstanceCompletion(
        self, request: pb.GetInstanceRequest, context: Context
    ) -> pb.GetInstanceResponse:
        return await self._wait(request, lambda view: view.status in TERMINAL)

    async def RaiseEvent(
        self, request: pb.RaiseEventRequest, context: Context
    ) -> pb.RaiseEventResponse:
        raised = pb.EventRaisedEvent(
            name=request.name, input=request.input if request.HasField("input") else None
        )
        instance = await self._instance(request.instanceId, context)
        await self._tell(instance, event(eventRaised=raised))
        return pb.RaiseEventResponse()

    async def TerminateInstance(
        self, request: pb.TerminateRequest, context: Context
    ) -> pb.TerminateResponse:
        terminated = pb.ExecutionTerminatedEvent(
            input=request.output if request.HasField("output") else None,
            recurse=request.recursive,
        )
        instance = await self._instance(request.instanceId, context, _TERMINATE)
        await self._tell_and_wait(instance, event(executionTerminated=terminated))
        return pb.TerminateResponse()

    async def SuspendInstance(
        self, request: pb.SuspendRequest, context: Context
    ) -> pb.SuspendResponse:
        reason = request.reason if request.HasField("reason") else None
        instance = await self._instance(request.instanceId, context)
        suspended = pb.ExecutionSuspendedEvent(input=reason)
        await self._tell_and_wait(instance, event(executionSuspended=suspended))
        return pb.SuspendResponse()

    async def ResumeInstance(
        self, request: pb.ResumeRequest, context: Context
    ) -> pb.ResumeResponse:
        reason = request.reason if request.HasField("reason") else None
        instance = await self._instance(request.instanceId, context)
        resumed = pb.ExecutionResumedEvent(input=reason)
        await self._tell_and_wait(instance, event(executionResumed=resumed))
        return pb.ResumeResponse()

    async def PurgeInstances(
        self, request: pb.PurgeInstancesRequest, context: Context
    ) -> pb.PurgeInstancesResponse:
        if request.HasField("purgeInstanceFilter"):
            await context.abort(
                grpc.StatusCode.UNKNOWN, "multi-instance purge is not unimplemented"
            )
        await self._check_store(context, f"{_PURGE}{_API_ERROR}")
        instance = self._engine.ledger.find(request.instanceId)
        if not (request.force or request.recursive):
            await self._check_worker(request.instanceId, context, _PURGE)
        if instance is None:
            where = "failed to fetch workflow state: " if request.recursive else ""
            await abort(context, grpc.StatusCode.UNKNOWN, _PURGE + where + _NOT_FOUND)
        if not (request.force or request.recursive):
            await self._check_stalled(instance, context, _PURGE)
        transaction = Transaction()
        try:
            _lifecycle.check_purge(self._engine, instance, request.recursive, request.force)
        except _lifecycle.NotCompletedError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"{_PURGE}{error}")
        if not request.force:
            await self._check_worker(request.instanceId, context, _PURGE)
        count = _lifecycle.purge(self._engine, instance, request.recursive, transaction)
        await self._engine.ledger.commit(transaction)
        return pb.PurgeInstancesResponse(deletedInstanceCount=count)

    async def ListInstanceIDs(
        self, request: pb.ListInstanceIDsRequest, context: Context
    ) -> pb.ListInstanceIDsResponse:
        if not self._actors:
            await context.abort(grpc.StatusCode.UNKNOWN, "no state store with actor support found")
        size = request.pageSize if request.HasField("pageSize") else 0
        ids = self._engine.ledger.rows.ids(request.continuationToken, size + 1 if size else -1)
        if size and len(ids) > size:
            return pb.ListInstanceIDsResponse(
                instanceIds=ids[:size], continuationToken=ids[size - 1]
            )
        return pb.ListInstanceIDsResponse(instanceIds=ids)

    async def GetInstanceHistory(
        self, request: pb.GetInstanceHistoryRequest, context: Context
    ) -> pb.GetInstanceHistoryResponse:
        await self._check_store(context, _LOAD + _API_ERROR)
        instance = self._engine.ledger.find(request.instanceId)
        if instance is None:
            await abort(
                context,
                grpc.StatusCode.NOT_FOUND,
                f"workflow instance '{request.instanceId}' not found",
            )
        await self._engine.ledger.settled(instance)
        return pb.GetInstanceHistoryResponse(events=self._engine.ledger.history(instance))

    async def RerunWorkflowFromEvent(
        self, request: pb.RerunWorkflowFromEventRequest, context: Context
    ) -> pb.RerunWorkflowFromEventResponse:
        await self._check_store(context)
        await self._check_worker(request.sourceInstanceID, context)
        new_id = request.newInstanceID if request.HasField("newInstanceID") else str(uuid.uuid4())
        transaction = Transaction()
        try:
            _rerun.rerun(self._engine, request, new_id, transaction)
        except _rerun.RerunError as error:
            await context.abort(error.code, str(error))
        await self._engine.ledger.commit(transaction)
        return pb.RerunWorkflowFromEventResponse(newInstanceID=new_id)

    # -- helpers

    async def _check_store(self, context: Context, doing: str = "") -> None:
        if not self._actors:
            await context.abort(grpc.StatusCode.INTERNAL, doing + _NO_ACTOR_STORE)

    async def _check_worker(self, instance_id: str, context: Context, doing: str = "") -> None:
        if not self._engine.connected.is_set():
            detail = doing + _NO_WORKER.format(app=self._engine.app_id, id=instance_id)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, detail)

    async def _instance(self, instance_id: str, context: Context, doing: str = "") -> Instance:
        await self._check_store(context, doing)
        await self._check_worker(instance_id, context, doing)
        instance = self._engine.ledger.find(instance_id)
        if instance is None:
            await abort(context, grpc.StatusCode.UNKNOWN, doing + _NOT_FOUND)
        await self._check_stalled(instance, context, doing)
        return instance

    async def _check_stalled(self, instance: Instance, context: Context, doing: str) -> None:
        # daprd's actor holds still; only a forced purge gets through to it.
        if instance.stalled is not None:
            detail = doing + _STALLED.format(id=instance.id)
            await context.abort(grpc.StatusCode.UNKNOWN, detail)

    async def _wait(
        self, request: pb.GetInstanceRequest, until: Callable[[View], bool]
    ) -> pb.GetInstanceResponse:
        await self._engine.connected.wait()
        view = await self._engine.ledger.wait(request.instanceId, until)
        return _state(view, request.getInputsAndOutputs)

    async def _tell(self, instance: Instance, happened: pb.HistoryEvent) -> None:
        if instance.terminal:
            await self._engine.ledger.settled(instance)
            return
        transaction = Transaction()
        self._engine.arrive(instance, happened, transaction)
        await self._engine.ledger.commit(transaction)

    async def _tell_and_wait(self, instance: Instance, happened: pb.HistoryEvent) -> None:
        if instance.terminal:
            await self._engine.ledger.settled(instance)
            return
        applied = asyncio.Event()
        transaction = Transaction()
        self._engine.arrive(instance, happened, transaction, applied.set)
        self._engine.ledger.submit(transaction)
        await applied.wait()


def _state(view: View, payloads: bool) -> pb.GetInstanceResponse:
    # daprd reads all of this from the history, so until the first turn there is no name either.
    begun = view.started_at is not None
    state = pb.WorkflowState(
        instanceId=view.id,
        name=view.name if begun else "",
        workflowStatus=view.status,  # pyright: ignore[reportArgumentType]
        createdTimestamp=timestamp(view.created_at),
        lastUpdatedTimestamp=timestamp(view.updated_at),
    )
    if payloads and begun:
        for field, value in (
            ("input", view.input),
            ("output", view.output),
            ("customStatus", view.custom_status),
        ):
            if value is not None:
                getattr(state, field).value = value
        if view.failure is not None:
            state.failureDetails.CopyFrom(view.failure)
    return pb.GetInstanceResponse(exists=True, workflowState=state)
