"""The gRPC service the workflow part of the Dapr SDK speaks: workers and clients."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, NoReturn

import grpc
import grpc.aio

from dapr_runners.sidecar import _effects
from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._instance import PENDING, TERMINAL, Instance, View, event, text, timestamp
from dapr_runners.sidecar._protos import STATEFUL_HISTORY, Empty, pb, task_hub
from dapr_runners.sidecar._storage import Transaction

_Context = grpc.aio.ServicerContext[Any, Any]

_NOT_FOUND = "no such instance exists"
_NOT_COMPLETED = "orchestration has not yet completed"
_STALLED = "workflow is stalled"


class WorkflowApi(task_hub.TaskHubSidecarServiceServicer):
    """``TaskHubSidecarService`` on an :class:`Engine`."""

    def __init__(self, engine: Engine, missing_store: str | None) -> None:
        self._engine = engine
        self._missing_store = missing_store

    # -- workers

    async def Hello(self, request: Empty, context: _Context) -> Empty:
        return Empty()

    async def GetWorkItems(self, request: pb.GetWorkItemsRequest, context: _Context) -> None:
        await self._check_store(context)
        keeps = STATEFUL_HISTORY is not None and STATEFUL_HISTORY in request.capabilities
        stream = self._engine.open(keeps)
        try:
            while True:
                await context.write(await stream.next())
        finally:
            self._engine.close(stream)

    async def CompleteActivityTask(
        self, request: pb.ActivityResponse, context: _Context
    ) -> pb.CompleteTaskResponse:
        transaction = self._engine.finish_task(request)
        if transaction is not None:
            await self._engine.ledger.commit(transaction)
        return pb.CompleteTaskResponse()

    async def CompleteOrchestratorTask(
        self, request: pb.WorkflowResponse, context: _Context
    ) -> pb.CompleteTaskResponse:
        transaction = self._engine.finish_turn(request, _effects.apply)
        if transaction is not None:
            await self._engine.ledger.commit(transaction)
        return pb.CompleteTaskResponse()

    CompleteWorkflowTask = CompleteOrchestratorTask

    # -- clients

    async def StartInstance(
        self, request: pb.CreateInstanceRequest, context: _Context
    ) -> pb.CreateInstanceResponse:
        await self._check_store(context)
        instance_id = request.instanceId or str(uuid.uuid4())
        more: dict[str, object] = {}
        if request.HasField("scheduledStartTimestamp"):
            more["scheduledStartTimestamp"] = request.scheduledStartTimestamp
        if request.HasField("parentTraceContext"):
            more["parentTraceContext"] = request.parentTraceContext
        value = request.input.value if request.HasField("input") else None
        start = _effects.start_event(self._engine, instance_id, request.name, value, **more)
        transaction = Transaction()
        try:
            _effects.create(self._engine, start, transaction)
        except _effects.AlreadyExistsError as error:
            await context.abort(
                grpc.StatusCode.ALREADY_EXISTS, f"failed to create workflow instance: {error}"
            )
        await self._engine.ledger.commit(transaction)
        if not request.HasField("scheduledStartTimestamp"):
            await self._engine.ledger.wait(instance_id, lambda view: view.status != PENDING)
        return pb.CreateInstanceResponse(instanceId=instance_id)

    async def GetInstance(
        self, request: pb.GetInstanceRequest, context: _Context
    ) -> pb.GetInstanceResponse:
        await self._check_store(context)
        view = self._engine.ledger.view(request.instanceId)
        if view is None:
            return pb.GetInstanceResponse(exists=False)
        return _state(view, request.getInputsAndOutputs)

    async def WaitForInstanceStart(
        self, request: pb.GetInstanceRequest, context: _Context
    ) -> pb.GetInstanceResponse:
        return await self._wait(request, context, lambda view: view.status != PENDING)

    async def WaitForInstanceCompletion(
        self, request: pb.GetInstanceRequest, context: _Context
    ) -> pb.GetInstanceResponse:
        return await self._wait(request, context, lambda view: view.status in TERMINAL)

    async def RaiseEvent(
        self, request: pb.RaiseEventRequest, context: _Context
    ) -> pb.RaiseEventResponse:
        raised = pb.EventRaisedEvent(
            name=request.name, input=request.input if request.HasField("input") else None
        )
        instance = await self._instance(request.instanceId, context)
        if instance.stalled is not None:
            await context.abort(grpc.StatusCode.UNKNOWN, _STALLED)
        await self._tell(instance, event(eventRaised=raised))
        return pb.RaiseEventResponse()

    async def TerminateInstance(
        self, request: pb.TerminateRequest, context: _Context
    ) -> pb.TerminateResponse:
        terminated = pb.ExecutionTerminatedEvent(
            input=request.output if request.HasField("output") else None,
            recurse=request.recursive,
        )
        instance = await self._instance(request.instanceId, context)
        await self._tell_and_wait(instance, event(executionTerminated=terminated))
        return pb.TerminateResponse()

    async def SuspendInstance(
        self, request: pb.SuspendRequest, context: _Context
    ) -> pb.SuspendResponse:
        reason = request.reason if request.HasField("reason") else None
        instance = await self._instance(request.instanceId, context)
        suspended = pb.ExecutionSuspendedEvent(input=reason)
        await self._tell_and_wait(instance, event(executionSuspended=suspended))
        return pb.SuspendResponse()

    async def ResumeInstance(
        self, request: pb.ResumeRequest, context: _Context
    ) -> pb.ResumeResponse:
        reason = request.reason if request.HasField("reason") else None
        instance = await self._instance(request.instanceId, context)
        resumed = pb.ExecutionResumedEvent(input=reason)
        await self._tell_and_wait(instance, event(executionResumed=resumed))
        return pb.ResumeResponse()

    async def PurgeInstances(
        self, request: pb.PurgeInstancesRequest, context: _Context
    ) -> pb.PurgeInstancesResponse:
        if request.HasField("purgeInstanceFilter"):
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "purge by filter is not supported")
        instance = await self._instance(request.instanceId, context)
        if not request.force:
            if instance.stalled is not None:
                await context.abort(grpc.StatusCode.UNKNOWN, _STALLED)
            if not instance.terminal:
                await context.abort(grpc.StatusCode.UNKNOWN, _NOT_COMPLETED)
        transaction = Transaction()
        try:
            count = self._purge(instance, request.recursive, request.force, transaction)
        except _NotCompletedError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        await self._engine.ledger.commit(transaction)
        return pb.PurgeInstancesResponse(deletedInstanceCount=count)

    async def ListInstanceIDs(
        self, request: pb.ListInstanceIDsRequest, context: _Context
    ) -> pb.ListInstanceIDsResponse:
        size = request.pageSize if request.HasField("pageSize") else 0
        ids = self._engine.ledger.rows.ids(request.continuationToken, size + 1 if size else -1)
        if size and len(ids) > size:
            return pb.ListInstanceIDsResponse(
                instanceIds=ids[:size], continuationToken=ids[size - 1]
            )
        return pb.ListInstanceIDsResponse(instanceIds=ids)

    async def GetInstanceHistory(
        self, request: pb.GetInstanceHistoryRequest, context: _Context
    ) -> pb.GetInstanceHistoryResponse:
        instance = await self._instance(request.instanceId, context)
        await self._engine.ledger.settled(instance)
        return pb.GetInstanceHistoryResponse(events=self._engine.ledger.history(instance))

    # -- helpers

    async def _check_store(self, context: _Context) -> None:
        if self._missing_store is not None:
            await context.abort(grpc.StatusCode.INTERNAL, self._missing_store)

    async def _instance(self, instance_id: str, context: _Context) -> Instance:
        await self._check_store(context)
        instance = self._engine.ledger.find(instance_id)
        if instance is None:
            await _abort(context, grpc.StatusCode.UNKNOWN, _NOT_FOUND)
        return instance

    async def _wait(
        self, request: pb.GetInstanceRequest, context: _Context, until: Callable[[View], bool]
    ) -> pb.GetInstanceResponse:
        await self._check_store(context)
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

    def _purge(
        self, instance: Instance, recursive: bool, force: bool, transaction: Transaction
    ) -> int:
        below = _effects.children(self._engine, instance) if recursive else []
        for child in below:
            if not force and not child.terminal:
                raise _NotCompletedError(
                    f'failed to purge child workflow "{child.id}": {_NOT_COMPLETED}'
                )
        count = sum(self._purge(child, True, force, transaction) for child in below)
        _effects.erase(self._engine, instance, transaction)
        return count + 1


class _NotCompletedError(Exception):
    pass


async def _abort(context: _Context, code: grpc.StatusCode, detail: str) -> NoReturn:
    await context.abort(code, detail)
    raise AssertionError  # abort raises; its signature does not say so.


def _state(view: View, payloads: bool) -> pb.GetInstanceResponse:
    state = pb.WorkflowState(
        instanceId=view.id,
        name=view.name,
        workflowStatus=view.status,
        createdTimestamp=timestamp(view.created_at),
        lastUpdatedTimestamp=timestamp(view.updated_at),
        executionId=text(view.execution_id),
        parentInstanceId=text(view.parent.id if view.parent else None),
    )
    if view.start_at is not None:
        state.scheduledStartTimestamp.CopyFrom(timestamp(view.start_at))
    if view.completed_at is not None:
        state.completedTimestamp.CopyFrom(timestamp(view.completed_at))
    if payloads:
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
