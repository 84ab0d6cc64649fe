"""A crew whose workers are killed: nothing recorded is asked of a model or a tool again."""

from collections import Counter

import pytest
from harness.cluster import Cluster
from harness.deadline import until

from dapr_runners.engine import PoisonStepError

_TOPIC = {"topic": "Dapr"}
_EVERYTHING = {
    "researcher asked": 3,
    "search a0": 1,
    "search a1": 1,
    "writer asked": 2,
    "search b0": 1,
    "callback a report": 1,
}


def _counted(cluster: Cluster) -> dict[str, int]:
    counts = Counter(cluster.effects.points())
    return {point: counts[point] for point in _EVERYTHING}


def _crew(cluster: Cluster) -> None:
    cluster.use_crew("crews:two_agents")


def _result(tokens: int = 5) -> dict[str, object]:
    return {
        "raw": "a report",
        "tasks": ["notes of {topic}", "a report"],
        "tokens": {
            "cache_creation_tokens": 0,
            "cached_prompt_tokens": 0,
            "completion_tokens": tokens,
            "prompt_tokens": 10 * tokens,
            "reasoning_tokens": 0,
            "successful_requests": tokens,
            "total_tokens": 11 * tokens,
        },
    }


def test_a_crew_runs_as_it_would_without_the_runner(cluster: Cluster) -> None:
    _crew(cluster)
    worker = cluster.worker()
    assert worker.ask("call", "s", _TOPIC) == _result()
    assert _counted(cluster) == _EVERYTHING


@pytest.mark.parametrize(
    ("point", "again"),
    [
        # The model was asked for the second search: its answer is recorded.
        ("search a1", "search a1"),
        # Between two tool calls: the tool's result is recorded, the model has not answered.
        ("researcher asked", "researcher asked"),
        ("searched a1", "search a1"),
        ("writer answers", "writer asked"),
        ("searched b0", "search b0"),
    ],
)
def test_only_the_call_in_flight_is_repeated(cluster: Cluster, point: str, again: str) -> None:
    _crew(cluster)
    at_second = point in ("researcher asked", "writer answers")
    cluster.effects.arm(point, *(["go"] if at_second else []), "die")
    first = cluster.worker()
    first.send("call", "s", _TOPIC)
    first.wait_dead()
    assert cluster.worker().ask("call", "s", _TOPIC) == _result()
    assert _counted(cluster) == {**_EVERYTHING, again: _EVERYTHING[again] + 1}


def test_a_repeated_tool_call_has_the_idempotency_key_of_the_first(cluster: Cluster) -> None:
    _crew(cluster)
    cluster.effects.arm("searched a1", "die")
    first = cluster.worker()
    first.send("call", "s", _TOPIC)
    first.wait_dead()
    cluster.worker().ask("call", "s", _TOPIC)
    keys = {
        query: [event["key"] for event in cluster.effects.events() if event["point"] == query]
        for query in ("search a0", "search a1", "search b0")
    }
    assert keys["search a1"][0] == keys["search a1"][1]
    assert len({key for found in keys.values() for key in found}) == 3


@pytest.mark.parametrize(
    ("crew", "searches", "models", "raw"),
    [
        ("hierarchical", ["w0", "w1"], {"manager": 2, "worker": 3}, "managed"),
        ("flow", ["end-0"], {"left": 2, "right": 2, "end": 2}, "result end 1"),
    ],
)
def test_other_programs_repeat_only_what_was_in_flight(
    cluster: Cluster, crew: str, searches: list[str], models: dict[str, int], raw: str
) -> None:
    cluster.use_crew(f"crews:{crew}")
    caller = cluster.caller()
    caller.send("call", "s")
    for search in searches:
        cluster.effects.arm(f"searched {search}", "die", "go")
        cluster.worker().wait_dead()
    cluster.worker()
    result = caller.reply()
    assert (result if crew == "flow" else result["raw"]) == raw
    points = Counter(cluster.effects.points())
    assert {name: points[f"{name} asked"] for name in models} == models
    assert {search: points[f"search {search}"] for search in searches} == dict.fromkeys(searches, 2)
    if crew == "flow":
        methods = {name: points[f"method {name}"] for name in ("begin", "left", "right", "end")}
        # The last one was in the middle.
        assert methods == {"begin": 1, "left": 1, "right": 1, "end": 2}


def test_of_three_tasks_at_once_only_what_was_in_flight_is_repeated(cluster: Cluster) -> None:
    cluster.use_crew("crews:three_at_once")
    cluster.effects.arm("search 1-1", "hold")
    cluster.effects.arm("searched 1-1", "die", "go")
    caller = cluster.caller()
    caller.send("call", "s")
    worker = cluster.worker()
    for search in ("search 0-0", "search 2-0", "search 1-1"):
        cluster.effects.wait(search)
    cluster.effects.release("search 1-1")
    worker.wait_dead()
    before = Counter(cluster.effects.points())
    cluster.worker()
    assert caller.reply()["raw"] == "all"
    points = Counter(cluster.effects.points())
    assert points["search 1-1"] == 2
    # A strand has one call in flight: what came before it is recorded.
    for number in range(3):
        agent, searches = f"agent {number} asked", [f"search {number}-{n}" for n in range(2)]
        repeated = points[agent] - 3 + sum(points[search] - 1 for search in searches)
        assert 0 <= repeated <= 1
        assert before[f"search {number}-0"] == 1


@pytest.mark.parametrize(
    "point", ["begin __start__", "step search", "commit advance", "fuse llm"], ids=str
)
def test_one_of_two_workers_dies_when_it_has_recorded_a_step(cluster: Cluster, point: str) -> None:
    """The other may hold the program, driven to there: nothing is asked again."""
    cluster.use_crew("crews:two_agents", points=True)
    workers = [cluster.worker(), cluster.worker()]
    caller = cluster.caller()
    for number in range(3):
        cluster.effects.arm(f"1 {point} recorded", "die")
        assert caller.ask("call", f"s{number}", _TOPIC) == _result()
        expected = {name: count * (number + 1) for name, count in _EVERYTHING.items()}
        assert _counted(cluster) == expected
        (dead,) = until(lambda: [worker for worker in workers if not worker.is_alive()])
        workers.remove(dead)
        workers.append(cluster.worker())


def test_another_process_hears_a_model_while_it_speaks(cluster: Cluster) -> None:
    cluster.use_crew("crews:streaming")
    cluster.effects.arm("said the first", "hold")
    cluster.worker()
    caller = cluster.caller()
    assert caller.ask("first_chunk", "s") == "Final "
    cluster.effects.release("said the first")
    assert caller.ask("resume", "s")["raw"] == "done"


def test_an_answer_outlasts_every_process(cluster: Cluster) -> None:
    cluster.use_crew("crews:reviewed")
    caller = cluster.caller()
    caller.send("call", "s")
    first = cluster.worker()
    cluster.effects.wait("researcher answers", 2)
    (key,) = until(lambda: first.ask("pending", "s"))
    first.kill()
    cluster.sidecar.kill()
    cluster.sidecar.start()
    other = cluster.caller()
    other.ask("answer", "s", key, "")
    cluster.worker()
    assert caller.reply()["raw"] == "a report"
    assert cluster.effects.count("researcher asked") == 2
    assert cluster.effects.count("search a0") == 1


def test_a_tool_that_kills_its_worker_is_started_three_times(cluster: Cluster) -> None:
    _crew(cluster)
    cluster.effects.arm("search a1", *["die"] * 9)
    caller = cluster.caller()
    caller.send("call", "s", _TOPIC)
    for _ in range(3):
        cluster.worker().wait_dead()
    cluster.worker()
    with pytest.raises(PoisonStepError, match=r"The step 'search' of run .* started 3 times"):
        caller.reply()
    assert cluster.effects.count("search a1") == 3
    assert cluster.effects.count("search a0") == 1


def test_every_worker_dies_after_each_call(cluster: Cluster) -> None:
    _crew(cluster)
    caller = cluster.caller()
    caller.send("call", "s", _TOPIC)
    for point in ("search a0", "search a1", "search b0"):
        cluster.effects.arm(point.replace("search", "searched"), "die", "go")
        worker = cluster.worker()
        worker.wait_dead()
    cluster.worker()
    assert caller.reply() == _result()
    counted = _counted(cluster)
    assert counted.pop("researcher asked") == 3
    assert counted.pop("writer asked") == 2
    assert counted.pop("callback a report") == 1
    assert set(counted.values()) == {2}
