"""The part of daprd's own gRPC service that the Dapr SDK's clients need: state and metadata."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

import grpc
import grpc.aio

from dapr_runners.sidecar import _state_store
from dapr_runners.sidecar._components import Components
from dapr_runners.sidecar._database import Database
from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._protos import Empty, api_v1, common_v1
from dapr_runners.sidecar._state_store import EtagMismatchError, Put, Remove, Stored

_Context = grpc.aio.ServicerContext[Any, Any]
_SEPARATOR = "||"
_MISMATCH = "possible etag mismatch. error from state store"
_CAPABILITIES = ("ETAG", "TRANSACTIONAL", "TTL", "KEYS_LIKE")
_TRANSACTION = "error while executing state transaction: "


class DaprApi:
    """``dapr.proto.runtime.v1.Dapr``, as far as it goes: other methods are unimplemented."""

    def __init__(self, database: Database, engine: Engine, components: Components) -> None:
        self._database = database
        self._engine = engine
        self._components = components

    def handler(self) -> grpc.GenericRpcHandler:
        """What to register with a server."""
        methods: dict[str, tuple[Any, Any, Any]] = {
            "GetState": (self.GetState, api_v1.GetStateRequest, api_v1.GetStateResponse),
            "GetBulkState": (
                self.GetBulkState,
                api_v1.GetBulkStateRequest,
                api_v1.GetBulkStateResponse,
            ),
            "SaveState": (self.SaveState, api_v1.SaveStateRequest, Empty),
            "DeleteState": (self.DeleteState, api_v1.DeleteStateRequest, Empty),
            "DeleteBulkState": (self.DeleteBulkState, api_v1.DeleteBulkStateRequest, Empty),
            "ExecuteStateTransaction": (
                self.ExecuteStateTransaction,
                api_v1.ExecuteStateTransactionRequest,
                Empty,
            ),
            "GetMetadata": (
                self.GetMetadata,
                api_v1.GetMetadataRequest,
                api_v1.GetMetadataResponse,
            ),
        }
        return grpc.method_handlers_generic_handler(
            "dapr.proto.runtime.v1.Dapr",
            {
                name: grpc.unary_unary_rpc_method_handler(
                    behaviour,
                    request_deserializer=request.FromString,
                    response_serializer=response.SerializeToString,
                )
                for name, (behaviour, request, response) in methods.items()
            },
        )

    async def GetState(self, request: Any, context: _Context) -> Any:
        await self._check_store(request.store_name, context)
        key = await self._key(request.key, context)
        stored = _state_store.read(self._database.reader, request.store_name, key)
        if stored is None:
            return api_v1.GetStateResponse()
        return api_v1.GetStateResponse(
            data=stored.value, etag=stored.etag, metadata=_expiry(stored)
        )

    async def GetBulkState(self, request: Any, context: _Context) -> Any:
        await self._check_store(request.store_name, context)
        items: list[Any] = []
        for name in request.keys:
            key = await self._key(name, context)
            stored = _state_store.read(self._database.reader, request.store_name, key)
            item = api_v1.BulkStateItem(key=name)
            if stored is not None:
                item.data, item.etag = stored.value, stored.etag
                item.metadata.update(_expiry(stored))
            items.append(item)
        return api_v1.GetBulkStateResponse(items=items)

    async def SaveState(self, request: Any, context: _Context) -> Empty:
        await self._check_store(request.store_name, context)
        doing = f"failed saving state in state store {request.store_name}: "
        puts = [await self._put(item, context, doing) for item in request.states]
        await self._change_each(request.store_name, puts, context, doing)
        return Empty()

    async def DeleteState(self, request: Any, context: _Context) -> Empty:
        await self._check_store(request.store_name, context)
        remove = Remove(await self._key(request.key, context), _etag(request))
        doing = f"failed deleting state with key {request.key}: "
        await self._change_each(request.store_name, [remove], context, doing)
        return Empty()

    async def DeleteBulkState(self, request: Any, context: _Context) -> Empty:
        await self._check_store(request.store_name, context)
        doing = f"failed deleting state in state store {request.store_name}: "
        removes = [
            Remove(await self._key(item.key, context), _etag(item)) for item in request.states
        ]
        await self._change_each(request.store_name, removes, context, doing)
        return Empty()

    async def ExecuteStateTransaction(self, request: Any, context: _Context) -> Empty:
        await self._check_store(request.storeName, context)
        operations: list[Put | Remove] = []
        for operation in request.operations:
            if operation.operationType == "delete":
                key = await self._key(operation.request.key, context)
                operations.append(Remove(key, _etag(operation.request)))
            elif operation.operationType == "upsert":
                operations.append(await self._put(operation.request, context, _TRANSACTION))
            else:
                await _abort(
                    context,
                    grpc.StatusCode.UNIMPLEMENTED,
                    f"operation type {operation.operationType} not supported",
                )
        try:
            await self._database.write(
                lambda db: _state_store.change(db, request.storeName, operations)
            )
        except EtagMismatchError:
            # daprd answers a transaction's conflict so; only its text tells.
            await _abort(
                context,
                grpc.StatusCode.INTERNAL,
                _TRANSACTION + _MISMATCH,
            )
        return Empty()

    async def GetMetadata(self, request: Any, context: _Context) -> Any:
        components = [
            api_v1.RegisteredComponents(
                name=store.name,
                type="state.sqlite",
                version="v1",
                capabilities=[*_CAPABILITIES, "ACTOR"] if store.actors else _CAPABILITIES,
            )
            for store in self._components.stores.values()
        ]
        return api_v1.GetMetadataResponse(
            id=self._engine.app_id,
            registered_components=components,
            runtime_version="embedded",
            workflows=api_v1.MetadataWorkflows(connected_workers=self._engine.workers),
        )

    # -- helpers

    async def _check_store(self, name: str, context: _Context) -> None:
        if not self._components.stores:
            await _abort(
                context,
                grpc.StatusCode.FAILED_PRECONDITION,
                f"state store {name} is not configured",
            )
        if name not in self._components.stores:
            await _abort(
                context, grpc.StatusCode.INVALID_ARGUMENT, f"state store {name} is not found"
            )

    async def _key(self, key: str, context: _Context) -> str:
        if _SEPARATOR in key:
            await _abort(
                context,
                grpc.StatusCode.INVALID_ARGUMENT,
                f"input key/keyPrefix '{key}' can't contain '{_SEPARATOR}'",
            )
        return f"{self._engine.app_id}{_SEPARATOR}{key}"

    async def _put(self, item: Any, context: _Context, doing: str) -> Put:
        if not item.key:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, "state key cannot be empty")
        key = await self._key(item.key, context)
        ttl = await _ttl(item.metadata, context, doing)
        first = item.options.concurrency == common_v1.StateOptions.CONCURRENCY_FIRST_WRITE
        return Put(key, item.value, _etag(item), first, ttl)

    async def _change_each(
        self, store: str, operations: Sequence[Put | Remove], context: _Context, doing: str
    ) -> None:
        """Several keys in one call are several writes: those without a conflict are kept."""

        def change(db: sqlite3.Connection) -> int:
            conflicts = 0
            for operation in operations:
                try:
                    _state_store.change(db, store, [operation])
                except EtagMismatchError:
                    conflicts += 1
            return conflicts

        if await self._database.write(change):
            repeated = f": {_MISMATCH}" if len(operations) > 1 else ""
            await _abort(context, grpc.StatusCode.ABORTED, doing + _MISMATCH + repeated)


async def _abort(context: _Context, code: grpc.StatusCode, detail: str) -> NoReturn:
    await context.abort(code, detail)
    raise AssertionError  # abort raises; its signature does not say so.


def _etag(message: Any) -> str | None:
    return message.etag.value if message.HasField("etag") else None


async def _ttl(metadata: Mapping[str, str], context: _Context, doing: str) -> int | None:
    given = metadata.get("ttlInSeconds")
    if not given:
        return None
    problem = None
    ttl = 0
    try:
        ttl = int(given)
    except ValueError:
        problem = f'strconv.ParseInt: parsing "{given}": invalid syntax'
    if ttl < -1:
        problem = "must be -1 or greater"
    if problem is not None:
        detail = f"error parsing TTL: incorrect value for metadata 'ttlInSeconds': {problem}"
        await _abort(context, grpc.StatusCode.INTERNAL, doing + detail)
    return ttl if ttl > 0 else None


def _expiry(stored: Stored) -> dict[str, str]:
    if stored.expires_at is None:
        return {}
    expires = datetime.fromtimestamp(stored.expires_at / 1e9, UTC)
    return {"ttlExpireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
