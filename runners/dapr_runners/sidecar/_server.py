"""The sidecar process put together: database, engine, gRPC and HTTP."""

import asyncio
import contextlib
import hmac
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
import grpc.aio

from dapr_runners.sidecar import _state_store
from dapr_runners.sidecar._database import Database
from dapr_runners.sidecar._dispatch import Dispatcher
from dapr_runners.sidecar._engine import Engine, Limits
from dapr_runners.sidecar._grpc import service
from dapr_runners.sidecar._health import HealthServer
from dapr_runners.sidecar._metadata_api import MetadataApi
from dapr_runners.sidecar._protos import task_hub
from dapr_runners.sidecar._pubsub_api import PubSubApi
from dapr_runners.sidecar._secrets_api import SecretsApi
from dapr_runners.sidecar._settings import Settings
from dapr_runners.sidecar._state_api import StateApi
from dapr_runners.sidecar._work_api import work_under_way
from dapr_runners.sidecar._workflow_api import WorkflowApi
from dapr_runners.sidecar.errors import PortTakenError

_log = logging.getLogger("dapr_runners.sidecar")

_SWEEP_SECONDS = 60.0
_GRACE_SECONDS = 0.2


class Server:
    """A running sidecar. ``failed`` is set when it cannot go on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self.grpc_port = 0
        self.http_port = 0
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Open the database, listen, and take up what was under way."""
        settings = self._settings
        database = Database(settings.database, self._fail)
        self._stack.push_async_callback(database.close)
        engine = Engine(
            database,
            Dispatcher(settings.limits),
            settings.app_id,
            Limits(body=settings.max_body_size),
        )
        self._stack.callback(engine.timers.stop)
        server = grpc.aio.server(
            interceptors=[_Token(settings.api_token)] if settings.api_token else [],
            options=_options(settings.max_body_size),
        )
        workflows = WorkflowApi(engine, actors=settings.components.actor_store is not None)
        cast(Any, task_hub).add_TaskHubSidecarServiceServicer_to_server(workflows, server)
        dapr = service(
            "dapr.proto.runtime.v1.Dapr",
            StateApi(database, settings.components, settings.app_id).methods(),
            PubSubApi(settings.components, settings.app_id).methods(),
            MetadataApi(engine, settings.components).methods(),
            SecretsApi(settings.components).methods(),
        )
        server.add_generic_rpc_handlers((dapr,))
        self.grpc_port = self._bind(server)
        health = HealthServer(settings.app_id, settings.api_token, lambda: work_under_way(engine))
        try:
            self.http_port = await health.start(settings.host, settings.http_port)
        except OSError as error:
            raise _taken("HTTP", settings.http_port, error) from error
        self._stack.push_async_callback(health.stop)
        engine.recover()
        await server.start()
        self._stack.push_async_callback(server.stop, _GRACE_SECONDS)
        sweeper = asyncio.create_task(_sweep(database))
        self._stack.callback(sweeper.cancel)

    async def stop(self) -> None:
        """Stop listening and commit what is under way."""
        await self._stack.aclose()

    def _bind(self, server: grpc.aio.Server) -> int:
        host, port = self._settings.host, self._settings.grpc_port
        try:
            # gRPC does not say why it cannot have a port.
            socket.create_server((host, port)).close()
            return server.add_insecure_port(f"{host}:{port}")
        except (OSError, RuntimeError) as error:
            raise _taken("gRPC", port, error) from error

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_result(error)


class _Token(grpc.aio.ServerInterceptor):
    """Lets only those in who know the token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

        async def refuse(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Unauthorized")

        self._refuse: Any = grpc.unary_unary_rpc_method_handler(refuse)
        self._refuse_stream: Any = grpc.unary_stream_rpc_method_handler(refuse)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        for key, value in handler_call_details.invocation_metadata or ():
            given = value if isinstance(value, bytes) else value.encode()
            if key == "dapr-api-token" and hmac.compare_digest(given, self._token):
                return await continuation(handler_call_details)
        streams = (handler_call_details.method or "").endswith("/GetWorkItems")
        return self._refuse_stream if streams else self._refuse


def _taken(kind: str, port: int, error: Exception) -> PortTakenError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return PortTakenError(kind=kind, port=port, option=f"--dapr-{kind.lower()}-port", reason=reason)


async def _sweep(database: Database) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        await database.write(_state_store.sweep)


def _options(max_body_size: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", max_body_size if max_body_size > 0 else -1),
        # What may be sent is bounded by the rules for stalling, not by the transport.
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
        # daprd's own: a frozen worker is noticed after some 15 seconds.
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.ping_timeout_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.max_ping_strikes", 0),
    ]
