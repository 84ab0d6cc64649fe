"""What ``dapr-runners doctor`` asks a sidecar that it has reached."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

from dapr_runners.cli._checks import SIDECAR_LIMIT, SUPPORTED, minor_of
from dapr_runners.cli._findings import Finding, within
from dapr_runners.cli._reach import reach
from dapr_runners.cli._resiliency import resiliency_findings
from dapr_runners.cli._resources import Resources
from dapr_runners.cli._workers import worker_findings
from dapr_runners.errors import DaprRunnersError

_EMBEDDED = "embedded"
_SETTLE_SECONDS = 10.0
"""A sidecar that has just begun is connected in less, and so is one whose placement service waits
8 s for another that has died."""
_SCHEDULER_SECONDS = 3.0
_STORE_SECONDS = 10.0
"""A sidecar tries a store that is away for some 3 seconds before it says so."""
_SENT_AT_ONCE = 3 * 1024 * 1024 + 64 * 1024
"""Bytes of the largest message that the runners send: three parts of a large value."""


class SidecarChecks:
    """The checks of the sidecar at ``address``, whose state store for the runners is
    ``store_name``. ``resources`` is its resources path, if known; ``fix`` writes a Resiliency into
    it where it lacks one."""

    def __init__(
        self,
        address: str,
        store_name: str,
        resources: Resources | None = None,
        fix: bool = False,
    ) -> None:
        self.address = address
        self._resources = resources
        self._fix = fix
        self.store_name = store_name
        self.metadata: Any = None

    def all(self) -> Iterator[Finding]:
        """Everything, in the order in which it would fail."""
        self.metadata, trouble = reach(self.address)
        if trouble is not None:
            yield trouble
            if not trouble.ok:
                return
        services: list[Finding] = []
        if self.metadata is not None:
            yield from self._about()
            services = list(self.services())
            yield from services
        yield from self._stores(all(each.ok for each in services))
        yield self._messages()
        if self.metadata is not None and not self.is_embedded:
            yield from resiliency_findings(self.metadata, self._resources, self._fix)
        yield from worker_findings(self.address, self.store_name)

    @property
    def is_embedded(self) -> bool:
        """Whether it is our own."""
        return self.metadata is not None and self.metadata.runtime_version == _EMBEDDED

    # -- the sidecar itself

    def _about(self) -> Iterator[Finding]:
        answer = self.metadata
        names = ", ".join(f"{one.name} ({one.type})" for one in answer.registered_components)
        runtime: str = answer.runtime_version or "unknown"
        text = f"app id {answer.id}, runtime {runtime}, components: {names or 'none'}"
        oldest, newest = SUPPORTED
        found = minor_of(runtime)
        if self.is_embedded or found == (0, 0) or oldest <= found <= newest:
            yield Finding("sidecar", "ok", text)
        elif found < oldest:
            yield Finding(
                "sidecar",
                "problem",
                f"daprd {runtime} is not supported: its workflow engine is older than 1.18",
                "install Dapr 1.18.3 or later (dapr init --runtime-version 1.18.3; on Kubernetes,"
                " dapr upgrade -k --runtime-version 1.18.3)",
            )
        else:
            yield Finding("sidecar", "warning", f"{text}; newer than what was tested")

    def services(self) -> Iterator[Finding]:
        """Placement and scheduler. Without them daprd accepts what it will never do."""
        if self.is_embedded:
            yield Finding("engine", "ok", "the embedded sidecar needs no placement and scheduler")
            return
        give_up_at = time.monotonic() + _SETTLE_SECONDS
        while not self._is_settled() and time.monotonic() < give_up_at:
            time.sleep(0.25)
            self.metadata = reach(self.address)[0] or self.metadata
        yield self._placement()
        yield self._scheduler()

    def _is_settled(self) -> bool:
        if _state_of(self.metadata.actor_runtime) == "DISABLED":
            return True  # and will stay so
        connected = "disconnected" not in self.metadata.actor_runtime.placement
        return connected and bool(self.metadata.scheduler.connected_addresses)

    def _placement(self) -> Finding:
        runtime = self.metadata.actor_runtime
        if "disconnected" not in runtime.placement:
            return Finding("placement", "ok", "connected")
        remedy = "start the placement service (dapr init runs it in a container)"
        if _state_of(runtime) == "DISABLED":
            return Finding(
                "placement",
                "problem",
                "the sidecar was started without a placement service, so no workflow runs",
                f"{remedy}, and give daprd --placement-host-address (dapr run does)",
            )
        return Finding(
            "placement",
            "problem",
            "the sidecar does not reach the placement service, so no workflow goes on",
            f"{remedy}, or correct daprd's --placement-host-address",
        )

    def _scheduler(self) -> Finding:
        from dapr_runners.engine import scheduler_answers

        addresses = list(self.metadata.scheduler.connected_addresses)
        remedy = (
            "start the scheduler service (dapr init runs it in a container), and see that daprd's"
            " --scheduler-host-address names it"
        )
        if not addresses:
            return Finding(
                "scheduler",
                "problem",
                "the sidecar is not connected to the scheduler service, so no workflow starts",
                remedy,
            )
        if not scheduler_answers(self.address, _SCHEDULER_SECONDS):
            return Finding(
                "scheduler",
                "problem",
                f"the scheduler service at {', '.join(addresses)} does not answer the sidecar any"
                " more, so no workflow goes on",
                remedy,
            )
        return Finding("scheduler", "ok", f"connected ({', '.join(addresses)})")

    # -- state

    def _stores(self, engine_is_up: bool) -> Iterator[Finding]:
        found = self._state()
        yield from found
        # Where the runners' store is down, asking the engine takes as long, and tells the same.
        if engine_is_up and all(each.ok for each in found):
            yield self._workflows()

    def _workflows(self) -> Finding:
        from dapr_runners.engine import (
            ActorStoreDownError,
            ActorStoreMissingError,
            probe_workflows,
        )

        try:
            within(_STORE_SECONDS, lambda: probe_workflows(self.address))
        except ActorStoreMissingError:
            return Finding(
                "actor store",
                "problem",
                f"no state store of the sidecar at {self.address} is for actors, so no workflow"
                " runs",
                'add `actorStateStore: "true"` to one state store component in its resources path'
                " (components/ of dapr-runners has ready files), and restart it",
            )
        except ActorStoreDownError as error:
            return Finding(
                "actor store",
                "problem",
                f"the sidecar does not reach the state store of its workflows: {error.detail}",
                "start that store, or correct its address in the component file and restart the"
                " sidecar; runs then go on by themselves",
            )
        except DaprRunnersError as error:
            return Finding("workflows", "problem", str(error), "the sidecar's log tells more")
        except TimeoutError as error:
            return Finding(
                "workflows",
                "problem",
                f"the workflow engine gives {error}",
                "look at the sidecar's log: the state store of the workflows hangs, or a service",
            )
        return Finding("workflows", "ok", f"the sidecar at {self.address} runs them")

    def _state(self) -> list[Finding]:
        from dapr_runners.cli._stores import state_findings

        component = None
        if self.metadata is not None:
            declared = {each.name: each for each in self.metadata.registered_components}
            component = declared.get(self.store_name)
            if component is None or not component.type.startswith("state."):
                stores = [name for name, each in declared.items() if each.type[:6] == "state."]
                return [
                    Finding(
                        "state store",
                        "problem",
                        f"the sidecar has no state store named {self.store_name!r}; it has"
                        f" {', '.join(stores) or 'none'}",
                        "name yours with --store-name here and store_name= in the program, or add"
                        " one to the resources path (components/ of dapr-runners has ready files)",
                    )
                ]
        return list(state_findings(self.address, component, self.store_name))

    # -- sizes

    def _messages(self) -> Finding:
        """A message that no store takes, so that nothing is written, is refused for its size."""
        from dapr_runners.engine import receive_limit

        refused = self._refuses(_SENT_AT_ONCE)
        if refused:
            return Finding(
                "messages",
                "problem",
                f"the sidecar refuses messages of the size that the runners send: {refused}",
                "start daprd with --max-body-size 4Mi (its default) or more; on Kubernetes, the"
                ' annotation dapr.io/max-body-size: "4Mi"',
            )
        own = receive_limit()
        if own is not None and own >= SIDECAR_LIMIT and not self._refuses(own + 1):
            return Finding(
                "messages",
                "problem",
                f"the sidecar sends messages of more than the {own} bytes that this process takes:"
                " the first such one would stop all work",
                "unset DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES, or raise it to the sidecar's"
                " --max-body-size",
            )
        return Finding("messages", "ok", "sidecar and worker take the sizes that the runners send")

    def _refuses(self, size: int) -> str:
        """What the sidecar says against a message of ``size`` bytes, if it is that."""
        from dapr_runners.state import StateStore, StateStoreError

        store = StateStore(f"no-store-{uuid.uuid4().hex[:8]}", address=self.address)
        try:
            within(_STORE_SECONDS, lambda: store.put("key", bytes(size)))
        except StateStoreError as error:
            return error.detail if error.status == "RESOURCE_EXHAUSTED" else ""
        except (DaprRunnersError, TimeoutError):
            return ""  # told by another check
        finally:
            store.close()
        return ""


def _state_of(actor_runtime: Any) -> str:
    enum = actor_runtime.DESCRIPTOR.fields_by_name["runtime_status"].enum_type
    return enum.values_by_number[actor_runtime.runtime_status].name
