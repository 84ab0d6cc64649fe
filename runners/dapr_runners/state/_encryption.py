"""Encryption of what is kept in a state store: AES-256-GCM.

A value is sealed under its key in the store: the secret key that seals it is derived from both, so
no value can be read under another key, and no number of values wears a secret key out. A sealed
value begins with a fixed mark, the id of the secret key and a few bytes that tell it from others of
that id, so that a wrong secret key is not taken for a changed value.

The ``cryptography`` package is imported when keys are made: without them nothing needs it.
"""

import base64
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from dapr.proto import (
    api_service_v1,  # pyright: ignore[reportPrivateImportUsage]
    api_v1,
)

from dapr_runners.state._channel import open_channel, sidecar_address
from dapr_runners.state._hashes import HASH_BYTES
from dapr_runners.state.errors import (
    CorruptRecordError,
    EncryptionKeyMissingError,
    EncryptionKeysError,
    EncryptionUnavailableError,
    PlaintextRefusedError,
    WrongEncryptionKeyError,
)

KEYS_VARIABLE = "DAPR_RUNNERS_ENCRYPTION_KEYS"
SECRET_VARIABLE = "DAPR_RUNNERS_ENCRYPTION_SECRET"  # nosec B105 # a name, no secret
PLAINTEXT_VARIABLE = "DAPR_RUNNERS_ENCRYPTION_PLAINTEXT"

SEALED = b"\x00dr-sealed\x01\xd3\x8f\x1e\xa4"
"""What a sealed value begins with. Chance does not make it."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_KEY, _CHECK, _NONCE = 32, 4, 12
_SECRET_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Key:
    """A secret key, and what is derived from it once."""

    id: str
    secret: bytes = field(repr=False)
    head: bytes
    """What values that it seals begin with."""
    naming: bytes = field(repr=False)
    """For names that are made of contents."""

    @classmethod
    def of(cls, id: str, secret: bytes) -> Self:
        check = _derived(secret, b"check")[:_CHECK]
        head = SEALED + bytes([len(id)]) + id.encode() + check
        return cls(id, secret, head, _derived(secret, b"naming"))

    def cipher(self, key: str, aes: Any) -> Any:
        return aes(_derived(self.secret, b"value\0" + key.encode("utf-8", "surrogatepass")))


class EncryptionKeys:
    """The keys that values in a state store are encrypted with.

    ``keys`` maps ids (1 to 32 letters, digits, ``.``, ``_`` and ``-``) to keys of 32 random bytes.
    The first one writes, all of them read: to rotate, put a new one first, in every process, and
    keep the old ones for as long as values written with them are needed. To be sure that every
    process can read what another writes, give the new one to all as the last one before.

    With ``accepts_plaintext`` values that are not encrypted are read as well: for a store that has
    some from before. Who can write the store can then put in values of their own.

    Raises :class:`EncryptionKeysError` for keys that cannot be used, and
    :class:`EncryptionUnavailableError` without the ``cryptography`` package.
    """

    def __init__(self, keys: Mapping[str, bytes], *, accepts_plaintext: bool = False) -> None:
        self._load: Callable[[], Mapping[str, bytes]] | None = None
        self._accepts_plaintext = accepts_plaintext
        self._lock = threading.Lock()
        self._aes, self._invalid_tag = _primitives()
        self._keys = _checked(keys)

    @classmethod
    def from_text(cls, text: str, *, accepts_plaintext: bool = False) -> Self:
        """Of ``id:base64,id:base64,...``, the one that writes first."""
        return cls(_parsed(text), accepts_plaintext=accepts_plaintext)

    @classmethod
    def from_secret_store(
        cls,
        store: str,
        secret: str,
        *,
        address: str | None = None,
        api_token: str | None = None,
        accepts_plaintext: bool = False,
    ) -> Self:
        """Of a secret of the Dapr secret store component ``store``, which holds a text as
        :meth:`from_text` takes it. It is asked for when a value is first read or written, from the
        sidecar at ``address`` (default: as the Dapr SDK finds it)."""
        keys = cls({"unread": bytes(_KEY)}, accepts_plaintext=accepts_plaintext)
        keys._keys = {}
        token = os.environ.get("DAPR_API_TOKEN") if api_token is None else api_token
        keys._load = lambda: _parsed(_secret(store, secret, address or sidecar_address(), token))
        return keys

    @classmethod
    def from_environment(cls, address: str | None = None) -> Self | None:
        """As the variables say: ``DAPR_RUNNERS_ENCRYPTION_KEYS`` is a text as :meth:`from_text`
        takes it, ``DAPR_RUNNERS_ENCRYPTION_SECRET`` names ``component/secret`` in place of that,
        and ``DAPR_RUNNERS_ENCRYPTION_PLAINTEXT=accept`` accepts plaintext. None without them. One
        that is empty is an error: who set it did not mean that values are stored in clear."""
        text, secret = os.environ.get(KEYS_VARIABLE), os.environ.get(SECRET_VARIABLE)
        plaintext = os.environ.get(PLAINTEXT_VARIABLE)
        if plaintext not in (None, "", "accept"):
            raise EncryptionKeysError(reason=f"{PLAINTEXT_VARIABLE} is not 'accept'")
        for name in (KEYS_VARIABLE, SECRET_VARIABLE):
            if os.environ.get(name) == "":
                raise EncryptionKeysError(reason=f"{name} is set, and empty: unset it, or fill it")
        if text and secret:
            raise EncryptionKeysError(reason=f"{KEYS_VARIABLE} and {SECRET_VARIABLE} are both set")
        if plaintext and not (text or secret):
            raise EncryptionKeysError(reason=f"{PLAINTEXT_VARIABLE} is set without any")
        if text:
            return cls.from_text(text, accepts_plaintext=bool(plaintext))
        if not secret:
            return None
        store, slash, name = secret.partition("/")
        if not (store and slash and name):
            raise EncryptionKeysError(reason=f"{SECRET_VARIABLE} is not component/secret")
        return cls.from_secret_store(
            store, name, address=address, accepts_plaintext=bool(plaintext)
        )

    # -- values

    def seal(self, key: str, value: bytes) -> bytes:
        """``value`` encrypted, for ``key`` alone."""
        writing = next(iter(self._known().values()))
        nonce = os.urandom(_NONCE)
        sealed = writing.cipher(key, self._aes).encrypt(nonce, value, writing.head)
        return writing.head + nonce + sealed

    def open(self, key: str, data: bytes) -> bytes:
        """The reverse of :meth:`seal`. Raises :class:`EncryptionKeyMissingError`,
        :class:`WrongEncryptionKeyError`, :class:`PlaintextRefusedError`, and
        :class:`CorruptRecordError` for what was changed, or is from another key."""
        known = self._known()
        if not data.startswith(SEALED):
            if self._accepts_plaintext:
                return data
            raise PlaintextRefusedError(key=key)
        id = sealed_with(data)
        by = known.get(id)
        if by is None:
            raise EncryptionKeyMissingError(key=key, key_id=id, known=", ".join(known))
        if not data.startswith(by.head):
            raise WrongEncryptionKeyError(key=key, key_id=id)
        start = len(by.head) + _NONCE
        try:
            return by.cipher(key, self._aes).decrypt(
                data[len(by.head) : start], data[start:], by.head
            )
        except (self._invalid_tag, ValueError) as error:
            reason = "it was changed, or was encrypted for another key of the store"
            raise CorruptRecordError(key=key, reason=reason) from error

    def is_current(self, data: bytes) -> bool:
        """Whether ``data`` is sealed with the key that writes."""
        return data.startswith(next(iter(self._known().values())).head)

    # -- names

    def digests(self, scope: str, data: bytes) -> list[bytes]:
        """What may name the content ``data`` below ``scope``, 16 bytes each: under the key that
        writes first. Nobody without the keys can tell what it is the name of."""
        return [
            hashlib.blake2b(
                len(scope.encode()).to_bytes(8, "big") + scope.encode() + data,
                key=key.naming,
                digest_size=HASH_BYTES,
            ).digest()
            for key in self._known().values()
        ]

    @property
    def accepts_plaintext(self) -> bool:
        """Whether values that are not encrypted are read as well."""
        return self._accepts_plaintext

    def _known(self) -> dict[str, _Key]:
        if self._load is not None:
            with self._lock:
                if self._load is not None:
                    self._keys, self._load = _checked(self._load()), None
        return self._keys


def sealed_with(data: bytes) -> str:
    """The id of the key that ``data``, which is sealed, says it is sealed with."""
    start = len(SEALED) + 1
    return data[start : start + data[start - 1]].decode("latin-1") if len(data) >= start else ""


def _derived(secret: bytes, what: bytes) -> bytes:
    return hmac.digest(secret, b"dapr-runners/1/" + what, "sha256")


def _primitives() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise EncryptionUnavailableError() from error
    return AESGCM, InvalidTag


def _checked(keys: Mapping[str, bytes]) -> dict[str, _Key]:
    if not keys:
        raise EncryptionKeysError(reason="there are none")
    for number, (id, secret) in enumerate(keys.items(), 1):
        if not _ID.fullmatch(id):  # it may be a key, in the wrong place
            raise EncryptionKeysError(reason=f"what stands as the id of key {number} cannot be one")
        if len(secret) != _KEY:
            raise EncryptionKeysError(reason=f"the key {id!r} has {len(secret)} bytes, not {_KEY}")
    return {id: _Key.of(id, bytes(secret)) for id, secret in keys.items()}


def _parsed(text: str) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for number, part in enumerate(text.split(","), 1):
        id, colon, encoded = part.strip().partition(":")
        if not colon:
            raise EncryptionKeysError(reason=f"key {number} is not id:base64")
        if id in keys:
            raise EncryptionKeysError(reason=f"key {number} has the id of one before")
        try:
            keys[id] = base64.b64decode(encoded, validate=True)
        except ValueError:  # neither the text nor what was wrong with it: it is a secret
            raise EncryptionKeysError(reason=f"key {number} is not base64") from None
    return keys


def _secret(store: str, name: str, address: str, token: str | None) -> str:
    request = api_v1.GetSecretRequest(store_name=store, key=name)
    metadata = (("dapr-api-token", token),) if token else ()
    channel = open_channel(address)
    try:
        stub: Any = api_service_v1.DaprStub(channel)
        found = dict(stub.GetSecret(request, timeout=_SECRET_SECONDS, metadata=metadata).data)
    except grpc.RpcError as error:
        refused: Any = error
        reason = f"the sidecar at {address} does not give the secret {name!r} of {store!r}"
        raise EncryptionKeysError(reason=f"{reason} ({refused.details()})") from error
    finally:
        channel.close()
    if len(found) != 1:
        raise EncryptionKeysError(reason=f"the secret {name!r} has {len(found)} entries, not one")
    return next(iter(found.values()))
