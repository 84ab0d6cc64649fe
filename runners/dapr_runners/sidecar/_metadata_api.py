"""What the sidecar says of itself, and of what it does not have."""

from collections.abc import Sequence
from typing import Any

import grpc

from dapr_runners.sidecar._components import Components
from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._grpc import Context, Methods, abort, unary
from dapr_runners.sidecar._protos import Empty, api_v1

_STORE = ("ETAG", "TRANSACTIONAL", "TTL", "KEYS_LIKE")

_NOT_CONFIGURED = {
    "GetBulkSecret": "secret store is not configured",
    "GetConfiguration": "configuration stores not configured",
    "TryLockAlpha1": "lock store is not configured",
    "UnlockAlpha1": "lock store is not configured",
}
"""What daprd answers where no component of the kind is declared, as none can be here."""


class MetadataApi:
    """Metadata, and refusals of what needs a component this sidecar has none of."""

    def __init__(self, engine: Engine, components: Components) -> None:
        self._engine = engine
        self._components = components
        self._extended: dict[str, str] = {}

    def methods(self) -> Methods:
        """What to serve."""
        methods: Methods = {
            "GetMetadata": unary(self.get, api_v1.GetMetadataRequest, api_v1.GetMetadataResponse),
            "SetMetadata": unary(self.set, api_v1.SetMetadataRequest, Empty),
        }
        for name, detail in _NOT_CONFIGURED.items():
            refuse = _refusal(grpc.StatusCode.FAILED_PRECONDITION, detail)
            methods[name] = unary(refuse, Empty, Empty)
        unsupported = "state store does not support querying"
        refuse = _refusal(grpc.StatusCode.INTERNAL, unsupported)
        methods["QueryStateAlpha1"] = unary(refuse, Empty, Empty)
        return methods

    async def get(self, request: Any, context: Context) -> Any:
        """Components and workers."""
        components: list[Any] = []
        for store in self._components.stores.values():
            capabilities: Sequence[str] = (*_STORE, "ACTOR") if store.actors else _STORE
            components.append(
                api_v1.RegisteredComponents(
                    name=store.name, type="state.sqlite", version="v1", capabilities=capabilities
                )
            )
        components += [
            api_v1.RegisteredComponents(name=name, type="pubsub.in-memory", version="v1")
            for name in self._components.pubsubs
        ]
        return api_v1.GetMetadataResponse(
            id=self._engine.app_id,
            registered_components=components,
            extended_metadata=self._extended,
            runtime_version="embedded",
            workflows=api_v1.MetadataWorkflows(connected_workers=self._engine.workers),
        )

    async def set(self, request: Any, context: Context) -> Empty:
        """A pair to hand back with the rest."""
        self._extended[request.key] = request.value
        return Empty()


def _refusal(code: grpc.StatusCode, detail: str) -> Any:
    async def refuse(_: Any, context: Context) -> None:
        await abort(context, code, detail)

    return refuse
