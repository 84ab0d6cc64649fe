"""Telling a workflow something at the moment in which a sidecar lets go of it."""

from typing import Any

import pytest

from dapr_runners.engine._io import BlockingIO
from dapr_runners.engine._telling import within

CLOSED = "failed to invoke method for workflow 'r': actor is closed, cannot handle lock"


@pytest.mark.parametrize("reason", [CLOSED, "no such instance exists"])
async def test_it_is_told_again(reason: str) -> None:
    calls: list[int] = []

    def tell() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError(reason)
        return "told"

    store: Any = None
    told = await within(BlockingIO(store), 30, tell)
    if reason == CLOSED:
        assert told.result(30) == "told"
    else:
        assert (str(told.exception(30)), len(calls)) == (reason, 1)
