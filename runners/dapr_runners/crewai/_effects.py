"""Effects that a program calls between its steps (in the method of a flow): steps of their own."""

from collections.abc import Callable
from typing import Any

from dapr_runners.crewai._asks import Ask
from dapr_runners.crewai._proxies import finished
from dapr_runners.crewai._strands import current_place


class EffectsAsSteps:
    """Where effects are called outside of every step of a driven run."""

    def call(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``function`` as a step of its own, which goes by ``name``."""
        place = current_place()
        if place is None:
            return function(*args, **kwargs)
        return place.driver.step(place, _ask(name, function, args, kwargs))

    async def acall(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Twin of :meth:`call`."""
        place = current_place()
        if place is None:
            return await function(*args, **kwargs)
        return await place.driver.astep(place, _ask(name, function, args, kwargs))


def _ask(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Ask:
    arguments: dict[str, Any] = {"args": list(args), **kwargs} if args else kwargs
    return Ask(
        kind="effect",
        name=name,
        head=name,
        messages=[arguments],
        execute=lambda: finished(function(*args, **kwargs)),
        asked={"arguments": arguments},
        hints=(function,),
    )
