"""Values are encrypted for their key alone, and what is wrong with one is said."""

import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import (
    CorruptRecordError,
    EncryptionKeyMissingError,
    EncryptionKeys,
    EncryptionKeysError,
    PlaintextRefusedError,
    StateStore,
    WrongEncryptionKeyError,
    is_lasting,
)

ONE, TWO = bytes(range(32)), bytes(range(32, 64))
KEYS = EncryptionKeys({"one": ONE})


def encoded(key: bytes) -> str:
    return base64.b64encode(key).decode()


@given(key=st.text(), value=st.binary(max_size=200))
def test_what_is_sealed_is_opened_under_its_key(key: str, value: bytes) -> None:
    sealed = KEYS.seal(key, value)
    assert KEYS.open(key, sealed) == value
    assert KEYS.seal(key, value) != sealed
    assert len(sealed) - len(value) < 64
    with pytest.raises(CorruptRecordError, match="or was encrypted for another key of the store"):
        KEYS.open(key + "/", sealed)


@given(value=st.binary(min_size=1, max_size=60), data=st.data())
def test_a_change_of_any_bit_is_noticed(value: bytes, data: st.DataObject) -> None:
    sealed = bytearray(KEYS.seal("k", value))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(
        (
            CorruptRecordError,
            EncryptionKeyMissingError,
            PlaintextRefusedError,
            WrongEncryptionKeyError,
        )
    ):
        KEYS.open("k", bytes(sealed))


@given(end=st.integers(0, 80))
def test_what_is_cut_off_is_noticed(end: int) -> None:
    sealed = KEYS.seal("k", b"x" * 40)
    with pytest.raises(
        (
            CorruptRecordError,
            EncryptionKeyMissingError,
            PlaintextRefusedError,
            WrongEncryptionKeyError,
        )
    ):
        KEYS.open("k", sealed[:end])


def test_what_is_wrong_is_said() -> None:
    sealed = KEYS.seal("k", b"value")
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    wrong: list[tuple[EncryptionKeys, bytes, type[Exception], str]] = [
        (KEYS, changed, CorruptRecordError, "it was changed"),
        (
            EncryptionKeys({"two": TWO}),
            sealed,
            EncryptionKeyMissingError,
            r"is encrypted with the key 'one', which this process does not have \(it has: two\)",
        ),
        (EncryptionKeys({"one": TWO}), sealed, WrongEncryptionKeyError, "with another key than"),
        (KEYS, b"value", PlaintextRefusedError, "is not encrypted"),
    ]
    for keys, data, kind, text in wrong:
        with pytest.raises(kind, match=text) as error:
            keys.open("k", data)
        # A worker with the right keys goes on with the run; nothing helps a value that changed.
        assert is_lasting(error.value) == (kind is CorruptRecordError)


def test_a_new_key_writes_and_the_old_one_reads() -> None:
    old = KEYS.seal("k", b"old")
    rotated = EncryptionKeys({"two": TWO, "one": ONE})
    new = rotated.seal("k", b"new")
    assert rotated.open("k", old) == b"old"
    assert EncryptionKeys({"two": TWO}).open("k", new) == b"new"
    with pytest.raises(EncryptionKeyMissingError):
        KEYS.open("k", new)


def test_plaintext_is_read_where_it_is_accepted() -> None:
    keys = EncryptionKeys({"one": ONE}, accepts_plaintext=True)
    assert keys.open("k", b"from before") == b"from before"
    assert keys.open("k", keys.seal("k", b"since")) == b"since"


def test_names_of_contents_say_nothing_without_the_key() -> None:
    digests = [
        keys.digests(scope, b"content")[0]
        for keys in (KEYS, EncryptionKeys({"one": TWO}))
        for scope in ("run-1", "run-2", "run-1c")
    ]
    assert len(set(digests)) == len(digests)
    assert KEYS.digests("run-1", b"content") == KEYS.digests("run-1", b"content")
    rotated = EncryptionKeys({"two": TWO, "one": ONE})
    assert KEYS.digests("run-1", b"content")[0] in rotated.digests("run-1", b"content")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "key 1 is not id:base64"),
        ("nonsense", "key 1 is not id:base64"),
        (f"one:{encoded(ONE)},", "key 2 is not id:base64"),
        ("one:%%%", "key 1 is not base64"),
        ("one:é", "key 1 is not base64"),
        (f"one:{encoded(b'short')}", "the key 'one' has 5 bytes, not 32"),
        (f"o/ne:{encoded(ONE)}", "what stands as the id of key 1 cannot be one"),
        (f"one:{encoded(ONE)},one:{encoded(TWO)}", "key 2 has the id of one before"),
        (f"{encoded(ONE)}:one", "key 1 is not base64"),
        (f"{encoded(ONE)}:{encoded(ONE)}", "what stands as the id of key 1 cannot be one"),
        (f"{encoded(ONE)}:{encoded(ONE)},{encoded(ONE)}:b", "key 2 has the id of one before"),
    ],
)
def test_keys_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(EncryptionKeysError, match=reason) as error:
        EncryptionKeys.from_text(text)
    assert "%%%" not in str(error.value) and encoded(ONE) not in str(error.value)


def test_no_key_is_shown_with_its_object() -> None:
    assert str(ONE) not in repr(vars(KEYS))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DAPR_RUNNERS_ENCRYPTION_KEYS", ""),
        ("DAPR_RUNNERS_ENCRYPTION_SECRET", ""),
        ("DAPR_RUNNERS_ENCRYPTION_PLAINTEXT", "accept"),
    ],
)
def test_a_variable_that_says_nothing_turns_nothing_off(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(EncryptionKeysError, match=variable):
        EncryptionKeys.from_environment()


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "cryptography.py").write_text("raise ImportError('not here')")
    program = (
        "from dapr_runners.state import EncryptionKeys\n"
        "try: EncryptionKeys({'one': bytes(32)})\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.startswith("EncryptionUnavailableError Values are to be encrypted")
    assert "pip install 'dapr-runners[encryption]'" in done.stdout


# -- a store


@pytest.fixture
def store_with(sidecar: EmbeddedSidecar) -> Any:
    made: list[StateStore] = []

    def make(keys: EncryptionKeys | None = None) -> StateStore:
        made.append(StateStore(address=f"127.0.0.1:{sidecar.grpc_port}", keys=keys))
        return made[-1]

    yield make
    for store in made:
        store.close()


Make = Callable[..., StateStore]


async def test_every_way_of_writing_and_reading(store_with: Make) -> None:
    store, bare = store_with(KEYS), store_with(EncryptionKeys({"n": TWO}, accepts_plaintext=True))
    store.put("put", b"secret")
    await store.aput("aput", b"secret")
    assert store.create("create", b"secret") and await store.acreate("acreate", b"secret")
    assert store.create_many({"many": b"secret", "more": b"secret"}) == {"many": True, "more": True}
    assert not store.create("create", b"other")
    assert store.create("create", b"secret")  # ours, as when an answer was lost
    found = store.read("create")
    assert found is not None and store.replace("create", b"secret", found.etag)
    found = await store.aread("acreate")
    assert found is not None and await store.areplace("acreate", b"secret", found.etag)
    assert store.put_many_and_read({"beside": b"secret"}, "put") is not None
    assert await store.aput_many_and_read({"abeside": b"secret"}, "put") is not None
    told: list[Any] = []
    store.create_then("then", b"secret", lambda *result: told.append(result))
    assert told == [(True, None)]
    keys = ["put", "aput", "create", "acreate", "many", "more", "beside", "abeside", "then"]
    assert store.get_many(keys) == await store.aget_many(keys) == dict.fromkeys(keys, b"secret")
    assert [store.get(key) for key in keys] == [await store.aget(key) for key in keys]
    for key in keys:
        with pytest.raises(EncryptionKeyMissingError):
            bare.get(key)  # so it is not in clear
    with pytest.raises(EncryptionKeyMissingError):
        bare.get_many(keys)


def test_without_keys_it_says_which_is_missing(store_with: Make) -> None:
    store_with(KEYS).put("k", b"value")
    with pytest.raises(EncryptionKeyMissingError, match=r"with the key 'one'.*\(it has: none\)"):
        store_with().get("k")


def test_the_environment_names_keys(store_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_KEYS", f"one:{encoded(ONE)}")
    store_with().put("k", b"value")
    assert store_with(KEYS).get("k") == b"value"
    monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_PLAINTEXT", "yes")
    with pytest.raises(EncryptionKeysError, match="is not 'accept'"):
        store_with()
    monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_PLAINTEXT", "accept")
    monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_SECRET", "secrets/keys")
    with pytest.raises(EncryptionKeysError, match="are both set"):
        store_with()
    monkeypatch.delenv("DAPR_RUNNERS_ENCRYPTION_KEYS")
    monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_SECRET", "keys")
    with pytest.raises(EncryptionKeysError, match="is not component/secret"):
        store_with()


SECRETS = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {name: NAME}
spec:
  type: secretstores.local.TYPE
  version: v1
  metadata: [{name: secretsFile, value: secrets.json}]
"""
STATE = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {name: statestore}
spec: {type: state.sqlite, version: v1, metadata: [{name: actorStateStore, value: "true"}]}
"""


def test_keys_from_a_secret_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resources = tmp_path / "components"
    resources.mkdir()
    (resources / "state.yaml").write_text(STATE)
    for kind in ("file", "env"):
        text = SECRETS.replace("NAME", f"{kind}s").replace("TYPE", kind)
        (resources / f"{kind}.yaml").write_text(text)
    (resources / "secrets.json").write_text(f'{{"runners": "one:{encoded(ONE)}"}}')
    monkeypatch.setenv("RUNNERS_KEYS", f"one:{encoded(ONE)}")
    with EmbeddedSidecar(tmp_path / "a.db", resources_path=resources) as sidecar:
        address = f"127.0.0.1:{sidecar.grpc_port}"
        for store, secret in (("files", "runners"), ("envs", "RUNNERS_KEYS")):
            monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_SECRET", f"{store}/{secret}")
            encrypted = StateStore(address=address)
            encrypted.put("k", b"value")
            assert StateStore(address=address, keys=KEYS).get("k") == b"value"
        for name in ("files/absent", "absent/runners"):
            monkeypatch.setenv("DAPR_RUNNERS_ENCRYPTION_SECRET", name)
            with pytest.raises(EncryptionKeysError, match="does not give the secret"):
                StateStore(address=address).put("k", b"value")
