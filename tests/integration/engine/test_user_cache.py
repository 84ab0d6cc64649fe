"""The user's own LangChain cache goes on being asked, behind the answers that steps record."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import START, StateGraph
from run_helpers import MakeRunner
from typing_extensions import TypedDict

pytestmark = pytest.mark.timeout(240)


class State(TypedDict, total=False):
    said: str


@pytest.fixture
def cache() -> Iterator[InMemoryCache]:
    before = get_llm_cache()
    cache = InMemoryCache()
    set_llm_cache(cache)
    yield cache
    set_llm_cache(before)


def _graph(**options: Any) -> Any:
    model = FakeListChatModel(responses=["first", "second"], **options)

    def ask(state: State) -> State:
        return {"said": model.invoke("hello").text}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return builder.compile()


def test_it_answers_other_runs(cache: InMemoryCache, make_runner: MakeRunner) -> None:
    runner = make_runner(_graph())
    assert [runner.invoke({})["said"] for _ in range(2)] == ["first", "first"]
    runner.shutdown()
    assert get_llm_cache() is cache


def test_one_that_is_set_later_too(cache: InMemoryCache, make_runner: MakeRunner) -> None:
    runner = make_runner(_graph())
    set_llm_cache(None)
    assert [runner.invoke({})["said"] for _ in range(2)] == ["first", "second"]
    set_llm_cache(cache)
    assert [runner.invoke({})["said"] for _ in range(2)] == ["first", "first"]
    runner.shutdown()
    assert get_llm_cache() is cache


def test_a_model_that_wants_none_has_none(cache: InMemoryCache, make_runner: MakeRunner) -> None:
    runner = make_runner(_graph(cache=False))
    assert [runner.invoke({})["said"] for _ in range(2)] == ["first", "second"]
