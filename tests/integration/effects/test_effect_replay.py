"""A step that runs again gets what its effects gave, and asks for the same ones."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
from effect_helpers import Charges, CountingStore, StepMaker

from dapr_runners import current_step
from dapr_runners._current_step import running
from dapr_runners.effects import (
    NOT_DONE,
    STILL_UNKNOWN,
    EffectMismatchError,
    EffectStatus,
    NestedEffectError,
    UnstorableResultError,
    current_effect,
    done,
    effect,
)
from dapr_runners.engine import Breaks, Parks
from dapr_runners.state import StateStoreError, UnstorableValueError

pytestmark = pytest.mark.timeout(240)


def _key() -> str:
    effect = current_effect()
    assert effect is not None
    return effect.idempotency_key


def test_outside_of_a_step_it_simply_runs() -> None:
    seen: list[Any] = []
    charge = effect(lambda order: seen.append((order, current_effect())))
    charge(1)
    charge(1)
    assert seen == [(1, None), (1, None)]


def test_a_lone_effect_costs_three_writes(make_step: StepMaker, store: CountingStore) -> None:
    charges = Charges()
    charge = effect(name="charge")(charges)
    with running(make_step()):
        assert charge("a") == "receipt 1"
    assert len(store.writes) == 3
    store.writes.clear()
    with running(make_step()):
        assert charge("a") == "receipt 1"
    assert (store.writes, charges.made) == ([], ["a"])


async def test_an_async_effect_costs_three_writes(
    make_step: StepMaker, store: CountingStore
) -> None:
    @effect
    async def charge(order: str) -> str:
        return f"receipt of {order}"

    for _ in range(2):
        with running(make_step()):
            assert await charge("a") == "receipt of a"
    assert len(store.writes) == 3


def test_each_call_is_an_effect_of_its_own(make_step: StepMaker) -> None:
    charges, keys = Charges(), []

    @effect
    def charge(order: str) -> str:
        running_now = current_effect()
        step = current_step()
        assert running_now is not None and step is not None and step.lease is not None
        assert step.lease.fencing_token == running_now.fencing_token == 1
        keys.append(running_now.idempotency_key)
        return charges(order)

    for _ in range(2):
        with running(make_step()):
            assert [charge("a"), charge(order="a"), charge("b")] == [
                "receipt 1",
                "receipt 2",
                "receipt 3",
            ]
    for other in (make_step("2:step"), make_step(run_id="another")):
        with running(other):
            charge("a")
    assert len(set(keys)) == len(keys) == 5


def test_other_arguments_are_refused(make_step: StepMaker) -> None:
    charges = Charges()
    charge = effect(name="charge")(charges)
    with running(make_step()):
        charge("a")
    step = make_step()
    with pytest.raises(Breaks) as caught, running(step):
        charge("b")
    error = caught.value.error
    assert isinstance(error, EffectMismatchError)
    assert error.effect == "charge"
    assert charges.made == ["a"]


def test_what_raised_is_tried_again_by_the_next_attempt(make_step: StepMaker) -> None:
    charges = Charges(ConnectionError("no"))
    keys = []

    @effect
    def charge(order: str) -> str:
        running_now = current_effect()
        assert running_now is not None
        keys.append((running_now.idempotency_key, running_now.attempt))
        return charges(order)

    for _ in range(2):  # the same attempt, again after its worker died: as it was
        with pytest.raises(ConnectionError, match="no"), running(make_step()):
            charge("a")
    assert len(charges.made) == 1
    for _ in range(2):
        with running(make_step(attempt=2)):
            assert charge("a") == "receipt 2"
    assert len(charges.made) == 2
    assert keys == [(keys[0][0], 1), (keys[0][0], 2)]


def test_a_failure_that_the_step_has_got_over_is_not_tried_again(make_step: StepMaker) -> None:
    charges = Charges(ValueError("declined"))
    charge = effect(name="charge")(charges)

    def pay() -> str:
        for card in ("first", "second"):
            try:
                return charge(card)
            except ValueError:
                continue
        raise AssertionError

    with running(make_step()):
        assert pay() == "receipt 2"
    # The first card is not tried again: the second was charged instead.
    with running(make_step(attempt=2)):
        assert pay() == "receipt 2"
    assert charges.made == ["first", "second"]


def test_before_it_is_tried_again_the_outside_is_asked(make_step: StepMaker) -> None:
    # A charge whose answer got lost raises, and has happened.
    charges = Charges(TimeoutError("no answer"))
    charge = effect(reconcile=lambda key, record: done("receipt 1"), name="charge")(charges)
    with pytest.raises(TimeoutError), running(make_step()):
        charge("a")
    with running(make_step(attempt=2)):
        assert charge("a") == "receipt 1"
    assert len(charges.made) == 1


def test_cut_short_it_is_unknown(make_step: StepMaker) -> None:
    charges = Charges(KeyboardInterrupt())
    charge = effect(name="charge")(charges)
    with pytest.raises(KeyboardInterrupt), running(make_step()):
        charge("a")
    with pytest.raises(Parks), running(make_step(attempt=2)):
        charge("a")
    assert len(charges.made) == 1


async def test_cancelled_it_is_unknown(make_step: StepMaker) -> None:
    begun, charges = asyncio.Event(), Charges()

    @effect(reconcile=lambda key, record: NOT_DONE)
    async def charge(order: str) -> str:
        begun.set()
        if not charges.made:
            charges.made.append(order)
            await asyncio.sleep(60)
        return charges(order)

    async def step() -> None:
        with running(make_step()):
            await charge("a")

    task = asyncio.create_task(step())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with running(make_step()):
        assert await charge("a") == "receipt 2"


@pytest.mark.parametrize("swallows", [Exception, BaseException])
def test_a_step_cannot_swallow_that_it_is_parked(
    swallows: type[BaseException], make_step: StepMaker
) -> None:
    charges = Charges(KeyboardInterrupt())
    charge = effect(name="charge")(charges)
    with pytest.raises(KeyboardInterrupt), running(make_step()):
        charge("a")
    other = Charges()
    with pytest.raises(Parks), running(make_step()):
        try:
            charge("a")
        except swallows:
            effect(name="other")(other)("b")
    assert other.made == []


def test_a_result_that_cannot_be_stored_has_happened_all_the_same(make_step: StepMaker) -> None:
    made: list[str] = []

    @effect
    def charge(order: str) -> Any:
        made.append(_key())
        return threading.Lock()

    for _ in range(2):
        with pytest.raises(Breaks) as caught, running(make_step()):
            charge("a")
        error = caught.value.error
        assert isinstance(error, UnstorableResultError)
        assert isinstance(error, UnstorableValueError)
        assert str(error) == (
            f"The effect 'charge' has happened (idempotency key {made[0]}), but what 'charge' "
            f"returned is a _thread.lock, which cannot be stored: {error.reason}. So the effect is "
            "recorded as done and never repeated, its result is lost, and its run fails. Look for "
            f"what came of it in the system it goes to. {error.remedy}"
        )
    assert len(made) == 1


def test_a_result_that_the_store_refuses_has_happened_all_the_same(
    make_step: StepMaker, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    refused = StateStoreError(store="s", status="INVALID_ARGUMENT", detail="it is too large")
    reason = str(refused).removesuffix(".")
    replace = store.replace

    def refuse(key: str, value: bytes, etag: str) -> bool:
        if len(value) > 10_000:
            raise refused
        return replace(key, value, etag)

    monkeypatch.setattr(store, "replace", refuse)

    @effect
    def charge(order: str) -> str:
        made.append(_key())
        return "x" * 20_000

    for _ in range(2):
        with pytest.raises(Breaks) as caught, running(make_step()):
            charge("a")
        assert str(caught.value.error) == (
            f"The effect 'charge' has happened (idempotency key {made[0]}), but what 'charge' "
            f"returned is a str, which cannot be stored: {reason}. So the effect is recorded as "
            "done and never repeated, its result is lost, and its run fails. Look for what came of "
            "it in the system it goes to. Return less: a reference to it, for instance."
        )
    assert len(made) == 1


def test_arguments_need_not_be_storable(make_step: StepMaker) -> None:
    charges = Charges()

    @effect
    def charge(client: Any, order: str) -> str:
        return charges(order)

    for _ in range(2):
        with running(make_step()):
            assert charge(threading.Lock(), "a") == "receipt 1"
    with pytest.raises(Breaks), running(make_step()):
        charge(threading.Lock(), "b")
    with pytest.raises(TypeError, match="missing a required argument"), running(make_step()):
        charge(threading.Lock())  # type: ignore[call-arg]


def test_a_key_of_its_own_names_the_operation(make_step: StepMaker) -> None:
    keys = []

    @effect(key=lambda order: order)
    def charge(order: str) -> str:
        running_now = current_effect()
        assert running_now is not None
        keys.append(running_now.idempotency_key)
        return f"receipt {len(keys)}"

    with running(make_step(tenant="one")):
        assert [charge("a"), charge("b"), charge("a")] == ["receipt 1", "receipt 2", "receipt 1"]
    with running(make_step("2:step", tenant="one")):
        assert charge("a") == "receipt 1"  # the same operation, in the same run
    with running(make_step(run_id="another", tenant="one")):
        assert charge("a") == "receipt 3"  # in another run: the outside knows its key
    with running(make_step(run_id="third", tenant="two")):
        charge("a")
    assert keys[2] == keys[0]
    assert len({keys[0], keys[1], keys[3]}) == 3


def test_parallel_calls_are_matched_by_their_arguments(make_step: StepMaker) -> None:
    orders = [f"order {number}" for number in range(8)]

    @effect
    def charge(order: str) -> str:
        made.append(order)
        return f"receipt for {order}"

    def step(asked: list[str]) -> list[str]:
        with running(make_step()), ThreadPoolExecutor(8) as threads:
            futures = [threads.submit(copy_context().run, charge, order) for order in asked]
            return [future.result() for future in futures]

    made: list[str] = []
    step(orders[:3])  # then its worker died
    results = step(orders[::-1])
    assert results == [f"receipt for {order}" for order in orders[::-1]]
    assert sorted(made) == orders


async def test_parallel_async_calls(make_step: StepMaker) -> None:
    made = []

    @effect
    async def charge(order: int) -> int:
        made.append(order)
        await asyncio.sleep(0)
        return order

    for orders in ([1, 2, 3], [3, 2, 1, 4]):
        with running(make_step()):
            assert await asyncio.gather(*(charge(order) for order in orders)) == orders
    assert sorted(made) == [1, 2, 3, 4]


def test_an_effect_is_one_action(make_step: StepMaker) -> None:
    inner = effect(name="inner")(Charges())
    outer = effect(name="outer")(lambda: inner("a"))
    error = pytest.raises(NestedEffectError, match="'inner' was called inside the effect 'outer'")
    with error, running(make_step()):
        outer()


def test_what_cannot_be_an_effect() -> None:
    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    async def reconcile(key: str, record: Any) -> Any: ...

    for function in (generator, async_generator):
        with pytest.raises(TypeError, match="is a generator"):
            effect(function)
    with pytest.raises(TypeError, match="is no function"):
        effect(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must not be"):
        effect(reconcile=reconcile)(lambda: None)
    with pytest.raises(ValueError, match="needs a reconcile"):
        effect(on_unknown="reconcile")
    with pytest.raises(ValueError, match="must be one of"):
        effect(on_unknown="guess")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="more than 0"):
        effect(lease=0)


def test_a_missing_record_is_no_proof(make_step: StepMaker, store: CountingStore) -> None:
    charges = Charges()
    charge = effect(name="charge")(charges)
    step = make_step()
    with running(step):
        charge("a")
    (key,) = {key for keys in store.writes for key in keys if "/effect/" in key}
    store.delete_many([key])
    with pytest.raises(Parks) as caught, running(make_step()):
        charge("a")
    assert caught.value.about["error"] == "its record is missing"
    assert charges.made == ["a"]


def test_what_raised_and_is_still_unknown_says_both(make_step: StepMaker) -> None:
    charges = Charges(ConnectionError("it is down"))
    charge = effect(name="charge", reconcile=lambda key, record: STILL_UNKNOWN)(charges)
    with pytest.raises(ConnectionError), running(make_step()):
        charge("a")
    for _ in range(2):
        with pytest.raises(Parks) as caught, running(make_step(attempt=2)):
            charge("a")
        assert caught.value.about["error"] == (
            "it raised ConnectionError: it is down; reconcile answered STILL_UNKNOWN"
        )


def test_who_comes_second_waits_for_who_is_at_it(make_step: StepMaker) -> None:
    charges, begun, go_on = Charges(), threading.Event(), threading.Event()

    @effect(lease=2.0)
    def charge(order: str) -> str:
        begun.set()
        assert go_on.wait(60)
        return charges(order)

    def step() -> str:
        with running(make_step()):
            return charge("a")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(step)
        assert begun.wait(60)
        second = threads.submit(step)
        # Longer than its lease, which is renewed.
        assert not go_on.wait(4.5)
        go_on.set()
        assert first.result() == second.result() == "receipt 1"
    assert charges.made == ["a"]


@pytest.mark.parametrize("answer", [TypeError("bad"), "yes", None])
def test_a_reconcile_that_does_not_answer_parks_the_run(
    answer: Any, make_step: StepMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dapr_runners.effects._execution._RECONCILE_PAUSES", (0.01,))

    def reconcile(key: str, record: Any) -> Any:
        assert record.execution_status is EffectStatus.UNKNOWN
        if isinstance(answer, Exception):
            raise answer
        return answer

    charge = effect(name="charge", reconcile=reconcile)(Charges(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt), running(make_step()):
        charge("a")
    with pytest.raises(Parks, match="reconcile r"), running(make_step()):
        charge("a")
