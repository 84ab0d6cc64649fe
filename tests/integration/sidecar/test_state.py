"""The state API: ETags, first write, transactions, expiry, keys."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import grpc
import pytest
from dapr.clients import DaprClient
from dapr.clients.grpc._request import TransactionalStateOperation, TransactionOperationType
from dapr.clients.grpc._state import Concurrency, StateItem, StateOptions
from sidecar_helpers import Endpoint, eventually

STORE = "statestore"
FIRST_WRITE = StateOptions(concurrency=Concurrency.first_write)


@pytest.fixture(scope="module")
def dapr(endpoint: Endpoint) -> Iterator[DaprClient]:
    with pytest.MonkeyPatch.context() as patch:
        # Where the client looks for the health check it waits for.
        patch.setenv("DAPR_HTTP_ENDPOINT", f"http://127.0.0.1:{endpoint.http_port}")
        patch.setattr("dapr.conf.settings.DAPR_HTTP_PORT", endpoint.http_port)
        with DaprClient(address=endpoint.address) as client:
            yield client


@pytest.fixture
def key() -> str:
    return f"key-{uuid4().hex}"


def _refused(call: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refusal:
        call(*arguments, **more)
    return refusal.value.code(), refusal.value.details()


def _conflict(call: Callable[..., Any], *arguments: Any, **more: Any) -> bool:
    code, detail = _refused(call, *arguments, **more)
    return code is grpc.StatusCode.ABORTED and "possible etag mismatch" in detail


def test_a_value_comes_back_as_it_was(dapr: DaprClient, key: str) -> None:
    every_byte = bytes(range(256))
    dapr.save_state(STORE, key, every_byte)
    assert dapr.get_state(STORE, key).data == every_byte


def test_a_missing_key_is_empty(dapr: DaprClient, key: str) -> None:
    found = dapr.get_state(STORE, key)
    assert (found.data, found.etag) == (b"", "")


def test_every_write_has_another_etag(dapr: DaprClient, key: str) -> None:
    etags: set[str] = set()
    for _ in range(3):
        dapr.save_state(STORE, key, "same")
        etags.add(dapr.get_state(STORE, key).etag)
    assert len(etags) == 3
    assert "" not in etags


def test_first_write_creates_once(dapr: DaprClient, key: str) -> None:
    dapr.save_state(STORE, key, "one", options=FIRST_WRITE)
    assert _conflict(dapr.save_state, STORE, key, "two", options=FIRST_WRITE)
    assert dapr.get_state(STORE, key).data == b"one"


def test_of_racing_first_writers_one_wins(dapr: DaprClient, key: str) -> None:
    def create(number: int) -> int:
        try:
            dapr.save_state(STORE, key, str(number), options=FIRST_WRITE)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.ABORTED
            return -1
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(create, range(8)) if number >= 0]
    assert [dapr.get_state(STORE, key).data] == [str(number).encode() for number in winners]


@pytest.mark.parametrize("options", [None, FIRST_WRITE])
def test_a_stale_etag_is_refused(dapr: DaprClient, key: str, options: StateOptions | None) -> None:
    dapr.save_state(STORE, key, "one")
    etag = dapr.get_state(STORE, key).etag
    dapr.save_state(STORE, key, "two", etag=etag, options=options)
    assert _conflict(dapr.save_state, STORE, key, "three", etag=etag, options=options)
    assert _conflict(dapr.save_state, STORE, f"{key}-none", "x", etag=etag, options=options)
    assert dapr.get_state(STORE, key).data == b"two"


def test_a_stale_delete_is_refused(dapr: DaprClient, key: str) -> None:
    dapr.save_state(STORE, key, "one")
    stale = dapr.get_state(STORE, key).etag
    dapr.save_state(STORE, key, "two")
    assert _conflict(dapr.delete_state, STORE, key, etag=stale)
    assert _conflict(dapr.delete_state, STORE, f"{key}-none", etag=stale)
    dapr.delete_state(STORE, key, etag=dapr.get_state(STORE, key).etag)
    dapr.delete_state(STORE, key)
    assert dapr.get_state(STORE, key).data == b""


def test_several_keys_are_several_writes(dapr: DaprClient, key: str) -> None:
    dapr.save_state(STORE, key, "one")
    items = [
        StateItem(key=f"{key}-a", value="a"),
        StateItem(key=key, value="two", etag="stale"),
        StateItem(key=f"{key}-b", value="b"),
    ]
    assert _conflict(dapr.save_bulk_state, STORE, items)
    found = dapr.get_bulk_state(STORE, [f"{key}-a", key, f"{key}-b", f"{key}-none"]).items
    assert {item.key: item.data for item in found} == {
        f"{key}-a": b"a",
        key: b"one",
        f"{key}-b": b"b",
        f"{key}-none": b"",
    }


def test_a_transaction_writes_all_or_nothing(dapr: DaprClient, key: str) -> None:
    upsert, delete = TransactionOperationType.upsert, TransactionOperationType.delete
    dapr.save_state(STORE, key, "one")
    dapr.execute_state_transaction(
        STORE,
        [
            TransactionalStateOperation(key=f"{key}-a", data="a", operation_type=upsert),
            TransactionalStateOperation(key=key, data="", operation_type=delete),
        ],
    )
    assert dapr.get_state(STORE, f"{key}-a").data == b"a"
    assert dapr.get_state(STORE, key).data == b""
    code, detail = _refused(
        dapr.execute_state_transaction,
        STORE,
        [
            TransactionalStateOperation(key=f"{key}-b", data="b", operation_type=upsert),
            TransactionalStateOperation(
                key=f"{key}-a", data="c", etag="stale", operation_type=upsert
            ),
        ],
    )
    # Not ABORTED, as for a single key: only the text tells that this is a conflict.
    assert code is grpc.StatusCode.INTERNAL
    assert "possible etag mismatch" in detail
    assert dapr.get_state(STORE, f"{key}-b").data == b""
    assert dapr.get_state(STORE, f"{key}-a").data == b"a"


def test_a_value_expires(dapr: DaprClient, key: str) -> None:
    dapr.save_state(STORE, key, "short", state_metadata={"ttlInSeconds": "3"})
    assert dapr.get_state(STORE, key).data == b"short"
    eventually(lambda: dapr.get_state(STORE, key).data == b"", "expiry")
    dapr.save_state(STORE, key, "again", options=FIRST_WRITE)
    assert dapr.get_state(STORE, key).data == b"again"


def test_an_expiry_must_be_a_number(dapr: DaprClient, key: str) -> None:
    code, detail = _refused(
        dapr.save_state, STORE, key, "x", state_metadata={"ttlInSeconds": "soon"}
    )
    assert code is grpc.StatusCode.INTERNAL
    assert "ttlInSeconds" in detail


def test_keys_that_are_refused(dapr: DaprClient) -> None:
    for call in (
        lambda: dapr.save_state(STORE, "a||b", "x"),
        lambda: dapr.get_state(STORE, "a||b"),
        lambda: dapr.delete_state(STORE, "a||b"),
    ):
        code, detail = _refused(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "can't contain '||'" in detail


def test_an_unknown_store(dapr: DaprClient, key: str) -> None:
    for call in (
        lambda: dapr.save_state("nowhere", key, "x"),
        lambda: dapr.get_state("nowhere", key),
        lambda: dapr.get_bulk_state("nowhere", [key]),
        lambda: dapr.delete_state("nowhere", key),
    ):
        assert _refused(call) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "state store nowhere is not found",
        )


def test_the_largest_value(dapr: DaprClient, key: str) -> None:
    dapr.save_state(STORE, key, b"x" * 4_100_000)
    assert len(dapr.get_state(STORE, key).data) == 4_100_000
    code, _ = _refused(dapr.save_state, STORE, key, b"x" * 4_500_000)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_json_is_not_touched(dapr: DaprClient, key: str) -> None:
    text = json.dumps({"b": 1, "a": [1.50, None]})
    dapr.save_state(STORE, key, text)
    assert dapr.get_state(STORE, key).data == text.encode()


def test_metadata_names_the_store(dapr: DaprClient) -> None:
    names = {component.name for component in dapr.get_metadata().registered_components}
    assert STORE in names
