"""Which sidecar a command is about, and what it reads runs with."""

import functools
import inspect
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dapr_runners.cli._exits import told_of_errors

if TYPE_CHECKING:
    from dapr_runners.engine import Overview


def _options(
    *,
    store_name: Annotated[
        str, typer.Option("--store-name", help="The runners' state store component.")
    ] = "statestore",
    dapr_grpc_port: Annotated[
        int | None,
        typer.Option("--dapr-grpc-port", help="The sidecar's; default: as the variables say."),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", help="The sidecar elsewhere: host:port, or https://host."),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Its API token. Default: DAPR_API_TOKEN.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Of this tenant's runs alone.")
    ] = None,
) -> None: ...


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A sidecar, and the state store of the runners. ``address`` is ``host:port`` or a URL."""

    address: str
    store_name: str
    tenant: str | None = None

    @contextmanager
    def runs(self) -> "Generator[Overview]":
        """The runs there. Raises what is wrong with the sidecar."""
        from dapr_runners.engine import Overview, Worker, tenant_mark
        from dapr_runners.state import StateStore

        worker = Worker(self.address)
        worker.probe()
        store = StateStore(self.store_name, address=self.address)
        try:
            yield Overview(store, worker, None if self.tenant is None else tenant_mark(self.tenant))
        finally:
            store.close()
            worker.client.close()


def on_sidecar(command: Callable[..., None]) -> Callable[..., None]:
    """``command``, whose first parameter takes a :class:`Sidecar`, with the options that say which.
    An error of ours ends it with the exit code of its kind."""
    signature = inspect.signature(command, eval_str=True)
    options = inspect.signature(_options).parameters

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        told = {name: arguments.pop(name) for name in options}
        with told_of_errors():
            command(_named(**told), **arguments)

    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(signature.parameters.values())[1:]
    ]
    parameters = [*own, *options.values()]
    untyped: Any = run
    del untyped.__wrapped__
    untyped.__signature__ = signature.replace(parameters=parameters)
    untyped.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _named(
    store_name: str,
    dapr_grpc_port: int | None,
    endpoint: str | None,
    token: str | None,
    tenant: str | None,
) -> Sidecar:
    from dapr_runners.state import sidecar_address

    if endpoint is not None and dapr_grpc_port is not None:
        raise typer.BadParameter("name the sidecar with one of --endpoint and --dapr-grpc-port")
    if token is not None:
        from dapr.conf import settings

        os.environ["DAPR_API_TOKEN"] = token
        vars(settings)["DAPR_API_TOKEN"] = token  # the SDK has read the variable by now
    port = None if dapr_grpc_port is None else str(dapr_grpc_port)
    return Sidecar(endpoint or sidecar_address(port=port), store_name, tenant)
