"""Keys and values in a Dapr state store, with first-writer-wins creation.

One gRPC channel serves threads and event loops alike: each operation has a blocking form and an
``async`` twin with an ``a`` in front. The generated stubs of the ``dapr`` package are used rather
than its ``DaprClient``, which blocks on an HTTP health check when it is made.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

import grpc
from dapr.proto import (
    api_service_v1,  # pyright: ignore[reportPrivateImportUsage]
    api_v1,
    common_v1,
)

from dapr_runners.state._batch import LoopBatcher, RelayBatcher, Tell, ThreadBatcher
from dapr_runners.state._channel import open_channel, sidecar_address
from dapr_runners.state._encryption import SEALED, EncryptionKeys, sealed_with
from dapr_runners.state._hashes import content_hash
from dapr_runners.state.errors import (
    EncryptionKeyMissingError,
    SidecarUnreachableError,
    StateStoreError,
    UnauthorizedError,
)

_FIRST_WRITE = common_v1.StateOptions(
    concurrency=common_v1.StateOptions.CONCURRENCY_FIRST_WRITE,
    consistency=common_v1.StateOptions.CONSISTENCY_STRONG,
)
_BULK = 200
"""Keys a bulk read asks for at once: daprd fetches them in parallel, so a call stays bounded."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value (bytes, never empty) and the ETag it was read with."""

    value: bytes
    etag: str


def _key(item: tuple[str, bytes]) -> str:
    return item[0]


def _size(item: tuple[str, bytes]) -> int:
    return len(item[0]) + len(item[1])


class _Call(Protocol):
    """A gRPC unary call: blocking when called, a future from ``future``."""

    def __call__(self, request: Any, *, timeout: float | None, metadata: Any) -> Any: ...
    def future(self, request: Any, *, timeout: float | None, metadata: Any) -> Any: ...


class StateStore:
    """A Dapr state store.

    ``name`` is the component's name; ``address`` is ``host:port`` (default: as the Dapr SDK finds
    it); ``api_token`` defaults to ``DAPR_API_TOKEN``; ``timeout`` is in seconds, a call.

    Empty values are not storable: Dapr answers a missing key with an empty value.

    ``keys`` encrypt the values (default: those that the environment names, see
    :meth:`EncryptionKeys.from_environment`; without any, values are stored as they are). The keys
    that values are stored under are not encrypted.
    """

    def __init__(
        self,
        name: str = "statestore",
        *,
        address: str | None = None,
        api_token: str | None = None,
        timeout: float = 30.0,
        keys: EncryptionKeys | None = None,
    ) -> None:
        self.name = name
        self.address = address or sidecar_address()
        token = os.environ.get("DAPR_API_TOKEN") if api_token is None else api_token
        self._metadata = (("dapr-api-token", token),) if token else ()
        self._timeout = timeout
        self._keys = keys or EncryptionKeys.from_environment(self.address)
        self._channel = open_channel(self.address)
        stub: Any = api_service_v1.DaprStub(self._channel)
        self._get = cast(_Call, stub.GetState)
        self._get_bulk = cast(_Call, stub.GetBulkState)
        self._save = cast(_Call, stub.SaveState)
        self._delete = cast(_Call, stub.DeleteState)
        self._delete_bulk = cast(_Call, stub.DeleteBulkState)
        self._creations = ThreadBatcher(self._create_many, _size)
        self._relayed_creations = RelayBatcher(self._create_many, _size, _key)
        self._loop_creations: WeakKeyDictionary[Any, LoopBatcher[tuple[str, bytes]]] = (
            WeakKeyDictionary()
        )

    @property
    def channel(self) -> grpc.Channel:
        """The channel to the sidecar, for its other APIs."""
        return self._channel

    @property
    def channel_metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with each call on :attr:`channel`."""
        return self._metadata

    @property
    def is_encrypted(self) -> bool:
        """Whether what is stored is encrypted."""
        return self._keys is not None

    def sealed(self, key: str, value: bytes) -> bytes:
        """``value`` as it is stored under ``key``: as it is, or encrypted."""
        return value if self._keys is None else self._keys.seal(key, value)

    def opened(self, key: str, data: bytes) -> bytes:
        """The reverse of :meth:`sealed`. Raises :class:`EncryptionKeyMissingError` and what
        :meth:`EncryptionKeys.open` does."""
        if self._keys is not None:
            return self._keys.open(key, data)
        if data.startswith(SEALED):
            raise EncryptionKeyMissingError(key=key, key_id=sealed_with(data), known="none")
        return data

    def reseal(self, keys: Iterable[str]) -> None:
        """Encrypt the values of ``keys`` with the key that writes, where they are not: with an
        older one, or in clear. Raises what reading them does."""
        if self._keys is None:
            return
        for key in keys:
            while True:
                found = self._ask(self._get, self._get_request(key))
                if not found.data or self._keys.is_current(found.data):
                    break
                if self.replace(key, self.opened(key, found.data), found.etag):
                    break

    def content_digest(self, scope: str, data: bytes) -> bytes:
        """What names the content ``data`` below the key ``scope``: 16 bytes, a hash of it, keyed
        where the store is encrypted."""
        if self._keys is None:
            return content_hash(data)
        return self._keys.digests(scope, data)[0]

    def is_content(self, digest: bytes, scope: str, data: bytes) -> bool:
        """Whether ``digest`` may be what :meth:`content_digest` has named ``data`` by."""
        if self._keys is None:
            return digest == content_hash(data)
        if self._keys.accepts_plaintext and digest == content_hash(data):
            return True
        return digest in self._keys.digests(scope, data)

    def close(self) -> None:
        """Close the channel. Operations after it fail."""
        self._channel.close()

    # -- reading

    def get(self, key: str) -> bytes | None:
        """The value of ``key``, or None."""
        found = self.read(key)
        return found.value if found else None

    def read(self, key: str) -> StoredValue | None:
        """The value and ETag of ``key``, or None."""
        return self._stored(key, self._ask(self._get, self._get_request(key)))

    async def aget(self, key: str) -> bytes | None:
        """Twin of :meth:`get`."""
        found = await self.aread(key)
        return found.value if found else None

    async def aread(self, key: str) -> StoredValue | None:
        """Twin of :meth:`read`."""
        return self._stored(key, await self._aask(self._get, self._get_request(key)))

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those ``keys`` that exist."""
        found: dict[str, bytes] = {}
        asked = _batches(keys)
        while asked:
            batch = asked.pop()
            try:
                answer = self._ask(self._get_bulk, self._bulk_request(batch))
            except StateStoreError as error:
                asked += _smaller(batch, error)
            else:
                found.update(self._bulk(answer))
        return found

    async def aget_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Twin of :meth:`get_many`."""
        found: dict[str, bytes] = {}
        asked = _batches(keys)
        while asked:
            batch = asked.pop()
            try:
                answer = await self._aask(self._get_bulk, self._bulk_request(batch))
            except StateStoreError as error:
                asked += _smaller(batch, error)
            else:
                found.update(self._bulk(answer))
        return found

    # -- writing

    def put(self, key: str, value: bytes) -> None:
        """Write ``key``, whatever it holds."""
        self.put_many({key: value})

    async def aput(self, key: str, value: bytes) -> None:
        """Twin of :meth:`put`."""
        await self.aput_many({key: value})

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Write several keys in one call. Not a transaction: on an error some may be written."""
        if values:
            self._saved(values, lambda: self._ask(self._save, self._save_request(values)))

    async def aput_many(self, values: Mapping[str, bytes]) -> None:
        """Twin of :meth:`put_many`."""
        if values:
            try:
                await self._aask(self._save, self._save_request(values))
            except StateStoreError as error:
                if not error.may_be_conflict:
                    raise
                await asyncio.to_thread(self._overwrite, values)

    def put_soon(self, key: str, value: bytes) -> None:
        """Send a write and do not wait for it: it is most likely, not surely, stored."""
        request = self._save_request({key: value})
        self._save.future(request, timeout=self._timeout, metadata=self._metadata)

    def put_many_and_read(self, values: Mapping[str, bytes], key: str) -> StoredValue | None:
        """Write ``values`` and read another ``key`` at the same time, in one round trip."""
        saved = self._begin(self._save, self._save_request(values)) if values else None
        found = self.read(key)
        if saved:
            self._saved(values, lambda: self._end(saved))
        return found

    async def aput_many_and_read(self, values: Mapping[str, bytes], key: str) -> StoredValue | None:
        """Twin of :meth:`put_many_and_read`."""
        saved = self._begin(self._save, self._save_request(values)) if values else None
        found = await self.aread(key)
        if saved:
            try:
                await self._aend(saved)
            except StateStoreError as error:
                if not error.may_be_conflict:
                    raise
                await asyncio.to_thread(self._overwrite, values)
        return found

    def _saved(self, values: Mapping[str, bytes], end: Callable[[], object]) -> None:
        try:
            end()
        except StateStoreError as error:
            if not error.may_be_conflict:
                raise
            self._overwrite(values)

    def _overwrite(self, values: Mapping[str, bytes]) -> None:
        """Write what the store refused. Redis does so, without a word of why, where a key was once
        written with first-writer-wins and no ETag is given."""
        for key, value in values.items():
            found = self.read(key)
            if found is None:
                self._ask(self._save, self._save_request({key: value}))
            else:
                # Whoever wrote in between was overwritten, as it were.
                self.replace(key, value, found.etag)

    def create(self, key: str, value: bytes) -> bool:
        """Write ``key`` if it does not exist. False if it holds another value: the first writer
        has won. Creations asked for at once are sent together."""
        return self._creations.write((key, value))

    def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        """As :meth:`create`, for several keys in one call. Not a transaction: each has its own
        result."""
        return dict(zip(values, self._create_many(list(values.items())), strict=True))

    def create_then(self, key: str, value: bytes, tell: Tell) -> None:
        """As :meth:`create`, but ``tell`` gets the result, or what it raised, in this thread or in
        another that is sending already. ``tell`` must not raise, nor block."""
        self._relayed_creations.write((key, value), tell)

    def expect(self, keys: Sequence[str]) -> None:
        """Say that :meth:`create_then` is to be called for each of ``keys`` soon. Those that come
        together are sent as soon as the last one has come."""
        self._relayed_creations.expect(keys)

    async def acreate(self, key: str, value: bytes) -> bool:
        """Twin of :meth:`create`."""
        loop = asyncio.get_running_loop()
        batcher = self._loop_creations.get(loop)
        if batcher is None:
            batcher = LoopBatcher(self._acreate_many, _size)
            self._loop_creations[loop] = batcher
        return await batcher.write((key, value))

    def _create_many(self, items: list[tuple[str, bytes]]) -> list[bool]:
        if len(items) > 1:
            try:
                self._ask(self._save, self._create_request(items))
            except StateStoreError as error:
                if not error.may_be_conflict:
                    raise
            else:
                return [True] * len(items)
        return [self._create_one(key, value) for key, value in items]

    def _create_one(self, key: str, value: bytes) -> bool:
        try:
            self._ask(self._save, self._create_request([(key, value)]))
        except StateStoreError as error:
            # A conflict is ABORTED on sqlite and INTERNAL on redis (measured on
            # daprd 1.18.3), so the store is asked whether it is one. Our own value may be there,
            # from a call whose answer was lost or that failed for another's key.
            found = self.get(key) if error.may_be_conflict else None
            if found is None:
                raise
            return found == value
        return True

    async def _acreate_many(self, items: list[tuple[str, bytes]]) -> list[bool]:
        # A call in a thread costs less than a call with a callback, for which gRPC starts a thread.
        return await asyncio.get_running_loop().run_in_executor(None, self._create_many, items)

    def replace(self, key: str, value: bytes, etag: str) -> bool:
        """Write ``key`` if its ETag still is ``etag``. False if somebody else wrote it first."""
        try:
            self._ask(self._save, self._replace_request(key, value, etag))
        except StateStoreError as error:
            found = self.read(key) if error.may_be_conflict else None
            if not error.may_be_conflict or (found is not None and found.etag == etag):
                raise
            return False
        return True

    async def areplace(self, key: str, value: bytes, etag: str) -> bool:
        """Twin of :meth:`replace`."""
        try:
            await self._aask(self._save, self._replace_request(key, value, etag))
        except StateStoreError as error:
            found = await self.aread(key) if error.may_be_conflict else None
            if not error.may_be_conflict or (found is not None and found.etag == etag):
                raise
            return False
        return True

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete the ``keys`` that exist."""
        for request in self._delete_requests(keys):
            self._ask(self._delete_bulk, request)

    async def adelete_many(self, keys: Iterable[str]) -> None:
        """Twin of :meth:`delete_many`."""
        for request in self._delete_requests(keys):
            await self._aask(self._delete_bulk, request)

    # -- requests

    def _get_request(self, key: str) -> Any:
        return api_v1.GetStateRequest(store_name=self.name, key=key)

    def _bulk_request(self, keys: Sequence[str]) -> Any:
        return api_v1.GetBulkStateRequest(store_name=self.name, keys=keys, parallelism=10)

    def _stored(self, key: str, response: Any) -> StoredValue | None:
        if not response.data:
            return None
        return StoredValue(self.opened(key, response.data), response.etag)

    def _bulk(self, response: Any) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for item in response.items:
            if item.error:
                raise StateStoreError(
                    store=self.name, status="UNKNOWN", detail=f"{item.key}: {item.error}"
                )
            if item.data:
                found[item.key] = self.opened(item.key, item.data)
        return found

    def _save_request(self, values: Mapping[str, bytes]) -> Any:
        states = [
            common_v1.StateItem(key=key, value=self.sealed(key, value))
            for key, value in values.items()
        ]
        return api_v1.SaveStateRequest(store_name=self.name, states=states)

    def _create_request(self, items: Sequence[tuple[str, bytes]]) -> Any:
        states = [
            common_v1.StateItem(key=key, value=self.sealed(key, value), options=_FIRST_WRITE)
            for key, value in items
        ]
        return api_v1.SaveStateRequest(store_name=self.name, states=states)

    def _replace_request(self, key: str, value: bytes, etag: str) -> Any:
        item = common_v1.StateItem(key=key, value=self.sealed(key, value), options=_FIRST_WRITE)
        item.etag.value = etag
        return api_v1.SaveStateRequest(store_name=self.name, states=[item])

    def _delete_requests(self, keys: Iterable[str]) -> list[Any]:
        wanted = list(keys)
        return [
            api_v1.DeleteBulkStateRequest(
                store_name=self.name,
                states=[common_v1.StateItem(key=key) for key in wanted[start : start + _BULK]],
            )
            for start in range(0, len(wanted), _BULK)
        ]

    # -- calls

    def _ask(self, call: _Call, request: Any) -> Any:
        try:
            return call(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._failure(error) from error

    async def _aask(self, call: _Call, request: Any) -> Any:
        return await self._aend(self._begin(call, request))

    def _begin(self, call: _Call, request: Any) -> Any:
        return call.future(request, timeout=self._timeout, metadata=self._metadata)

    def _end(self, answer: Any) -> Any:
        try:
            return answer.result()
        except grpc.RpcError as error:
            raise self._failure(error) from error

    async def _aend(self, answer: Any) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        answer.add_done_callback(partial(_settle_soon, loop, done))
        # A call that nobody waits for any more is not cancelled: daprd 1.18 would leave the
        # connection to SQLite on which it was reading at what was there then, for later readers.
        await done
        return self._end(answer)

    def _failure(self, error: grpc.RpcError) -> Exception:
        status = cast(grpc.StatusCode, cast(Any, error).code())
        detail = cast(str, cast(Any, error).details() or "")
        if status is grpc.StatusCode.UNAVAILABLE:
            return SidecarUnreachableError(address=self.address, detail=detail)
        if status is grpc.StatusCode.UNAUTHENTICATED:
            return UnauthorizedError(address=self.address)
        return StateStoreError(store=self.name, status=status.name, detail=detail)


def _batches(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[start : start + _BULK] for start in range(0, len(keys), _BULK)]


def _smaller(keys: Sequence[str], error: StateStoreError) -> list[Sequence[str]]:
    """What to ask for instead of ``keys``, if ``error`` says that their values are too large for
    one answer (on daprd, 4 MiB)."""
    if error.status != "RESOURCE_EXHAUSTED" or len(keys) < 2:
        raise error
    half = len(keys) // 2
    return [keys[:half], keys[half:]]


def _settle_soon(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]", _call: Any
) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(_settle, future)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
