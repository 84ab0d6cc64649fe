"""Whether a sidecar runs workflows: asked before a worker's stream opens, which would retry in
silence for ever where an answer says what is wrong."""

import grpc
from dapr.ext import workflow as sdk

from dapr_runners.engine._faults import sidecar_fault, without_sdk_log


def probe_workflows(address: str) -> None:
    """Ask the sidecar at ``address`` for a workflow that does not exist. Raises what is wrong."""
    host, _, port = address.rpartition(":")
    client = sdk.DaprWorkflowClient(host=host, port=port)
    try:
        with without_sdk_log():
            client.get_workflow_state("dapr-runners-probe", fetch_payloads=False)
    except grpc.RpcError as error:
        raise sidecar_fault(address, error) from None
    finally:
        client.close()
