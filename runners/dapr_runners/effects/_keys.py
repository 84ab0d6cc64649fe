"""What tells one effect from another."""

import hashlib
import inspect
import uuid
from typing import Any, cast

from dapr_runners.state import Codec, UnstorableValueError


def own_key(run: str, step: str, effect: str, ordinal: int) -> str:
    """The idempotency key of the ``ordinal``-th effect of that name in a step: 32 hex digits, as
    any other."""
    return _hashed("step", run, step, effect, str(ordinal))


def request_key(operation: str, where: str, number: int) -> str:
    """The key of the ``number``-th request that the step or effect with the key ``operation`` sends
    to ``where``."""
    return _hashed("request", operation, where, str(number))


def given_key(tenant: str, effect: str, key: str) -> str:
    """The idempotency key of an effect that its program names itself, in all runs of a tenant."""
    return _hashed("given", tenant, effect, key)


def key_text(effect: str, key: object) -> str:
    """The text of what ``key=`` gave for an operation: the same in every process."""
    if isinstance(key, tuple):
        parts = cast("tuple[object, ...]", key)
        return repr(tuple(key_text(effect, part) for part in parts))
    if isinstance(key, bool) or not isinstance(key, (str, int, uuid.UUID)) or key == "":
        raise TypeError(
            f"key= of the effect {effect!r} gave {key!r}. Give a text that is not empty, an int,"
            " a UUID, or a tuple of those: it must be the same in every process."
        )
    return str(key)


def fingerprint(signature: inspect.Signature, args: Any, kwargs: Any, codec: Codec) -> str:
    """Tells the arguments of a call from others. What cannot be stored (a client, a connection)
    counts by its class. Raises TypeError, as the call would, when they do not fit."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    hashed = hashlib.blake2b(digest_size=16)
    for name, given in bound.arguments.items():
        value = given
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            value = dict(sorted(given.items()))  # their order says nothing
        try:
            data = codec.encode(value)
        except UnstorableValueError:
            cls: Any = value.__class__
            data = f"{cls.__module__}.{cls.__qualname__}".encode()
        hashed.update(f"{name}:{len(data)}:".encode() + data)
    return hashed.hexdigest()


def _hashed(*parts: str) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()
