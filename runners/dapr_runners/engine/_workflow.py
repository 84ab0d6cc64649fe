"""The one workflow generator, for all frameworks.

It moves references and small plain values between activities: a *lane* is one loop of a framework
(a graph, a subgraph inside it), which goes ``begin -> plan -> steps in parallel -> commit -> next
plan``. A plan with one step that may be fused runs step and commit in one activity. A *rolling*
lane has no barrier: each step that arrives is committed at once, while the others stay open. A step
may wait for an answer from outside, which holds no worker. The generator never looks at a payload,
reads no clock and calls no framework.

Activity input (``item``) and result (``outcome``) are JSON, described in ``_work``.
"""

import json
from collections.abc import Generator
from datetime import timedelta
from typing import Any, TypeAlias

from dapr_runners.engine._sdk import Arrivals

Json: TypeAlias = dict[str, Any]

CONTINUE_AFTER = 25
"""Activities in one history. Measured best on daprd 1.18.3."""
HOLD_AFTER = 400
"""With several lanes at work, no new activity starts after this many until all have ended."""
INFRASTRUCTURE_RETRIES = 8
"""How often an activity that failed outside the framework is tried again."""
UNDELIVERED = "MessageUndeliveredError"
PASSING = (
    "SidecarUnreachableError",
    "StateStoreError",
    "UnauthorizedError",
    "ActivityNotRegisteredError",
    "GraphChangedError",
    "EncryptionKeyMissingError",
    "EncryptionKeysError",
    "PlaintextRefusedError",
    "WrongEncryptionKeyError",
    UNDELIVERED,
)
"""What an activity may fail with for as long as it takes: the store is away, a receiver of messages
is, or the workers are of a program that does not have the step, or lack the keys."""
SENDING = ("activity", "delay")
EVENTS = ("answer", "wake", "parked")
"""What may be waited for over continue_as_new: it holds no activity and no timer."""
TELLING = 2
"""Failures after which the workflow's status says what holds the run up."""


def pause_after(faults: int, kind: str) -> float:
    """Seconds until an activity is tried again that has failed so often, now with an error of type
    ``kind``."""
    return min(2.0 ** min(faults, 6), 10.0 if kind in PASSING else 60.0)


def run_workflow(ctx: Any, inp: Json) -> Generator[Any, Any, Json]:
    """Drive one run from begin to end; the result is the last outcome."""
    return (yield from _Turn(ctx, inp).drive())


class _Turn:
    """The state of one run between two continue_as_new."""

    def __init__(self, ctx: Any, inp: Json) -> None:
        self._ctx = ctx
        self._base: Json = inp["base"]
        self._runner: str = inp["runner"]
        self._lanes: dict[str, Json] = inp.get("lanes") or {}
        self._todo: list[Json] = inp.get("todo") or [
            {"op": "begin", "lane": "", "name": "__start__"}
        ]
        self._arrivals = Arrivals()
        self._pending: dict[int, tuple[Any, str, Json]] = {}
        self._started = 0
        self._end: Json | None = None
        self._told: Json | None = None
        self._said = ""
        self._wakeable = False
        self._parked: dict[str, tuple[Json, Json]] = {}
        parked: list[list[Json]] = inp.get("parked") or []
        for item, about in parked:
            self._await_decision(item, about)
        for lane, state in self._lanes.items():
            if state.get("rolling"):
                self._listen(lane)
                for answer in state["waits"]:
                    self._await_answer(lane, answer)
        self._say()

    def drive(self) -> Generator[Any, Any, Json]:
        while self._end is None or self._is_sending():
            if self._end is None and self._may_continue_as_new():
                carried: Json = {
                    "base": self._base,
                    "runner": self._runner,
                    "lanes": self._lanes,
                    "todo": self._todo,
                }
                if parked := self._waiting():
                    carried["parked"] = parked
                self._ctx.continue_as_new(carried, save_events=True)
                return {}
            if self._started < HOLD_AFTER or self._end is not None:
                for item in self._todo:
                    if self._is_wanted(item):
                        self._start(item)
                self._todo = []
            arrived = self._arrivals.take()
            if arrived is None:
                yield self._arrivals.wait()
            else:
                self._arrived(arrived)
        return self._end

    def _may_continue_as_new(self) -> bool:
        todo = len(self._todo)
        if not todo or self._started < (CONTINUE_AFTER if todo == 1 else HOLD_AFTER):
            return False
        return not any(
            task.is_complete if kind in EVENTS else kind != "limit"
            for task, kind, _ in self._pending.values()
        )

    def _is_sending(self) -> bool:
        """Whether a step that is recorded has messages that nobody has taken: they are sent even if
        its superstep, or its run, went on without it."""
        waiting = [item for _, kind, item in self._pending.values() if kind in SENDING]
        return any(item.get("unsent") for item in (*waiting, *self._todo))

    # -- starting

    def _start(self, item: Json) -> None:
        self._started += 1
        name = f"{self._runner}/{item['name']}"
        self._watch(self._ctx.call_activity(name, input={**self._base, **item}), "activity", item)
        if (limit := item.get("limit") or self._base.get("limit")) and (
            item["op"] in ("fuse", "step") or self._base.get("fast")
        ):
            self._watch(self._timer(limit), "limit", item)

    def _timer(self, seconds: float) -> Any:
        return self._ctx.create_timer(timedelta(seconds=seconds))

    def _watch(self, task: Any, kind: str, item: Json) -> None:
        self._pending[id(task)] = (task, kind, item)
        self._arrivals.add(task)

    # -- arriving

    def _arrived(self, task: Any) -> None:
        _, kind, item = self._pending.pop(id(task))
        if kind == "delay":
            self._todo.append(item)
        elif kind == "lane-limit":
            self._lane_timed_out(item)
        elif kind == "parked":
            del self._parked[item["parked"]]
            self._todo.append(item)
            self._say()
        elif kind in EVENTS or kind == "again":
            self._rolling_event(kind, item, task)
        elif item.get("ended") is not None:
            pass  # it arrived, or was given up
        elif kind == "limit":
            # Not under the step's name: a concurrency limit on it would hold this back too.
            name = f"{self._runner}/__control__"
            about = {**self._base, **item, "name": "__control__", "step": item["name"]}
            self._watch(self._ctx.call_activity(name, input=about), "control", item)
        elif kind == "control" and (task.is_failed or task.get_result()["k"] == "wait"):
            # It has not run for so long: its worker died, or there was none.
            after = 1.0 if task.is_failed else task.get_result()["after"]
            self._watch(self._timer(after), "limit", item)
        else:
            item["ended"] = kind
            if task.is_failed:
                self._activity_failed(task, item)
            else:
                if item.get("faults", 0) >= TELLING:
                    self._tell(None)
                self._outcome(item, task.get_result())

    def _activity_failed(self, task: Any, item: Json) -> None:
        """The activity itself failed, not the step in it: the store was away, say."""
        error = task.get_exception()
        kind = error.details.error_type
        faults = item.get("faults", 0) + 1
        if faults > INFRASTRUCTURE_RETRIES and kind not in PASSING:
            raise error
        if faults >= TELLING:
            told = {"kind": kind, "step": item.get("step") or item["name"]}
            self._tell({**told, "detail": error.details.message} if kind == UNDELIVERED else told)
        again = {**_clean(item), "faults": faults}
        if kind == UNDELIVERED:
            again["unsent"] = True
        self._delay(pause_after(faults, kind), again)

    def _tell(self, waits_for: Json | None) -> None:
        """Say in the workflow's custom status what holds the run up."""
        self._told = waits_for
        self._say()

    def _say(self) -> None:
        said = dict(self._told or {})
        if asks := [answer for state in self._lanes.values() for answer in state.get("waits", ())]:
            said["asks"] = asks
        if parked := [about for _, about in self._waiting()]:
            said["parked"] = parked
        text = json.dumps(said) if said else ""
        if text != self._said:
            self._said = text
            self._ctx.set_custom_status(text)

    # -- parking

    def _park(self, item: Json, about: Json) -> None:
        """Give ``item`` out again when somebody has decided what ``about`` is about."""
        self._await_decision({**_clean(item), "parked": about["at"]}, about)
        self._say()

    def _await_decision(self, item: Json, about: Json) -> None:
        self._parked[about["at"]] = item, about
        self._watch(self._ctx.wait_for_external_event(about["at"]), "parked", item)

    def _waiting(self) -> list[list[Json]]:
        """What is parked, and about what, but for that which its lane went on without."""
        return [[item, about] for item, about in self._parked.values() if self._is_wanted(item)]

    def _delay(self, seconds: float, item: Json) -> None:
        self._watch(self._timer(seconds), "delay", item)

    def _outcome(self, item: Json, outcome: Json) -> None:
        match outcome["k"]:
            case "retry":
                kept = {key: outcome[key] for key in ("attempt", "since", "due") if key in outcome}
                self._delay(outcome["after"], {**_clean(item), **kept})
            case "park":
                self._park(item, outcome["about"])
            case "plan" if self._alive(item["lane"]):
                self._planned(item, outcome)
            case "plan":
                pass  # the lane around it went on without it
            case "step":
                if "then" in item:  # it was given up, and its activity with it
                    self._lanes[item["lane"]]["busy"] = False
                self._settled(outcome)
            case "none":
                pass  # its superstep went on without it
            case _:
                self._end = self._end or outcome

    def _planned(self, item: Json, plan: Json) -> None:
        lane: str = item["lane"]
        state: Json = {
            "at": plan["at"],
            "n": plan["n"],
            "commit": plan["commit"],
            "queue": plan["steps"],
            "open": [],
            "done": [],
            "window": plan.get("window"),
        }
        if "told" in plan:
            state["told"] = plan["told"]
        if plan.get("rolling"):
            self._roll(state, self._lanes.get(lane), item)
        self._lanes[lane] = state
        steps: list[Json] = plan["steps"]
        if len(steps) == 1 and steps[0].get("fuse"):
            state["queue"] = []
            state["busy"] = True
            fuse = {"op": "fuse", "lane": lane, **_at(state), **_step(steps[0])}
            self._todo.append({**fuse, **self._told_by(plan, item)})
            return
        if timeout := plan.get("timeout"):
            self._watch(self._timer(timeout), "lane-limit", {"lane": lane, "n": plan["n"]})
        self._open_steps(lane, state, self._told_by(plan, item))
        if state.get("rolling"):
            self._rolled(lane, state, plan)

    def _told_by(self, plan: Json, item: Json) -> Json:
        """Who told ``plan``, which ``item`` made, before it was recorded: for its one step."""
        if "by" not in plan:
            return {}
        place = {key: item[key] for key in ("at", "task", "name", "attempt", "then") if key in item}
        if limit := item.get("limit") or self._base.get("limit"):
            place["limit"] = limit
        return {"prev": {**place, "by": plan["by"]}}

    def _is_wanted(self, item: Json) -> bool:
        """Whether the lane of ``item`` still is where it was when ``item`` was planned: it may have
        waited for its next attempt meanwhile."""
        if self._end is not None or item.get("unsent"):
            return bool(item.get("unsent"))
        lane: str = item["lane"]
        if item["op"] == "begin":
            return self._alive(lane)
        state = self._lanes.get(lane)
        if state is not None and state.get("rolling") and item["op"] == "step":
            return item["task"] in state["open"]
        if state is None or state["n"] != item["n"] or not self._alive(lane):
            return False
        return item["op"] != "step" or item["task"] in state["open"]

    def _alive(self, lane: str) -> bool:
        """Whether every lane around ``lane`` still waits for it."""
        while lane:
            head, _, last = lane[:-1].rpartition("/")
            around = f"{head}/" if head else ""
            n, _, task = last.partition(":")
            state = self._lanes.get(around)
            if state is None or str(state["n"]) != n or task not in state["open"]:
                return False
            lane = around
        return True

    def _open_steps(self, lane: str, state: Json, told_by: Json | None = None) -> None:
        window = state["window"] or len(state["queue"]) + len(state["open"])
        while state["queue"] and len(state["open"]) < window:
            step = state["queue"].pop(0)
            state["open"].append(step["id"])
            if step.get("wait"):
                state["waits"].append(f"{lane}{state['n']}:{step['id']}")
                self._await_answer(lane, state["waits"][-1])
            elif step.get("loop"):
                inner = f"{lane}{state['n']}:{step['id']}/"
                self._todo.append(
                    {"op": "begin", "lane": inner, "up": lane, **_at(state), **_step(step)}
                )
            else:
                item = {"op": "step", "lane": lane, **_at(state), **_step(step)}
                if step.get("then"):
                    item |= {"then": state["commit"], **(told_by or {})}
                    state["busy"] = True
                self._todo.append(item)

    def _settled(self, outcome: Json) -> None:
        lane = outcome["lane"]
        state = self._lanes.get(lane)
        if state is not None and state.get("rolling"):
            self._settled_rolling(lane, state, outcome)
            return
        if state is None or outcome["n"] != state["n"] or outcome["id"] not in state["open"]:
            return  # its lane went on without it
        self._lanes.pop(f"{lane}{state['n']}:{outcome['id']}/", None)
        state["open"].remove(outcome["id"])
        state["done"].append([outcome["id"], outcome["at"]])
        if more := outcome.get("more"):
            state["queue"].extend(more)
        if state["queue"]:
            self._open_steps(lane, state)
        if outcome.get("stop") or not state["open"]:
            self._commit(lane, state)

    def _lane_timed_out(self, item: Json) -> None:
        state = self._lanes.get(item["lane"])
        if state is not None and state["n"] == item["n"] and state["open"]:
            self._commit(item["lane"], state, timed_out=True)

    # -- rolling lanes

    def _roll(self, state: Json, before: Json | None, item: Json) -> None:
        """Let the next plan of a rolling lane take over what is still open."""
        state.update({"rolling": True, "busy": False, "waits": [], "woken": False})
        if before is not None:
            for part in ("open", "done", "waits"):
                state[part] = before[part]
            state["woken"] = before.get("woken", False)
            if "then" in item:
                state["open"].remove(item["task"])

    def _rolled(self, lane: str, state: Json, plan: Json) -> None:
        if again := plan.get("again"):
            self._watch(self._timer(again), "again", {"lane": lane, "n": plan["n"]})
        self._listen(lane)
        self._say()
        if (state["done"] or state["woken"]) and not state["busy"]:
            self._advance(lane, state)

    def _settled_rolling(self, lane: str, state: Json, outcome: Json) -> None:
        if outcome["id"] not in state["open"]:
            return
        state["open"].remove(outcome["id"])
        state["done"].append([outcome["id"], outcome["at"]])
        if not state["busy"]:
            self._advance(lane, state)

    def _advance(self, lane: str, state: Json) -> None:
        item = {"op": "commit", "lane": lane, "name": state["commit"], "done": state["done"]}
        self._todo.append({**item, **_at(state)})
        state["busy"], state["done"], state["woken"] = True, [], False

    def _listen(self, lane: str) -> None:
        """The process that holds a lane may find more steps after it told its plan."""
        if not self._wakeable:
            self._wakeable = True
            self._watch(self._ctx.wait_for_external_event("wake"), "wake", {"lane": lane})

    def _await_answer(self, lane: str, at: str) -> None:
        self._watch(self._ctx.wait_for_external_event(at), "answer", {"lane": lane, "at": at})

    def _rolling_event(self, kind: str, item: Json, task: Any) -> None:
        lane: str = item["lane"]
        state = self._lanes[lane]
        if kind == "answer":
            at: str = item["at"]
            if at in state["waits"]:
                state["waits"].remove(at)
                self._say()
            # What was answered is recorded under this key: the event only says that it is.
            self._settled_rolling(lane, state, {"id": at.rpartition(":")[2], "at": at})
            return
        if kind == "wake":
            self._wakeable = False
            self._listen(lane)
        if state["busy"]:
            state["woken"] = True
        elif kind == "wake" or item["n"] == state["n"]:
            self._advance(lane, state)

    def _commit(self, lane: str, state: Json, timed_out: bool = False) -> None:
        for inner in [path for path in self._lanes if path != lane and path.startswith(lane)]:
            del self._lanes[inner]
        state["open"], state["queue"] = [], []
        item = {"op": "commit", "lane": lane, "name": state["commit"], "done": state["done"]}
        if timed_out:
            item["timed_out"] = True
        self._todo.append({**item, **_at(state)})
        if self._parked:
            self._say()


def _at(state: Json) -> Json:
    at = {"at": state["at"], "n": state["n"]}
    if "told" in state:
        at["told"] = state["told"]
    return at


def _step(step: Json) -> Json:
    kept = {"task": step["id"], "name": step["name"]}
    for optional in ("of", "limit"):
        if optional in step:
            kept[optional] = step[optional]
    return kept


def _clean(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "ended"}
