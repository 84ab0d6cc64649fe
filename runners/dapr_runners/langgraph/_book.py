"""Reading back what steps and plans recorded."""

from dapr_runners.engine import IO, Record, Work, record_key, unpack_record
from dapr_runners.langgraph._parking import StepResult
from dapr_runners.langgraph._results import thaw_result
from dapr_runners.langgraph._scope import Scope
from dapr_runners.state import Codec, CorruptRecordError


class Book:
    """The records of one runner's runs."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    async def record(self, run: str, key: str, io: IO) -> Record:
        """The record ``key`` of ``run``."""
        at = record_key(run, key)
        data = await io.get(at)
        if data is None:
            raise CorruptRecordError(key=at, reason="it is gone")
        return self._unpack(key, at, data)

    async def results(
        self, work: Work, scope: Scope, io: IO, known: dict[str, StepResult]
    ) -> list[StepResult]:
        """What the steps of a plan made, in the order in which they ended. ``known`` are results
        in memory, by record key."""
        keys = [key for _, key in work.item["done"]]
        wanted = {key: record_key(work.run, key) for key in keys if key not in known}
        found = await io.get_many(list(wanted.values())) if wanted else {}
        results: list[StepResult] = []
        for key in keys:
            if key in known:
                results.append(known[key])
            elif wanted[key] in found:
                at = wanted[key]
                results.append(await self._result(scope, key, at, found[at]))
            else:
                raise CorruptRecordError(key=wanted[key], reason="it is gone")
        return results

    async def _result(self, scope: Scope, key: str, at: str, data: bytes) -> StepResult:
        body = self._unpack(key, at, data).body
        return thaw_result(body["result"], await scope.reader(body["artifacts"], scope.is_async))

    async def failed(self, work: Work, scope: Scope, io: IO) -> StepResult | None:
        """The failed step that an error handler is for, if the item is one."""
        key = work.item.get("of")
        if key is None:
            return None
        record = await self.record(work.run, key, io)
        reader = await scope.reader(record.body["artifacts"], scope.is_async)
        return thaw_result(record.body["result"], reader)

    def _unpack(self, key: str, at: str, data: bytes) -> Record:
        return unpack_record(self._codec, key, data, at)
