"""Between a program and its sidecar: passes every call on, and disturbs those to the state store
when it is told to."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal, Self, cast

import grpc

Disturbance = Literal["refuse", "slow", "lose"]
"""``refuse``: each call is answered as daprd does when its store is away. ``slow``: it is passed on
after a second. ``lose``: it is carried out, and the connection breaks before the answer."""

_SLOW_SECONDS = 1.0
_STATE_METHODS = frozenset(
    f"/dapr.proto.runtime.v1.Dapr/{name}"
    for name in (
        *("GetState", "GetBulkState", "SaveState", "DeleteState", "DeleteBulkState"),
        "ExecuteStateTransaction",
    )
)


class StateProxy:
    """Serves on ``port`` what the sidecar at ``target`` (``host:port``) does; a block ends it."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._disturbance: Disturbance | None = None
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self.port = 0
        self.disturbed = 0
        """How many calls were disturbed."""

    def disturb(self, how: Disturbance | None) -> None:
        """From now on; None: not any more."""
        self._disturbance = how

    async def serve(self, ready: "Future[int]") -> None:
        """Serve until the block ends."""
        aio: Any = grpc.aio
        unlimited = [(f"grpc.max_{way}_message_length", -1) for way in ("send", "receive")]
        async with aio.insecure_channel(self._target, options=unlimited) as channel:
            server = aio.server(options=unlimited)
            server.add_generic_rpc_handlers((_Handler(self, channel),))
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            ready.set_result(port)
            await self._over.wait()
            await server.stop(None)

    async def relay(
        self, channel: Any, method: str, requests: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[bytes]:
        """One call."""
        how = self._disturbance if method in _STATE_METHODS else None
        self.disturbed += how is not None
        if how == "refuse":
            text = "failed saving state in state store: the store does not answer"
            await context.abort(grpc.StatusCode.INTERNAL, text)
        if how == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
        metadata = [pair for pair in context.invocation_metadata() if not _is_reserved(pair[0])]
        call = channel.stream_stream(method)(requests, metadata=metadata)
        try:
            async for answer in call:
                if how != "lose":
                    yield answer
        except grpc.RpcError as error:
            fault: Any = error
            await context.abort(fault.code(), fault.details() or "")
        finally:
            call.cancel()
        if how == "lose":
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")

    def __enter__(self) -> Self:
        ready: Future[int] = Future()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self.serve(ready),), daemon=True
        )
        self._thread.start()
        self.port = ready.result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()


class _Handler(grpc.GenericRpcHandler):
    """Every method, as bytes: a call with one message is a stream of one on the wire."""

    def __init__(self, proxy: StateProxy, channel: Any) -> None:
        self._proxy = proxy
        self._channel = channel

    def service(self, handler_call_details: Any) -> Any:
        method: str = handler_call_details.method

        async def relay(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for answer in self._proxy.relay(self._channel, method, requests, context):
                yield answer

        return cast(Any, grpc).stream_stream_rpc_method_handler(relay)


def _is_reserved(name: str) -> bool:
    return name.startswith((":", "grpc-")) or name in ("user-agent", "te", "content-type")
