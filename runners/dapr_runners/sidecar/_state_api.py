"""The state API: keys of one app in the stores that its components declare."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import grpc

from dapr_runners.sidecar import _state_store
from dapr_runners.sidecar._components import Components
from dapr_runners.sidecar._database import Database
from dapr_runners.sidecar._grpc import Context, Methods, abort, unary
from dapr_runners.sidecar._protos import Empty, api_v1, common_v1
from dapr_runners.sidecar._state_store import EtagMismatchError, Put, Remove, Stored

_SEPARATOR = "||"
_MISMATCH = "possible etag mismatch. error from state store"
_TRANSACTION = "error while executing state transaction: "


class StateApi:
    """State of one app, in as many stores as ``components`` declares."""

    def __init__(self, database: Database, components: Components, app_id: str) -> None:
        self._database = database
        self._components = components
        self._app_id = app_id

    def methods(self) -> Methods:
        """What to serve."""
        return {
            "GetState": unary(self.get, api_v1.GetStateRequest, api_v1.GetStateResponse),
            "GetBulkState": unary(
                self.get_bulk, api_v1.GetBulkStateRequest, api_v1.GetBulkStateResponse
            ),
            "SaveState": unary(self.save, api_v1.SaveStateRequest, Empty),
            "DeleteState": unary(self.delete, api_v1.DeleteStateRequest, Empty),
            "DeleteBulkState": unary(self.delete_bulk, api_v1.DeleteBulkStateRequest, Empty),
            "ExecuteStateTransaction": unary(
                self.transact, api_v1.ExecuteStateTransactionRequest, Empty
            ),
        }

    async def get(self, request: Any, context: Context) -> Any:
        """A value and its ETag."""
        await self._check_store(request.store_name, context)
        key = await self._key(request.key, context)
        stored = _state_store.read(self._database.reader, request.store_name, key)
        if stored is None:
            return api_v1.GetStateResponse()
        return api_v1.GetStateResponse(
            data=stored.value, etag=stored.etag, metadata=_expiry(stored)
        )

    async def get_bulk(self, request: Any, context: Context) -> Any:
        """Several values."""
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

    async def save(self, request: Any, context: Context) -> Empty:
        """Write keys, each for itself."""
        await self._check_store(request.store_name, context)
        doing = f"failed saving state in state store {request.store_name}: "
        puts = [await self._put(item, context, doing) for item in request.states]
        await self._change_each(request.store_name, puts, context, doing)
        return Empty()

    async def delete(self, request: Any, context: Context) -> Empty:
        """Delete a key."""
        await self._check_store(request.store_name, context)
        remove = Remove(await self._key(request.key, context), _etag(request))
        doing = f"failed deleting state with key {request.key}: "
        await self._change_each(request.store_name, [remove], context, doing)
        return Empty()

    async def delete_bulk(self, request: Any, context: Context) -> Empty:
        """Delete keys, each for itself."""
        await self._check_store(request.store_name, context)
        doing = f"failed deleting state in state store {request.store_name}: "
        removes = [
            Remove(await self._key(item.key, context), _etag(item)) for item in request.states
        ]
        await self._change_each(request.store_name, removes, context, doing)
        return Empty()

    async def transact(self, request: Any, context: Context) -> Empty:
        """Write and delete keys, all or none."""
        await self._check_store(request.storeName, context)
        operations: list[Put | Remove] = []
        for operation in request.operations:
            if operation.operationType == "delete":
                key = await self._key(operation.request.key, context)
                operations.append(Remove(key, _etag(operation.request)))
            elif operation.operationType == "upsert":
                operations.append(await self._put(operation.request, context, _TRANSACTION))
            else:
                await abort(
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
            await abort(
                context,
                grpc.StatusCode.INTERNAL,
                _TRANSACTION + _MISMATCH,
            )
        return Empty()

    # -- helpers

    async def _check_store(self, name: str, context: Context) -> None:
        if not self._components.stores:
            await abort(
                context,
                grpc.StatusCode.FAILED_PRECONDITION,
                f"state store {name} is not configured",
            )
        if name not in self._components.stores:
            await abort(
                context, grpc.StatusCode.INVALID_ARGUMENT, f"state store {name} is not found"
            )

    async def _key(self, key: str, context: Context) -> str:
        if _SEPARATOR in key:
            await abort(
                context,
                grpc.StatusCode.INVALID_ARGUMENT,
                f"input key/keyPrefix '{key}' can't contain '{_SEPARATOR}'",
            )
        return f"{self._app_id}{_SEPARATOR}{key}"

    async def _put(self, item: Any, context: Context, doing: str) -> Put:
        if not item.key:
            await abort(context, grpc.StatusCode.INVALID_ARGUMENT, "state key cannot be empty")
        key = await self._key(item.key, context)
        ttl = await _ttl(item.metadata, context, doing)
        first = item.options.concurrency == common_v1.StateOptions.CONCURRENCY_FIRST_WRITE
        return Put(key, item.value, _etag(item), first, ttl)

    async def _change_each(
        self, store: str, operations: Sequence[Put | Remove], context: Context, doing: str
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
            await abort(context, grpc.StatusCode.ABORTED, doing + _MISMATCH + repeated)


def _etag(message: Any) -> str | None:
    return message.etag.value if message.HasField("etag") else None


async def _ttl(metadata: Mapping[str, str], context: Context, doing: str) -> int | None:
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
        await abort(context, grpc.StatusCode.INTERNAL, doing + detail)
    return ttl if ttl > 0 else None


def _expiry(stored: Stored) -> dict[str, str]:
    if stored.expires_at is None:
        return {}
    expires = datetime.fromtimestamp(stored.expires_at / 1e9, UTC)
    return {"ttlExpireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
