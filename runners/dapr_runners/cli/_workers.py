"""What ``dapr-runners doctor`` finds out about the processes that work for an app."""

import time
from collections.abc import Iterator

from dapr_runners.cli._findings import Finding
from dapr_runners.errors import DaprRunnersError

_SECONDS = 10.0
_SKEW_SECONDS = 5.0


def worker_findings(address: str, store_name: str) -> Iterator[Finding]:
    """Whether the processes at work have the same runners, and clocks that agree."""
    from dapr_runners.engine import roster
    from dapr_runners.state import UNREADABLE, StateStore

    store = StateStore(store_name, address=address, timeout=_SECONDS)
    try:
        members = roster(store)
    except UNREADABLE as error:
        yield Finding(
            "encryption",
            "problem",
            f"this process cannot read what the workers of this app store: {error}",
            "give it and all workers the same keys",
        )
        return
    except DaprRunnersError:
        return  # told by another check
    finally:
        store.close()
    ahead = max((each.seen for each in members), default=0.0) - time.time()
    if ahead > _SKEW_SECONDS:
        yield Finding(
            "clocks",
            "warning",
            f"the clock of another host is {ahead:.0f} s ahead of this one's",
            "let the hosts synchronize their clocks (NTP)",
        )
    by_runners = {each.runners: each for each in members}
    if len(by_runners) > 1:
        told = "; ".join(
            f"{each.shown} has {', '.join(runners)}" for runners, each in by_runners.items()
        )
        yield Finding(
            "workers",
            "problem",
            f"programs with different runners work under one app id: {told}. They get each"
            " other's work, and fail what they do not know",
            "give each program an app id of its own (--app-id), or all of them the same runners",
        )
    elif members:
        names = ", ".join(members[0].runners)
        yield Finding("workers", "ok", f"{len(members)} at work on {names}")
    else:
        yield Finding("workers", "ok", "none at work now: runs wait for one")
