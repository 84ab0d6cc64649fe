"""How members of enumerations are packed: by name, and combined flags by value."""

import enum
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

from ormsgpack import Ext

from dapr_runners.state._classes import name_of
from dapr_runners.state._wire import Code, Decoder, Encoder, Malformed, Reader, Writer

__all__ = ["Enum", "enum_decoder", "enum_encoder"]


def enum_encoder(cls: type[Enum]) -> Encoder:
    """An encoder for the members of ``cls``."""
    name = name_of(cls)
    members = cls.__members__

    def encode(member: Enum, writer: Writer) -> Ext:
        # A combination of flags has no name of its own.
        key = cast("str | None", member.name)
        named = key is not None and members.get(key) is member
        return Ext(Code.ENUM, writer.pack([name, key] if named else [name, None, member.value]))

    return encode


def enum_decoder(find: Callable[[str], type]) -> Decoder:
    """A decoder that asks ``find`` for the class of a name."""

    def decode(data: bytes, reader: Reader) -> Enum:
        name, key, *value = reader.unpack_list(data)
        cls: Any = find(name)
        if not issubclass(cls, Enum):
            raise Malformed(f"{name} is not an enumeration")
        if key is not None:
            if key not in cls.__members__:
                raise Malformed(f"the enumeration {name} has no member {key!r} any more")
            return cls.__members__[key]
        if not issubclass(cls, enum.Flag) or type(value[0]) is not int:
            raise Malformed(f"a member of the enumeration {name} has no name")
        return cls(value[0])

    return decode
