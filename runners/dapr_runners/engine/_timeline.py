"""The steps of a run in the order of its plans, from its records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dapr_runners._statuses import StepStatus
from dapr_runners.engine._step_summary import StepSummary, Summaries
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec


@dataclass(frozen=True, slots=True)
class Open:
    """A step that no record tells the end of. ``marked`` is the record key that its attempt is
    marked under when it begins. ``first`` is the first record of the lane inside the step: if it is
    there, the step has begun. ``is_own`` says that it is a step of the program's."""

    summary: StepSummary
    marked: str
    plan: Record | None
    first: Record | None = None
    is_own: bool = True


class Timeline:
    """Reads ``records``, which are by key. ``codec`` reads their errors."""

    def __init__(self, records: Mapping[str, Record], codec: Codec) -> None:
        self._read = Summaries(codec)
        self._attempts: dict[str, list[Record]] = {}
        for record in records.values():
            self._attempts.setdefault(record.key.partition("~")[0], []).append(record)
        for attempts in self._attempts.values():
            attempts.sort(key=lambda record: int(record.key.partition("~")[2] or 1))

    def steps(self, lane: str = "", name: str = "__start__") -> Iterator[StepSummary | Open]:
        """The steps. What makes the next plan of a lane, and is no step of the program's, is among
        those that are open, by the name of its activity."""
        number = 0
        before: Record | None = None
        is_fused = False
        while (plan := self._newest(f"{lane}{number}")) is not None:
            yield from self._read.on_the_way(plan)
            if plan.outcome["k"] != "plan":
                return
            before = plan
            steps: list[Json] = [*plan.outcome["steps"]]
            is_fused = len(steps) == 1 and bool(steps[0].get("fuse"))
            for step in steps:  # of which some have others follow them
                key = f"{lane}{number}:{step['id']}"
                if step.get("loop"):
                    yield from self._loop(key, step, plan)
                    steps += self._more(self._last_in(key))
                else:
                    at = f"{lane}{number + 1}" if is_fused else key
                    yield from self._attempts_at(at, key, step, plan)
                    steps += self._more(None if is_fused else self._newest(key))
            number += 1
            name = plan.outcome["commit"]
        if not is_fused:
            at = f"{lane}{number}"
            yield replace(self._next(at, at, {"name": name}, before), is_own=False)

    def _attempts_at(
        self, at: str, key: str, step: Json, plan: Record
    ) -> Iterator[StepSummary | Open]:
        found = self._attempts.get(at, [])
        for record in found:
            yield self._read.of(record, key, step["name"], plan)
        if not found or found[-1].outcome["k"] == "retry":
            yield self._next(at, key, step, plan)

    def _loop(self, key: str, step: Json, plan: Record) -> Iterator[StepSummary | Open]:
        """A step with a lane inside: what is inside, and then the step itself."""
        first = self._newest(f"{key}/0")
        if first is None:  # what begins the lane begins the step
            yield replace(_open(key, key, step, plan), marked=f"{key}/0")
            return
        yield from self.steps(f"{key}/", step["name"])
        last = self._last_in(key)
        if last is None or last.outcome["k"] == "retry":
            yield replace(_open(key, key, step, plan), first=first)
        else:
            yield self._read.around(first, last, key, step["name"], plan)

    def _next(self, at: str, key: str, step: Json, plan: Record | None) -> Open:
        """The attempt that follows those at the step ``key``, which are recorded under ``at``."""
        last = self._newest(at)
        if last is not None and last.outcome["k"] == "retry":
            at = f"{at}~{last.outcome['attempt']}"
        return _open(at, key, step, plan)

    def _last_in(self, key: str) -> Record | None:
        """The record after the plans of the lane inside the step ``key``."""
        number = 0
        while (last := self._newest(f"{key}/{number}")) and last.outcome["k"] == "plan":
            number += 1
        return last

    def _more(self, record: Record | None) -> list[Json]:
        """The steps that were planned when ``record`` was made, to follow its own."""
        if record is None or record.outcome["k"] != "step":
            return []
        return record.outcome.get("more") or []

    def _newest(self, key: str) -> Record | None:
        return found[-1] if (found := self._attempts.get(key)) else None


def _open(at: str, key: str, step: Json, plan: Record | None) -> Open:
    status = StepStatus.WAITING if step.get("wait") else StepStatus.PLANNED
    return Open(StepSummary(at, step["name"], status, 0, None, None, key), at, plan)
