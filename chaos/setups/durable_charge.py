"""The step that charges, in a durable run: declared as an effect or not."""

from collections.abc import Callable
from typing import Any

from chaos.trial import ORDER, Trial
from dapr_runners import current_step
from dapr_runners.effects import NOT_DONE, current_effect, done, effect


def charge_of(trial: Trial) -> Callable[[], str]:
    """What charges, and gives the id of the charge. A key that is saved before is the one that the
    runner keeps for the step or the effect."""
    if trial.effect == "undeclared":
        return lambda: _charge(trial, current_step())

    def charge() -> str:
        return _charge(trial, current_effect())

    if trial.effect == "reconciled":

        def find(key: str, record: object) -> Any:
            by = {"key": key} if trial.key == "saved" else {"order": ORDER}
            found = trial.account.charges(**by)
            return done(found[0].id) if found else NOT_DONE

        return effect(reconcile=find)(charge)
    # With a key that the service knows again, it is no harm to ask it again.
    return effect(on_unknown="retry")(charge) if trial.key == "saved" else effect(charge)


def _charge(trial: Trial, current: Any) -> str:
    return trial.charge(current.idempotency_key if trial.key == "saved" else None)
