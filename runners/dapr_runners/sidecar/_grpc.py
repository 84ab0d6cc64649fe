"""The few lines of gRPC that each service needs."""

from typing import Any, NoReturn

import grpc
import grpc.aio

Context = grpc.aio.ServicerContext[Any, Any]
Methods = dict[str, Any]
"""Handlers by the name of their method."""


async def abort(context: Context, code: grpc.StatusCode, detail: str) -> NoReturn:
    """End the call with an error."""
    await context.abort(code, detail)
    raise AssertionError  # abort raises; its signature does not say so.


def unary(behaviour: Any, request: Any, response: Any) -> Any:
    """A handler of a call with one answer."""
    return grpc.unary_unary_rpc_method_handler(
        behaviour,
        request_deserializer=request.FromString,
        response_serializer=response.SerializeToString,
    )


def stream(behaviour: Any, request: Any, response: Any) -> Any:
    """A handler of a call that streams both ways."""
    return grpc.stream_stream_rpc_method_handler(
        behaviour,
        request_deserializer=request.FromString,
        response_serializer=response.SerializeToString,
    )


def service(name: str, *methods: Methods) -> grpc.GenericRpcHandler:
    """What to register with a server. Methods that are not there are unimplemented."""
    every = {method: handler for part in methods for method, handler in part.items()}
    return grpc.method_handlers_generic_handler(name, every)
