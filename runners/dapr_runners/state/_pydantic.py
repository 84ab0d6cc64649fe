"""How pydantic v2 models and URLs are packed, and rebuilt without validation.

pydantic is not imported here: a model's class can only be known if the program imported it.
"""

from collections.abc import Mapping
from typing import Any

from ormsgpack import Ext

from dapr_runners.state._attributes import cached_properties, slots_of
from dapr_runners.state._classes import model_fields
from dapr_runners.state._wire import Code, Kind, Reader, Writer, expect


def model_kind(cls: Any) -> Kind:
    """How instances of the pydantic v2 model ``cls`` are stored: fields, which of them were set,
    extra fields and private attributes, each as it is."""
    names = model_fields(cls).keys()
    skipped = cached_properties(cls) - names
    new, set_attribute = object.__new__, object.__setattr__
    # RootModel hides two of these slots behind class attributes.
    slots = slots_of(cls)
    set_fields_set = slots["__pydantic_fields_set__"].__set__
    set_extra = slots["__pydantic_extra__"].__set__
    set_private = slots["__pydantic_private__"].__set__

    def take(model: Any) -> list[Any]:
        values = model.__dict__
        if skipped and not skipped.isdisjoint(values):
            values = {k: v for k, v in values.items() if k not in skipped}
        return [
            values,
            sorted(model.__pydantic_fields_set__),
            model.__pydantic_extra__,
            model.__pydantic_private__,
        ]

    def give(parts: list[Any]) -> object:
        values, fields_set, extra, private = parts
        expect(dict, values)
        if not names <= values.keys():
            values = _defaults(cls, values) | values
        model = new(cls)
        set_attribute(model, "__dict__", values)
        set_fields_set(model, set(expect(list, fields_set)))
        set_extra(model, extra)
        set_private(model, private)
        return model

    return Kind(take, give)


def _defaults(cls: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of fields that a record written before they existed lacks."""
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in model_fields(cls).items()
        if name not in values
        and not field.is_required()
        and not getattr(field, "default_factory_takes_validated_data", False)
    }


# -- values of pydantic_core, which is written in Rust


def is_url(cls: type) -> bool:
    """Whether ``cls`` is one of the two URL types of pydantic_core."""
    return cls.__module__ == _CORE and cls.__name__ in ("Url", "MultiHostUrl")


def encode_url(value: Any, writer: Writer) -> Ext:
    """A ``Url`` or ``MultiHostUrl``."""
    return Ext(Code.URL, writer.pack([type(value).__name__, str(value)]))


def decode_url(data: bytes, reader: Reader) -> Any:
    """What :func:`encode_url` packed."""
    from pydantic_core import MultiHostUrl, Url

    name, text = reader.unpack_list(data, 2)
    return (Url if name == "Url" else MultiHostUrl)(expect(str, text))


def validation_error_parts(error: Any) -> tuple[str, list[dict[str, Any]]]:
    """The title and the single errors of a pydantic ``ValidationError``."""
    return error.title, error.errors(include_url=False)


def make_validation_error(title: object, errors: object) -> BaseException:
    """The ``ValidationError`` with these parts."""
    from pydantic_core import ValidationError

    lines: list[Any] = [_with_known_type(line) for line in expect(list, errors)]
    return ValidationError.from_exception_data(expect(str, title), lines)


def _with_known_type(line: dict[str, Any]) -> dict[str, Any]:
    """``line`` with an object for its type, if it is one that a program made up."""
    from pydantic_core import PydanticCustomError, PydanticKnownError

    try:
        PydanticKnownError(line["type"], line.get("ctx"))
    except (KeyError, TypeError):
        return line | {"type": PydanticCustomError(line["type"], line["msg"])}
    return line


def is_validation_error(cls: type) -> bool:
    """Whether ``cls`` is the ``ValidationError`` of pydantic v2."""
    return cls.__module__ == _CORE and cls.__name__ == "ValidationError"


_CORE = "pydantic_core._pydantic_core"
