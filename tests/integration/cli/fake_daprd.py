"""A server that answers as daprd 1.18.3 does, well or in one of the ways in which it is broken.

It knows what ``dapr-runners doctor`` asks, and no more. The answers are daprd's own, word for word.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import grpc
from dapr.ext.workflow._durabletask.internal import protos as pb
from dapr.proto import api_v1
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import ParseDict

Refusal = tuple[grpc.StatusCode, str]

NO_JOB = (
    grpc.StatusCode.INTERNAL,
    "failed to get job due to: rpc error: code = NotFound desc = job not found: probe",
)


def metadata(**changes: Any) -> dict[str, Any]:
    """What daprd tells of itself, with ``changes``."""
    told = {
        "id": "doctor",
        "runtimeVersion": "1.18.3",
        "components": [
            {
                "name": "statestore",
                "type": "state.sqlite",
                "version": "v1",
                "capabilities": ["ETAG", "TRANSACTIONAL", "TTL", "KEYS_LIKE", "ACTOR"],
            }
        ],
        "actorRuntime": {
            "runtimeStatus": "RUNNING",
            "hostReady": True,
            "placement": "placement: connected",
        },
        "scheduler": {"connectedAddresses": ["127.0.0.1:50006"]},
        "workflows": {},
        "resiliencies": [{"name": "dapr-runners"}],
    }
    return {**told, **changes}


class FakeDaprd:
    """``told`` is its metadata; ``refusals`` says of methods, by name, what they are refused with;
    ``silent`` are those that never answer."""

    def __init__(
        self,
        told: dict[str, Any] | None = None,
        refusals: dict[str, Refusal] | None = None,
        silent: frozenset[str] = frozenset(),
    ) -> None:
        self._told = metadata() if told is None else told
        self._refusals = {"GetJobAlpha1": NO_JOB, **(refusals or {})}
        self._silent = silent
        self._values: dict[str, bytes] = {}
        self._over = threading.Event()
        self._threads = ThreadPoolExecutor(8)
        self._server = grpc.server(self._threads)
        self._server.add_generic_rpc_handlers((self._dapr(), self._hub()))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._server.stop(None).wait()
        self._threads.shutdown()

    def _dapr(self) -> Any:
        of = self._method
        methods = {
            "GetMetadata": of("GetMetadata", api_v1.GetMetadataRequest, self._metadata),
            "GetState": of("GetState", api_v1.GetStateRequest, self._get),
            "SaveState": of("SaveState", api_v1.SaveStateRequest, self._save),
            "DeleteBulkState": of("DeleteBulkState", api_v1.DeleteBulkStateRequest, self._nothing),
            "GetJobAlpha1": of("GetJobAlpha1", api_v1.GetJobRequest, self._nothing),
        }
        return grpc.method_handlers_generic_handler("dapr.proto.runtime.v1.Dapr", methods)

    def _hub(self) -> Any:
        unknown = lambda request, context: pb.GetInstanceResponse(exists=False)  # noqa: E731
        methods = {"GetInstance": self._method("GetInstance", pb.GetInstanceRequest, unknown)}
        return grpc.method_handlers_generic_handler("TaskHubSidecarService", methods)

    def _method(self, name: str, request: Any, answer: Callable[[Any, Any], Any]) -> Any:
        def handle(asked: Any, context: Any) -> Any:
            if name in self._silent:
                self._over.wait()
            if name in self._refusals:
                context.abort(*self._refusals[name])
            return answer(asked, context)

        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    def _metadata(self, request: Any, context: Any) -> Any:
        return ParseDict(self._told, api_v1.GetMetadataResponse())

    def _get(self, request: Any, context: Any) -> Any:
        value = self._values.get(request.key, b"")
        return api_v1.GetStateResponse(data=value, etag="1" if value else "")

    def _save(self, request: Any, context: Any) -> Any:
        if request.store_name not in [each["name"] for each in self._told["components"]]:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"state store {request.store_name} is not found",
            )
        for state in request.states:
            if state.key in self._values:
                context.abort(grpc.StatusCode.ABORTED, "possible etag mismatch")
            self._values[state.key] = state.value
        return Empty()

    def _nothing(self, request: Any, context: Any) -> Any:
        return Empty()
