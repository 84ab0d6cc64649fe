"""Following a run costs the same per record, however long the run is."""

from collections import Counter
from typing import Any, ClassVar

import pytest

from dapr_runners.engine._step_summary import Summaries
from dapr_runners.engine._steps_told import StepsTold
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import ReadingCodec

_STEPS = 2000


class Counted(Record):
    """A record that counts how often what is in it is looked at."""

    looks: ClassVar[Counter[str]] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in ("outcome", "body", "times"):
            Counted.looks[object.__getattribute__(self, "key")] += 1
        return object.__getattribute__(self, name)


def chain(fused: bool) -> list[Record]:
    """The log of a run of so many steps, one after another: of fused ones, or of pairs."""
    records: list[Record] = []
    for n in range(_STEPS):
        names = ["step"] if fused else ["step", "beside"]
        steps: list[Json] = [{"id": name, "name": name, "fuse": fused} for name in names]
        plan = {"k": "plan", "lane": "", "n": n, "at": str(n), "steps": steps, "commit": "commit"}
        records.append(Counted(str(n), plan, {}, [], [], "", 1, (n, n + 0.5)))
        for name in () if fused else names:
            done = {"k": "step", "lane": "", "n": n, "id": name, "at": f"{n}:{name}"}
            records.append(Counted(f"{n}:{name}", done, {}, [], [], "", 1, (n, n + 0.5)))
    end = {"k": "end", "at": str(_STEPS), "status": "completed"}
    return [*records, Counted(str(_STEPS), end, {}, [], [], "", 1, (_STEPS, _STEPS + 0.5))]


@pytest.mark.parametrize("fused", [True, False])
def test_no_record_is_looked_at_again_and_again(
    fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    whole = Summaries.of

    def of(self: Summaries, record: Record, *about: Any) -> Any:
        described.append(record.key)
        return whole(self, record, *about)

    monkeypatch.setattr(Summaries, "of", of)
    log = chain(fused)
    told = StepsTold(ReadingCodec())
    Counted.looks.clear()
    over = [step for record in log for step in told.over_with(record)]
    assert len(over) == _STEPS * (1 if fused else 2)
    assert len(described) == len(over)
    assert max(Counted.looks.values()) < 40
