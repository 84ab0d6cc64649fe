"""What the records of a run tell of its steps."""

from collections.abc import Iterable, Sequence

from dapr_runners.crewai._outcomes import Known
from dapr_runners.engine import IO, Record, record_key, unpack_record
from dapr_runners.state import Codec, CorruptRecordError


class History:
    """Reads the records of one runner's runs."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    async def between(self, run: str, first: int, last: int, io: IO) -> list[Known]:
        """What plans ``first`` to ``last`` tell, with the outcomes of the steps they came after."""
        plans = await self._records(run, [str(n) for n in range(first, last + 1)], io)
        known: list[Known] = []
        after: list[str] = []
        for plan in plans:
            known += told_by(plan)
            after += plan.outcome.get("past", ())
        return known + await self.outcomes(run, after, io)

    async def outcomes(self, run: str, keys: Sequence[str], io: IO) -> list[Known]:
        """The outcomes recorded under ``keys``."""
        return [outcome_in(record) for record in await self._records(run, keys, io)]

    async def _records(self, run: str, keys: Sequence[str], io: IO) -> list[Record]:
        if not keys:
            return []
        stored = {record_key(run, key): key for key in keys}
        found = await io.get_many(list(stored))
        records: list[Record] = []
        for at, key in stored.items():
            if at not in found:
                raise CorruptRecordError(key=at, reason="it is missing")
            records.append(unpack_record(self._codec, key, found[at], at))
        return records


def told_by(plan: Record) -> Iterable[Known]:
    """The steps that a plan tells of, and the outcomes recorded with it."""
    for packed in (*plan.body.get("told", ()), *plan.body.get("known", ())):
        yield Known.unpack(packed)


def outcome_in(record: Record) -> Known:
    """The outcome that the record of a step holds."""
    return Known.unpack(record.body["known"])
