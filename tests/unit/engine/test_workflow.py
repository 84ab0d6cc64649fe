"""The generator, driven by hand: what it starts, and in answer to what."""

import json
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from dapr.ext.workflow._durabletask import task as sdk

from dapr_runners.engine._workflow import run_workflow

Json = dict[str, Any]


class Activity(sdk.CompletableTask[Any]):
    """An activity, which fails with an error of the type named ``kind`` if that is set."""

    kind: str | None = None

    @property
    def is_failed(self) -> bool:
        return self.kind is not None

    def get_exception(self) -> Any:
        error = RuntimeError(self.kind)
        vars(error)["details"] = SimpleNamespace(error_type=self.kind, message="away")
        return error


class Drive:
    """A run of the generator. ``started`` are the activities' inputs, ``timers`` the waits."""

    def __init__(self, **base: Any) -> None:
        self.started: list[Json] = []
        self.timers: list[float] = []
        self.status: list[str] = []
        self.output: Json | None = None
        self._tasks: dict[str, Activity] = {}
        self._waits: list[sdk.CompletableTask[Any]] = []
        request = {"base": {"run": "r", "mode": "sync", **base}, "runner": "graph"}
        self._generator = run_workflow(self, request)
        next(self._generator)

    # -- the workflow context

    def call_activity(self, name: str, *, input: Json) -> Any:
        self.started.append({"activity": name, **input})
        self._tasks[name] = Activity()
        return self._tasks[name]

    def create_timer(self, fire_at: timedelta) -> Any:
        self.timers.append(fire_at.total_seconds())
        self._waits.append(sdk.CompletableTask())
        return self._waits[-1]

    def set_custom_status(self, status: str) -> None:
        self.status.append(status)

    # -- what happens

    def answer(self, name: str, outcome: Json) -> None:
        """The activity ``name``, last started, gives ``outcome``."""
        self._happens(lambda: self._tasks[f"graph/{name}"].complete(outcome))

    def fail(self, name: str, kind: str) -> None:
        """The activity ``name`` fails."""
        activity = self._tasks[f"graph/{name}"]
        activity.kind = kind
        self._happens(lambda: activity.complete(None))

    def fire(self, number: int = -1) -> None:
        """A timer is due."""
        self._happens(lambda: self._waits[number].complete(None))

    def names(self) -> list[str]:
        """Names of the activities started."""
        return [item["activity"].partition("/")[2] for item in self.started]

    def _happens(self, event: Callable[[], None]) -> None:
        event()
        try:
            self._generator.send(None)
        except StopIteration as stop:
            self.output = stop.value


def plan(n: int, *steps: str, lane: str = "", **more: Any) -> Json:
    """A plan of ``steps``, whose ids are their names."""
    fuse = {"fuse": True} if len(steps) == 1 else {}
    planned = [{"id": name, "name": name, **fuse, **more} for name in steps]
    where = {"lane": lane, "at": f"{lane}{n}", "n": n}
    return {"k": "plan", **where, "steps": planned, "commit": f"{lane}__commit__"}


def step(n: int, name: str, lane: str = "", **more: Any) -> Json:
    return {"k": "step", "lane": lane, "n": n, "id": name, "at": f"{lane}{n}:{name}", **more}


END = {"k": "end", "at": "9", "status": "completed"}


def test_a_chain_is_one_activity_a_step() -> None:
    drive = Drive()
    drive.answer("__start__", plan(0, "a"))
    drive.answer("a", plan(1, "b"))
    drive.answer("b", END)
    assert drive.names() == ["__start__", "a", "b"]
    assert drive.output == END


def test_a_retry_waits_for_its_timer() -> None:
    drive = Drive()
    drive.answer("__start__", plan(0, "a"))
    drive.answer("a", {"k": "retry", "id": "a", "after": 3, "attempt": 2})
    assert (drive.names(), drive.timers) == (["__start__", "a"], [3])
    drive.fire()
    assert drive.started[-1]["attempt"] == 2


def test_a_retry_of_a_step_whose_superstep_is_over_is_not_started() -> None:
    drive = Drive()
    drive.answer("__start__", plan(0, "a", "b"))
    drive.answer("a", {"k": "retry", "id": "a", "after": 3, "attempt": 2})
    drive.answer("b", step(0, "b", stop=True))
    drive.answer("__commit__", plan(1, "handler"))
    drive.fire()
    assert drive.names() == ["__start__", "a", "b", "__commit__", "handler"]


def test_a_step_that_is_asked_about_too_early_goes_on() -> None:
    drive = Drive(limit=5)
    drive.answer("__start__", plan(0, "a"))
    drive.fire()
    assert drive.started[-1]["activity"] == "graph/__control__"
    assert drive.started[-1]["step"] == "a"
    drive.answer("__control__", {"k": "wait", "after": 2})
    assert drive.timers == [5, 2]
    drive.answer("a", END)
    assert drive.output == END


def test_a_step_that_is_given_up_is_not_heard_later() -> None:
    drive = Drive(limit=5)
    drive.answer("__start__", plan(0, "a", "b"))
    drive.fire(0)
    drive.answer("__control__", step(0, "a"))
    drive.answer("a", step(0, "a"))
    drive.answer("b", step(0, "b"))
    assert drive.names() == ["__start__", "a", "b", "__control__", "__commit__"]
    assert drive.started[-1]["done"] == [["a", "0:a"], ["b", "0:b"]]


@pytest.mark.parametrize("kind", ["SidecarUnreachableError", "ActivityNotRegisteredError"])
def test_what_passes_is_waited_for_as_long_as_it_takes(kind: str) -> None:
    drive = Drive()
    for _ in range(20):
        drive.fail("__start__", kind)
        drive.fire()
    assert drive.timers[:5] == [2, 4, 8, 10, 10]
    assert drive.status == ['{"kind": "' + kind + '", "step": "__start__"}']
    drive.answer("__start__", END)
    assert drive.status[-1] == ""


_UNDELIVERED = "MessageUndeliveredError"


def test_a_receiver_that_is_away_is_waited_for_as_long_as_it_takes() -> None:
    drive = Drive()
    for _ in range(20):
        drive.fail("__start__", _UNDELIVERED)
        drive.fire()
    assert json.loads(drive.status[-1])["kind"] == _UNDELIVERED
    assert json.loads(drive.status[-1])["detail"] == "away"
    drive.answer("__start__", END)
    assert (drive.status[-1], drive.output) == ("", END)


def test_a_message_is_sent_though_the_run_has_ended_without_its_step() -> None:
    drive = Drive()
    drive.answer("__start__", plan(0, "a", "b"))
    drive.fail("a", _UNDELIVERED)
    drive.answer("b", step(0, "b", stop=True))
    drive.answer("__commit__", END)
    assert drive.output is None
    drive.fire()
    drive.fail("a", _UNDELIVERED)
    drive.fire()
    assert drive.names() == ["__start__", "a", "b", "__commit__", "a", "a"]
    drive.answer("a", step(0, "a"))
    assert drive.names()[-1] == "a"
    assert drive.output == END


def test_other_failures_end_the_run_after_eight_retries() -> None:
    drive = Drive()
    for _ in range(8):
        drive.fail("__start__", "KeyError")
        drive.fire()
    with pytest.raises(RuntimeError, match="KeyError"):
        drive.fail("__start__", "KeyError")


class Parking(Drive):
    """A run whose steps may park."""

    def __init__(self) -> None:
        self.events: dict[str, sdk.CompletableTask[Any]] = {}
        self.next_input: Json | None = None
        super().__init__()

    def wait_for_external_event(self, name: str) -> Any:
        self.events[name] = sdk.CompletableTask()
        return self.events[name]

    def continue_as_new(self, next_input: Json, *, save_events: bool) -> None:
        assert save_events
        self.next_input = next_input

    def decide(self, name: str) -> None:
        """Somebody has decided what a step waits with."""
        self._happens(lambda: self.events[name].complete(name))


def _park(step: str) -> Json:
    about = {"at": f"parked/{step}", "step": step, "effect": "charge", "idempotency_key": "k"}
    return {"k": "park", "about": about}


def test_a_parked_step_is_given_out_again_when_somebody_has_decided() -> None:
    drive = Parking()
    drive.answer("__start__", plan(0, "a"))
    drive.answer("a", _park("a"))
    assert drive.names() == ["__start__", "a"]
    assert '"effect": "charge"' in drive.status[-1]
    drive.decide("parked/a")
    assert drive.status[-1] == ""
    again = drive.started[-1]
    assert (again["name"], again["parked"]) == ("a", "parked/a")
    drive.answer("a", END)
    assert drive.output == END


def test_a_run_goes_on_beside_a_parked_step_and_carries_it_over() -> None:
    drive = Parking()
    drive.answer("__start__", plan(0, "a", "b", window=1))
    drive.answer("a", _park("a"))
    # As many attempts at the other as a history may have activities.
    for attempt in range(2, 40):
        if drive.next_input is not None:
            break
        drive.answer("b", {"k": "retry", "id": "b", "after": 1, "attempt": attempt})
        drive.fire()
    assert drive.next_input is not None
    ((item, about),) = drive.next_input["parked"]
    assert (item["task"], about["at"]) == ("a", "parked/a")


class Rolling(Parking):
    """A run whose root lane is rolling."""

    def wake(self) -> None:
        """The process that holds the lane has found more steps."""
        self.decide("wake")


def rolling(n: int, *steps: str, **more: Any) -> Json:
    """A plan of ``steps`` of a rolling lane; one alone is committed by its own activity."""
    planned = plan(n, *steps, **({"then": True} if len(steps) == 1 else {}))
    for step in planned["steps"]:
        step.pop("fuse", None)
    return {**planned, "commit": "advance", "rolling": True, **more}


def test_the_step_of_a_plan_told_early_says_what_made_the_plan() -> None:
    drive = Rolling()
    drive.answer("__start__", rolling(0, "a"))
    drive.answer("a", rolling(1, "b", by="host 1 2"))
    assert "prev" not in drive.started[-2]
    assert drive.started[-1]["prev"] == {
        "at": "0",
        "task": "a",
        "name": "a",
        "then": "advance",
        "by": "host 1 2",
    }


def test_a_plan_that_was_told_and_not_recorded_is_replaced() -> None:
    drive = Rolling()
    drive.answer("__start__", rolling(0, "a"))
    drive.answer("a", rolling(1, "b", by="host 1 2"))
    drive.answer("b", rolling(1, "c"))
    drive.answer("c", rolling(2, "d"))
    assert drive.names() == ["__start__", "a", "b", "c", "d"]
    assert (drive.started[-1]["at"], drive.started[-1]["n"]) == ("2", 2)


def test_a_lane_that_is_woken_while_it_is_driven_is_driven_again() -> None:
    drive = Rolling()
    drive.answer("__start__", rolling(0, "a", "b"))
    drive.answer("a", step(0, "a"))
    assert drive.names()[-1] == "advance"
    drive.wake()
    assert drive.names().count("advance") == 1
    drive.answer("advance", rolling(1))
    assert drive.names().count("advance") == 2
    assert drive.started[-1]["done"] == []


def test_a_lane_that_is_woken_beside_a_step_that_drives_it_on_waits_for_that() -> None:
    drive = Rolling()
    drive.answer("__start__", rolling(0, "a"))
    drive.wake()
    drive.answer("a", rolling(1, "b"))
    assert drive.names() == ["__start__", "a", "b"]
    drive.answer("b", rolling(2, "c", "d"))
    assert drive.names() == ["__start__", "a", "b", "c", "d", "advance"]
