"""The step that charges, in a durable run."""

from collections.abc import Callable

from chaos.trial import Trial
from dapr_runners import current_step


def charge_of(trial: Trial) -> Callable[[], str]:
    """What charges, and gives the id of the charge. A key that is saved before is the one that the
    runner keeps for the step."""

    def charge() -> str:
        step = current_step()
        assert step is not None
        return trial.charge(step.idempotency_key if trial.key == "saved" else None)

    return charge
