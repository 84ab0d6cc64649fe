"""The steps of a run as they end, from its records as they come."""

from collections.abc import Iterator

from dapr_runners.engine._step_summary import StepSummary, Summaries
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec


class StepsTold:
    """Takes the records of a run one by one, in the order of its log. What it keeps is of the steps
    that are open: a record costs the same at the end of a long run as at its beginning."""

    def __init__(self, codec: Codec) -> None:
        self._read = Summaries(codec)
        self._open: dict[str, tuple[str, str, Record]] = {}
        """By the key of the record to come: id and name of a step, and its plan."""
        self._loops: dict[str, tuple[str, Record, Record | None]] = {}
        """By the id of a step with a lane inside: its name, its plan, and the lane's first
        record."""

    def over_with(self, record: Record) -> Iterator[StepSummary]:
        """The attempts at steps that are over, now that ``record`` is there."""
        outcome = record.outcome
        at = record.key.partition("~")[0]
        if (found := self._open.get(at)) is not None:
            step_id, name, plan = found
            yield self._read.of(record, step_id, name, plan)
            if outcome["k"] != "retry":
                del self._open[at]
            self._expect_more(outcome, plan)
        lane, _, last = at.rpartition("/")
        if ":" in last:
            return
        yield from self._read.on_the_way(record)
        if last == "0" and lane in self._loops:
            name, plan, _ = self._loops[lane]
            self._loops[lane] = name, plan, record
        if outcome["k"] == "step" and (loop := self._loops.pop(lane, None)) is not None:
            name, plan, first = loop
            yield self._read.around(first or record, record, lane, name, plan)
            self._expect_more(outcome, plan)
        elif outcome["k"] == "plan":
            self._planned(record)

    def _planned(self, plan: Record) -> None:
        steps: list[Json] = plan.outcome["steps"]
        lane, number = plan.outcome["lane"], plan.outcome["n"]
        if len(steps) == 1 and steps[0].get("fuse"):
            step = steps[0]
            self._open[f"{lane}{number + 1}"] = f"{lane}{number}:{step['id']}", step["name"], plan
        else:
            self._expect(f"{lane}{number}", steps, plan)

    def _expect_more(self, outcome: Json, plan: Record) -> None:
        if outcome["k"] == "step":
            self._expect(f"{outcome['lane']}{outcome['n']}", outcome.get("more") or [], plan)

    def _expect(self, place: str, steps: list[Json], plan: Record) -> None:
        for step in steps:
            step_id = f"{place}:{step['id']}"
            if step.get("loop"):
                self._loops[step_id] = step["name"], plan, None
            else:
                self._open[step_id] = step_id, step["name"], plan
