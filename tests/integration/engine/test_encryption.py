"""With keys, nothing that a user put in is in clear in the state store: not in records,
checkpoints, artifacts, messages, dead letters or live chunks, nor in the history of workflows."""

import base64
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import encrypted_graphs
import pytest
from encrypted_graphs import PLANTED, Refused, planted
from langgraph.types import Command
from run_helpers import collect, eventually
from tests.worker_processes import WorkerProcess

from dapr_runners.engine import PubSub
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import (
    CorruptRecordError,
    EncryptionKeyMissingError,
    EncryptionKeys,
    StateStore,
    WrongEncryptionKeyError,
)
from engines import Sidecar
from state_files import everything, histories, overwrite, stored

pytestmark = pytest.mark.timeout(240)
ONE = "one:" + base64.b64encode(b"1" * 32).decode()
TWO = "two:" + base64.b64encode(b"2" * 32).decode()
NOT_ONE = TWO.replace("two:", "one:")
KEYS, PLAINTEXT = "DAPR_RUNNERS_ENCRYPTION_KEYS", "DAPR_RUNNERS_ENCRYPTION_PLAINTEXT"
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Place:
    """A sidecar with workers and callers that have keys."""

    def __init__(self, sidecar: Sidecar, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.sidecar = sidecar
        self._monkeypatch = monkeypatch
        self._made: list[DaprWorkflowGraphRunner] = []

    def worker(self, keys: str, plaintext: str = "") -> WorkerProcess:
        variables = {**self.sidecar.env(), **({KEYS: keys} if keys else {})}
        if plaintext:
            variables[PLAINTEXT] = plaintext
        folder = Path(encrypted_graphs.__file__).parent
        return WorkerProcess(folder, "encrypted_graphs:runners", variables=variables)

    def callers(self, keys: str) -> dict[str, DaprWorkflowGraphRunner]:
        for made in self._made:
            made.shutdown()
        if keys:
            self._monkeypatch.setenv(KEYS, keys)
        self._made = encrypted_graphs.runners()
        for runner in self._made:
            runner.connect()
        return {runner.name: runner for runner in self._made}

    def close(self) -> None:
        for runner in self._made:
            runner.shutdown()
            runner.store.close()

    def found(self) -> bool:
        """Whether what was planted is there, in clear or in base64."""
        wanted = [PLANTED.encode(), PLANTED.encode().hex().encode()]
        # Of the three ways in which base64 can cut it, the part that is the same in any text.
        for before in range(3):
            text = base64.b64encode(b"x" * before + PLANTED.encode()).decode().rstrip("=")
            wanted.append(text[4 * bool(before) : -1].encode())
        return any(each in data for data in everything(self.sidecar) for each in wanted)


@pytest.fixture
def place(sidecar: Sidecar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(sidecar, tmp_path, monkeypatch)
    yield place
    place.close()


async def _all_that_can_be_kept(place: Place, keys: str) -> None:
    with place.worker(keys):
        callers = place.callers(keys)
        speaking = callers["speaking"]
        # Nobody listens there, so the failure of the activity is told in the workflow's history.
        heard = place.folder / "heard"
        url = "http://127.0.0.1:9/hook"
        value = {"url": url, "heard": str(heard), "log": [planted("input")]}
        config = {**THREAD, "metadata": {"note": planted("metadata")}}
        events = speaking.run_async(value, config=config, stream_mode=["custom", "updates"])
        run, chunks = "", []
        async for event in events:
            run = event["workflow_id"]
            if event["type"] == "custom":
                chunks.append(event)
            if len(chunks) == 3:  # by what is stored of them while the step runs
                heard.touch()
            if event.get("node") == "speak" and event["type"] == "step_completed":
                break
        assert len(chunks) == 3
        await eventually(lambda: "detail" in _status(speaking, run))
        speaking.cancel(run)
        speaking.update_state(THREAD, {"log": [planted("by hand")]}, as_node="act")
        asked = speaking.invoke(None, THREAD)
        assert planted("question") in str(asked["__interrupt__"])
        answered = speaking.invoke(Command(resume=planted("answer")), THREAD)
        assert planted("answer") in answered["log"]
        for name in ("refusing", "failing"):
            with pytest.raises(Refused, match="planted"):
                callers[name].for_tenant("acme").invoke({"log": [planted("input")]}, THREAD)
            (letter,) = callers[name].for_tenant("acme").dead_letters().list()
            assert PLANTED in letter.error
        with pytest.raises(Refused, match="after the tasks"):
            callers["tasks"].invoke(planted("input"), THREAD)


def _status(runner: Any, run: str) -> str:
    status = runner.get_workflow_status(run)
    return str(status["custom_status"])


KINDS = ("/spec", "/1", "/a/", "/call/", "/effect/", "/failed/", "/live/", "dr/thread/", "/c/")
"""Parts of keys: of specs, records, artifacts, tasks, effects, letters, chunks, checkpoints."""


async def test_without_keys_all_is_found(place: Place) -> None:
    await _all_that_can_be_kept(place, "")
    assert place.found()
    keys = [key for key, value in stored(place.sidecar).items() if PLANTED.encode() in value]
    assert [kind for kind in KINDS if not any(kind in key for key in keys)] == []
    assert any(PLANTED.encode() in events for events in histories(place.sidecar))


async def test_with_keys_nothing_is_found(place: Place) -> None:
    await _all_that_can_be_kept(place, ONE)
    assert not place.found()


def test_what_goes_through_a_broker_is_encrypted(place: Place) -> None:
    address = f"127.0.0.1:{place.sidecar.grpc_port}"
    stores = [
        StateStore(address=address, keys=EncryptionKeys.from_text(keys)) for keys in (ONE, TWO)
    ]
    ours, theirs = (PubSub("pubsub", store) for store in stores)
    heard: list[bytes] = []
    refused: list[bytes] = []
    closes = [ours.subscribe("topic", heard.append), theirs.subscribe("topic", refused.append)]

    def publish() -> bool:
        ours.publish("topic", planted("chunk").encode())
        return bool(heard)

    until(publish)
    assert set(heard) == {planted("chunk").encode()}
    assert refused == []
    for close in (*closes, *(store.close for store in stores)):
        close()


# -- keys that are not there, and values that were changed


def _begun(place: Place, keys: str) -> Path:
    """A run that waits in its second node, whose worker is killed; the file it waits for."""
    go = place.folder / "go"
    worker = place.worker(keys).wait_until_ready()
    waiting = place.callers(keys)["waiting"]
    modes = ["updates", "values"]
    stream = waiting.stream({"url": str(go), "log": [planted("input")]}, THREAD, stream_mode=modes)
    next(stream)
    stream.close()
    until(lambda: Path(f"{go}.waits").exists())
    worker.kill()
    return go


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def _answered(place: Place, keys: str) -> Any:
    waiting = place.callers(keys)["waiting"]
    waiting.invoke({"url": str(place.folder / "go"), "log": [planted("input")]}, THREAD)
    return waiting.invoke(Command(resume="yes"), THREAD)


def test_keys_are_rotated_between_a_kill_and_the_next_worker(place: Place) -> None:
    go = _begun(place, ONE)
    with place.worker(f"{TWO},{ONE}"):
        go.touch()
        log = _answered(place, f"{TWO},{ONE}")["log"]
        assert log[-2:] == [planted("waited"), "yes"]
        with pytest.raises(EncryptionKeyMissingError) as missing:
            list(place.callers(TWO)["waiting"].get_state_history(THREAD))
        assert missing.value.key_id == "one"
    assert not place.found()


@pytest.mark.parametrize(
    ("keys", "error"),
    [(TWO, EncryptionKeyMissingError), (NOT_ONE, WrongEncryptionKeyError)],
    ids=["missing", "wrong"],
)
def test_a_worker_without_the_key_fails_no_run(
    place: Place, keys: str, error: type[Exception], capfd: pytest.CaptureFixture[str]
) -> None:
    _begun(place, ONE).touch()
    with pytest.raises(error):
        place.callers(keys)["waiting"].invoke({"log": []}, THREAD)
    with pytest.raises(AssertionError, match="ended with code 1"), place.worker(keys):
        pass
    assert error.__name__ in capfd.readouterr().err
    with place.worker(ONE):
        assert _answered(place, ONE)["log"][-2:] == [planted("waited"), "yes"]


def test_a_worker_that_lacks_the_key_of_a_checkpoint_fails_no_run(place: Place) -> None:
    both = f"{TWO},{ONE}"
    with place.worker(ONE):
        place.callers(ONE)["plain"].invoke({"log": ["first"]}, THREAD)
    with place.worker(both):  # what all runs share gets the new key
        plain = place.callers(both)["plain"]
    ended: list[Any] = []
    with place.worker(TWO):
        caller = threading.Thread(
            target=lambda: ended.append(plain.invoke({"log": ["second"]}, THREAD))
        )
        caller.start()
        run = plain.name + "-" + plain._resolve(None, "t").split("-")[1] + "-2"
        until(
            lambda: (
                plain.get_workflow_status(run) is not None
                and EncryptionKeyMissingError.__name__ in _status(plain, run)
            )
        )
    with place.worker(both):
        caller.join(60)
    assert ended[0]["log"] == ["first", planted("plain"), "second", planted("plain")]


def _all_that_runs_share(place: Place, keys: str) -> None:
    """A run that fails, whose letter is dropped."""
    callers = place.callers(keys)
    with pytest.raises(Refused):
        callers["failing"].invoke({"log": []}, {"configurable": {"thread_id": f"of {keys}"}})
    letters = callers["failing"].dead_letters()
    (letter,) = letters.list()
    letters.drop(letter.id, who="a test", why="it is over")


def test_what_all_runs_share_is_encrypted_anew(place: Place) -> None:
    with place.worker(ONE):
        _all_that_runs_share(place, ONE)
    with place.worker(f"{TWO},{ONE}"):
        pass
    with place.worker(TWO):
        _all_that_runs_share(place, TWO)


def test_encryption_is_turned_on_in_a_store_that_was_used(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    with place.worker(""):
        _all_that_runs_share(place, "")
    with pytest.raises(AssertionError, match="ended with code 1"), place.worker(ONE):
        pass
    assert "PlaintextRefusedError" in capfd.readouterr().err
    with place.worker(ONE, plaintext="accept"):
        pass
    with place.worker(ONE):
        _all_that_runs_share(place, ONE)


async def test_a_value_of_another_tenant_cannot_be_put_in_place(place: Place) -> None:
    with place.worker(ONE):
        runner = place.callers(ONE)["plain"]
        runs: list[str] = []
        for tenant in ("acme", "umbrella"):
            events = await collect(runner.for_tenant(tenant).run_async({}, run_id="r"))
            runs.append(events[0]["workflow_id"])
        theirs, ours = (f"dr/run/{run}/1" for run in runs)
        overwrite(place.sidecar, ours, stored(place.sidecar)[theirs])
        with pytest.raises(CorruptRecordError, match="was encrypted for another key of the store"):
            await collect(runner.for_tenant("umbrella").run_async({}, run_id="r"))
        await collect(runner.for_tenant("acme").run_async({}, run_id="r"))


async def test_a_changed_value_is_refused(place: Place) -> None:
    with place.worker(ONE):
        runner = place.callers(ONE)["plain"]
        await collect(runner.run_async({}, run_id="r"))
        key = "dr/run/r/1"
        overwrite(place.sidecar, key, stored(place.sidecar)[key][:-1] + b"\0")
        with pytest.raises(CorruptRecordError, match="it was changed"):
            await collect(runner.run_async({}, run_id="r"))
