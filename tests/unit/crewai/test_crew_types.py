"""Which classes the records of a crew may hold."""

import pytest
from pydantic import BaseModel

from dapr_runners.crewai._types import Types
from dapr_runners.state import UnstorableValueError


def _model(default: int) -> type[BaseModel]:
    class Answer(BaseModel):
        value: int = default

    return Answer


def test_a_class_that_a_call_names_is_rebuilt_for_that_call() -> None:
    types, first, second = Types((), ()), _model(1), _model(2)
    for model in (first, second):
        codec = types.codec_with(model)
        assert type(codec.decode(codec.encode(model()))) is model
    with pytest.raises(UnstorableValueError):
        types.codec.encode(first())


def test_what_a_crew_names_is_rebuilt_and_a_child_learns_alone() -> None:
    types, model = Types((), ()), _model(1)
    child = types.child()
    child.learn(model)
    assert child.codec.decode(child.codec.encode(model())) == model()
    with pytest.raises(UnstorableValueError):
        types.codec.encode(model())


def test_results_of_functions_are_rebuilt() -> None:
    def look() -> "list[Named]":
        return []

    types = Types((), ())
    codec = types.codec_with(look)
    assert codec.decode(codec.encode([Named(name="x")])) == [Named(name="x")]


class Named(BaseModel):
    name: str
