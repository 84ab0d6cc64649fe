"""What DaprSaver says when something is wrong, and thread ids it has to take as they are."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from dapr_runners.engine import InvalidThreadIdError
from dapr_runners.langgraph import DaprSaver
from dapr_runners.langgraph._checkpoints.keys import Keys, Scope
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import (
    CorruptRecordError,
    SidecarUnreachableError,
    StateStore,
    StateStoreError,
    UnauthorizedError,
    UnstorableValueError,
)
from engines import Sidecar

ODD = [
    "",
    " ",
    "a||b",
    "a/b",
    "..",
    "A",
    "a",
    "\u00e9",
    "e\u0301",
    "用户/42 👩‍👩‍👧",
    "line\nbreak\0",
    "x" * 5000,
    "x" * 5001,
    "~",
    "_",
]


def named(thread: Any, namespace: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}


def put(saver: DaprSaver, thread: Any, namespace: str = "", **values: Any) -> Any:
    made = empty_checkpoint()
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, "1")
    return saver.put(named(thread, namespace), made, {"step": 1}, made["channel_versions"])


def test_a_thread_that_is_no_text_is_refused(sidecar: Sidecar) -> None:
    saver, broken = DaprSaver(), "order-\ud800"
    put(saver, "order")
    for call in (
        lambda: put(saver, broken),
        lambda: put(saver, "order", broken),
        lambda: saver.get_tuple(named(broken)),
        lambda: list(saver.list(named(broken))),
        lambda: saver.delete_thread(broken),
        lambda: saver.copy_thread(broken, "order"),
        lambda: saver.copy_thread("order", broken),
        lambda: saver.prune([broken]),
    ):
        with pytest.raises(InvalidThreadIdError, match="is no valid Unicode text"):
            call()
    assert len(list(saver.list(None))) == 1


def test_odd_thread_ids_are_kept_apart(sidecar: Sidecar) -> None:
    saver = DaprSaver()
    for thread in ODD:
        put(saver, thread, note=f"of {thread}")
        put(saver, thread, f"sub:{thread}", note=f"below {thread}")
    for thread in ODD:
        for namespace, note in (("", f"of {thread}"), (f"sub:{thread}", f"below {thread}")):
            found = saver.get_tuple(named(thread, namespace))
            assert found is not None
            assert found.checkpoint["channel_values"] == {"note": note}
            assert found.config["configurable"]["thread_id"] == thread
    listed = [each.config["configurable"]["thread_id"] for each in saver.list(None)]
    assert sorted(listed) == sorted(2 * ODD)
    for thread in ODD[::2]:
        saver.delete_thread(thread)
    left = {each.config["configurable"]["thread_id"] for each in saver.list(None)}
    assert left == set(ODD[1::2])


def test_a_thread_id_may_be_a_number(sidecar: Sidecar) -> None:
    saver = DaprSaver()
    assert put(saver, 7, note="x")["configurable"]["thread_id"] == 7
    assert saver.get_tuple(named("7")) is not None
    assert len(list(saver.list(named(7)))) == 1


def test_values_larger_than_a_message_of_the_sidecar(sidecar: Sidecar) -> None:
    saver = DaprSaver()
    big = {f"v{number}": "é" * 1_500_000 for number in range(3)}
    config = put(saver, "t", **big)
    saver.put_writes(config, [("v0", "w" * 9_000_000)], "task")
    found = saver.get_tuple(named("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == big
    assert found.pending_writes == [("task", "v0", "w" * 9_000_000)]
    assert next(saver.list(named("t"))) == found


@pytest.fixture
def place() -> Scope:
    return Keys("checkpoints").scope("t", "")


@pytest.mark.parametrize("damage", [b"x", b"\x00\x01", b"drc1", b'{"a": 1}'])
def test_a_damaged_document_is_named(sidecar: Sidecar, place: Scope, damage: bytes) -> None:
    saver = DaprSaver()
    config = put(saver, "t", note="x")
    saver.put_writes(config, [("note", 1)], "task")
    checkpoint_id = config["configurable"]["checkpoint_id"]
    for key in (place.writes(checkpoint_id), place.checkpoint(checkpoint_id), place.index):
        saver.store.put(key, damage)
        for read in (lambda: saver.get_tuple(named("t")), lambda: list(saver.list(named("t")))):
            with pytest.raises(CorruptRecordError) as caught:
                read()
            assert caught.value.key == key
            assert str(caught.value).startswith(f"The record {key!r} cannot be read back: it was")
    with pytest.raises(CorruptRecordError):
        put(saver, "t", note="y")
    saver.delete_thread("t")
    put(saver, "t", note="new")
    assert len(list(saver.list(named("t")))) == 1


def test_a_bit_flipped_in_a_document_is_noticed(sidecar: Sidecar, place: Scope) -> None:
    saver = DaprSaver()
    config = put(saver, "t", note="hello")
    key = place.checkpoint(config["configurable"]["checkpoint_id"])
    document = saver.store.get(key)
    assert document is not None
    saver.store.put(key, document.replace(b"hello", b"hellp"))
    with pytest.raises(CorruptRecordError, match="its checksum does not match its content"):
        saver.get_tuple(config)


def test_a_missing_document_is_named(sidecar: Sidecar, place: Scope) -> None:
    saver = DaprSaver()
    config = put(saver, "t", note="n" * 200_000)
    checkpoint_id = config["configurable"]["checkpoint_id"]
    record = saver.get_tuple(config)
    assert record is not None
    saver.store.delete_many([place.checkpoint(checkpoint_id)])
    for read in (lambda: saver.get_tuple(named("t")), lambda: list(saver.list(named("t")))):
        with pytest.raises(CorruptRecordError, match="the index names it and it is missing") as at:
            read()
        assert at.value.key == place.checkpoint(checkpoint_id)


def test_the_wrong_token_is_refused_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAPR_API_TOKEN", raising=False)
    with EmbeddedSidecar(tmp_path / "sidecar.db", api_token="right") as sidecar:
        for token in ("wrong", ""):
            saver = DaprSaver(StateStore(address=sidecar.address, api_token=token))
            with pytest.raises(UnauthorizedError) as caught:
                saver.get_tuple(named("t"))
            assert str(caught.value) == (
                f"The Dapr sidecar at {sidecar.address} refused the API token, so nothing can"
                " run. Set DAPR_API_TOKEN in this process to the token the sidecar was started"
                " with."
            )
            with pytest.raises(UnauthorizedError):
                put(saver, "t", note="x")
        assert put(DaprSaver(StateStore(address=sidecar.address, api_token="right")), "t", note="x")


async def test_no_sidecar_is_said_at_once() -> None:
    saver = DaprSaver(StateStore(address="127.0.0.1:9"))
    with pytest.raises(SidecarUnreachableError) as caught:
        await saver.aget_tuple(named("t"))
    assert str(caught.value).startswith("No Dapr sidecar answers at 127.0.0.1:9 (")
    assert "dapr-runners run -- python app.py" in str(caught.value)
    with pytest.raises(SidecarUnreachableError):
        put(saver, "t", note="x")
    with pytest.raises(SidecarUnreachableError):
        next(saver.list(None))


def test_an_unknown_store_is_named(sidecar: Sidecar) -> None:
    with pytest.raises(StateStoreError, match="The state store component 'nosuch' answered"):
        DaprSaver(store_name="nosuch").get_tuple(named("t"))


def test_a_value_that_cannot_be_stored_is_named_and_nothing_is_written(
    sidecar: Sidecar,
) -> None:
    saver = DaprSaver()
    config = put(saver, "t", note="x")
    with pytest.raises(UnstorableValueError) as caught:
        put(saver, "t", note="y", stuck=object())
    assert str(caught.value).startswith(
        "The value of channel 'stuck' is a object, which cannot be stored: "
    )
    assert "give DaprSaver a serde that can store it" in str(caught.value)
    with pytest.raises(UnstorableValueError, match="A write to channel 'stuck' is a object"):
        saver.put_writes(config, [("stuck", object())], "task")
    assert [each.config for each in saver.list(named("t"))] == [config]


def test_arguments_that_cannot_work_are_refused() -> None:
    with pytest.raises(Exception, match="cannot use key_prefix='a\\|\\|b'"):
        DaprSaver(StateStore(address="127.0.0.1:9"), key_prefix="a||b")
    with pytest.raises(ValueError, match="does not know the pruning strategy 'oldest'"):
        DaprSaver(StateStore(address="127.0.0.1:9")).prune(["t"], strategy="oldest")
