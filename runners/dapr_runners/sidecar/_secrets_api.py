"""Secrets of the local components."""

from typing import Any

import grpc

from dapr_runners.sidecar._components import Components
from dapr_runners.sidecar._grpc import Context, Methods, abort, unary
from dapr_runners.sidecar._protos import api_v1
from dapr_runners.sidecar.errors import ResourceFileError


class SecretsApi:
    """Gives one secret at a time."""

    def __init__(self, components: Components) -> None:
        self._stores = components.secrets

    def methods(self) -> Methods:
        """What to serve."""
        return {"GetSecret": unary(self.get, api_v1.GetSecretRequest, api_v1.GetSecretResponse)}

    async def get(self, request: Any, context: Context) -> Any:
        """A secret, under its own name."""
        if not self._stores:
            detail = "secret store is not configured"
            await abort(context, grpc.StatusCode.FAILED_PRECONDITION, detail)
        store = self._stores.get(request.store_name)
        if store is None:
            detail = f"failed finding secret store with key {request.store_name}"
            await abort(context, grpc.StatusCode.INVALID_ARGUMENT, detail)
        try:
            found = store.get(request.key)
        except ResourceFileError as error:
            await abort(context, grpc.StatusCode.INTERNAL, str(error))
        if found is None:
            detail = (
                f"failed getting secret with key {request.key} from secret store"
                f" {request.store_name}: secret {request.key} not found"
            )
            await abort(context, grpc.StatusCode.INTERNAL, detail)
        return api_v1.GetSecretResponse(data={request.key: found})
