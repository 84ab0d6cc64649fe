"""Claims, crashes, expiries, late writers and retries in any order, against the record store.

DAPR_RUNNERS_EXAMPLES sets how many sequences are tried (`make chaos`: ten thousand).
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dapr_runners.effects import EffectRecord, EffectStatus, IllegalTransitionError
from dapr_runners.effects._records import EffectRecords, Found, Marker
from dapr_runners.engine import BlockingIO, begun_key, run_in_thread
from dapr_runners.state import AllowList, Codec, StateStore
from engines import Sidecar

_EXAMPLES = int(os.environ.get("DAPR_RUNNERS_EXAMPLES", "200"))
_WORKERS = ("a", "b")
_LEASE = 10.0
_S = EffectStatus


class UnluckyIO(BlockingIO):
    """Lets something else happen right before the next write, or loses the answer to it, which is
    then sent again."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(store)
        self.before: Callable[[], object] | None = None
        self.loses_answer = False

    def _write(self, write: Callable[[], Any]) -> Any:
        before, self.before = self.before, None
        if before is not None:
            before()
        result = write()
        if self.loses_answer:
            self.loses_answer = False
            return write()
        return result

    async def _replace(self, key: str, value: bytes, etag: str) -> bool:
        return self._write(lambda: self._store.replace(key, value, etag))

    async def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        return self._write(lambda: self._store.create_many(values))


class Records(RuleBasedStateMachine):
    """One effect, and workers that may do to it whatever a worker does, as late as they like."""

    store: ClassVar[StateStore]

    @initialize()
    def begin_run(self) -> None:
        self.run = f"run-{uuid.uuid4().hex}"
        self.now = 1000.0
        self.dead: set[str] = set()
        self.io = UnluckyIO(self.store)
        self.held: dict[str, Found] = {}
        """What each worker has last got: it may be long out of date."""
        self.token = 0
        self.results: list[bytes] = []
        """Results that somebody was told to count."""
        self.names = 0

    def _records(self, worker: str) -> EffectRecords:
        return EffectRecords(
            self.io,
            Codec(AllowList()),
            now=lambda: self.now,
            is_gone=lambda owner: owner in self.dead,
            owner=worker,
        )

    def _read(self) -> Found | None:
        return run_in_thread(self._records("reader").read(self.run, "key"))

    def _name(self) -> str:
        self.names += 1
        return f"{self.names}"

    def _claim(self, worker: str) -> Found | None:
        """What a worker does that wants the effect: claim it, if it may be claimed."""
        records, found = self._records(worker), self._read()
        if found is None:
            marker = Marker(begun_key(self.run, "step", 0), b"marker")
            record = EffectRecord(
                run_id=self.run, step_id="step", effect="charge", idempotency_key="key"
            )
            return run_in_thread(records.create(record, _LEASE, self._name(), marker))
        status = found.record.execution_status
        if status is _S.SUCCEEDED or records.has_owner(found.record):
            return None
        if status is _S.EXECUTING:
            run_in_thread(records.orphan(found, "lost"))
            return None
        return run_in_thread(records.claim(found, _LEASE, self._name()))

    # -- what may happen

    @rule(worker=st.sampled_from(_WORKERS))
    def claims(self, worker: str) -> None:
        if worker not in self.dead and (claim := self._claim(worker)) is not None:
            self.held[worker] = claim
            self._is_holder(worker, claim.record)

    @rule(worker=st.sampled_from(_WORKERS))
    def begins(self, worker: str) -> None:
        held = self.held.get(worker)
        if worker in self.dead or held is None or held.record.execution_status is not _S.CLAIMED:
            return
        begun = run_in_thread(self._records(worker).begin(held, _LEASE))
        if begun is None:
            del self.held[worker]
        else:
            self.held[worker] = begun
            self._is_holder(worker, begun.record)

    def _is_holder(self, worker: str, ours: EffectRecord) -> None:
        """Who is told that what it did counts must be who holds the lease."""
        found = self._read()
        assert found is not None
        held = (found.record.lease_owner, found.record.attempt_id, found.record.fencing_token)
        assert held == (worker, ours.attempt_id, ours.fencing_token), "a stale owner counts"

    @rule(worker=st.sampled_from(_WORKERS))
    def takes_over(self, worker: str) -> None:
        """All of it at once, which chance would seldom put together."""
        self.now += _LEASE + 1
        self.claims(worker)
        self.claims(worker)
        self.begins(worker)

    def _executing(self, worker: str) -> EffectRecord | None:
        held = self.held.get(worker)
        if worker in self.dead or held is None or held.record.execution_status is not _S.EXECUTING:
            return None
        return held.record

    @rule(worker=st.sampled_from(_WORKERS))
    def succeeds(self, worker: str) -> None:
        if (ours := self._executing(worker)) is None:
            return
        result = self._name().encode()
        if run_in_thread(self._records(worker).succeed(ours, result)):
            self.results.append(result)
            self._is_holder(worker, ours)

    @rule(worker=st.sampled_from(_WORKERS), how=st.sampled_from(["fail", "doubt", "renew"]))
    def ends_otherwise(self, worker: str, how: str) -> None:
        if (ours := self._executing(worker)) is None:
            return
        records = self._records(worker)
        match how:
            case "fail":
                run_in_thread(records.fail(ours, b"error", "error"))
            case "doubt":
                run_in_thread(records.doubt(ours, "cut short"))
            case _:
                run_in_thread(records.renew(ours, _LEASE))

    @rule(worker=st.sampled_from(_WORKERS))
    def dies(self, worker: str) -> None:
        self.dead.add(worker)

    @precondition(lambda self: self.dead)
    @rule()
    def is_replaced(self) -> None:
        self.held.pop(self.dead.pop(), None)

    @rule(seconds=st.sampled_from([1.0, 4.0, _LEASE + 1]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(what=st.sampled_from(["done", "release", "question", "give up"]), stale=st.booleans())
    def somebody_decides(self, what: str, stale: bool) -> None:
        found = next(iter(self.held.values()), None) if stale else self._read()
        if found is None:
            return
        records, decision = self._records("person"), {"what": what}
        try:
            match what:
                case "done":
                    result = self._name().encode()
                    if run_in_thread(records.settle(found, result, decision=decision)) is not None:
                        self.results.append(result)
                case "release":
                    run_in_thread(records.release(found, decision))
                case "question":
                    run_in_thread(records.question(found, decision))
                case _:
                    run_in_thread(records.give_up(found, b"dropped", "dropped", decision))
        except IllegalTransitionError:
            assert found.record.execution_status not in (_S.UNKNOWN,)

    @rule(worker=st.sampled_from(_WORKERS))
    def others_come_between(self, worker: str) -> None:
        """Right before the next write, time passes and another worker finds the record."""

        def between() -> None:
            self.now += _LEASE + 1
            if (claim := self._claim(worker)) is not None and worker not in self.dead:
                self.held[worker] = claim

        self.io.before = between

    @rule()
    def an_answer_gets_lost(self) -> None:
        self.io.loses_answer = True

    # -- what must hold

    @invariant()
    def holds(self) -> None:
        found = self._read() if hasattr(self, "run") else None
        if found is None:
            return
        record = found.record
        assert record.fencing_token >= self.token, "a token went down"
        self.token = record.fencing_token
        assert len(self.results) <= 1, "two results count"
        if self.results:
            assert record.execution_status is _S.SUCCEEDED, "a result was lost"
            assert record.result == self.results[0]
        else:
            assert record.execution_status is not _S.SUCCEEDED

    def teardown(self) -> None:
        """A new worker, some time later, gets it done."""
        if not hasattr(self, "run"):
            return
        self.io.before, self.io.loses_answer = None, False
        self.now += 1000
        records = self._records("last")
        for _ in range(4):
            found = self._read()
            if found is not None and found.record.execution_status is _S.SUCCEEDED:
                break
            if (claim := self._claim("last")) is not None:
                begun = run_in_thread(records.begin(claim, _LEASE))
                assert begun is not None
                assert run_in_thread(records.succeed(begun.record, b"last"))
                self.results.append(b"last")
        else:
            raise AssertionError("it is stuck")
        self.holds()


@pytest.fixture
def machine(sidecar: Sidecar) -> Iterator[type[Records]]:
    """The state machine, on a sidecar's state store."""
    Records.store = StateStore(address=sidecar.address)
    yield Records
    Records.store.close()


@pytest.mark.timeout(3600)
def test_whatever_happens_an_effect_happens_once(machine: type[Records]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=_EXAMPLES,
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
