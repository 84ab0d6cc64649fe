"""Where the effects of a run are recorded, and how they are found by their steps."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import record_key

_WINDOW = 8
"""Numbers read at once. As many may be missing in a row before the last."""
_FIRST_LOOK = 2
"""Markers of a step that are looked for where most steps have none."""


def effect_key(run: str, idempotency_key: str) -> str:
    """State key of the record of an effect."""
    return record_key(run, f"effect/{idempotency_key}")


def begun_key(run: str, step: str, number: int) -> str:
    """State key that names the effect that was begun as the ``number``-th (from 0) in a step."""
    return record_key(run, f"begun/{step}/{number}")


async def begun_in(run: str, step: str, io: IO) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """What names the effects that were begun in a step, by number."""
    async for number, data in _numbered(partial(begun_key, run, step), io):
        yield number, json.loads(data)


def answer_key(run: str, step: str, number: int) -> str:
    """State key of what a model has answered, as the ``number``-th (from 0) in a step."""
    return record_key(run, f"answer/{step}/{number}")


def answers_in(run: str, step: str, io: IO) -> AsyncIterator[tuple[int, bytes]]:
    """What models have answered in a step, by number."""
    return _numbered(partial(answer_key, run, step), io)


async def _numbered(key_of: Callable[[int], str], io: IO) -> AsyncIterator[tuple[int, bytes]]:
    """What is stored under the keys of the numbers from 0 on, by number."""
    start = 0
    while True:
        keys = [key_of(number) for number in range(start, start + _WINDOW)]
        found = await io.get_many(keys)
        for number, key in enumerate(keys, start):
            if key in found:
                yield number, found[key]
        if not found:
            return
        start += _WINDOW


async def effect_keys(io: IO, run: str, steps: Iterable[str]) -> AsyncIterator[str]:
    """State keys of all effects of ``steps``, and of what models have answered in them."""
    looked = {begun_key(run, s, number): s for s in steps for number in range(_FIRST_LOOK)}
    asked = {answer_key(run, step, 0): step for step in looked.values()}
    found = await io.get_many([*looked, *asked]) if looked else {}
    for step in {asked[key] for key in found if key in asked}:
        async for number, _ in answers_in(run, step, io):
            yield answer_key(run, step, number)
    for step in {looked[key] for key in found if key in looked}:
        async for number, plain in begun_in(run, step, io):
            yield begun_key(run, step, number)
            yield effect_key(run, plain["key"])
