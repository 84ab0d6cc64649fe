"""A step that kills its worker each time fails its run, and not one worker after the other."""

import pytest
from harness.cluster import Cluster
from harness.processes import WorkerDiedError

from dapr_runners.engine import PoisonStepError


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("graph", "step"),
    [
        ("lone", "poison"),
        ("first", "poison"),
        ("fan_out", "poison"),
        ("in_subgraph", "sub/poison"),
        ("reducer", "__commit__"),
        ("router", "__start__"),
    ],
)
def test_three_workers_die_and_the_fourth_lives(
    graph: str, step: str, is_async: bool, cluster: Cluster
) -> None:
    cluster.use(f"poison_graphs:{graph}", is_async)
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    for _ in range(3):
        cluster.worker().wait_dead()
    last = cluster.worker()
    with pytest.raises(PoisonStepError) as caught:
        caller.reply()
    assert cluster.effects.count("poison start") == 3
    # What is beside a step that kills is lost with it as often.
    told = caught.value.step
    assert told in ({step, "left", "right"} if graph == "fan_out" else {step})
    assert caught.value.attempts == 3
    assert str(caught.value) == (
        f"The step '{told}' of run {cluster.run_of('thread')!r} was started 3 times and never came "
        "back: each time its worker died. The run was failed so that it kills no more workers. "
        "Find out what the step does to its process (memory, native code, os._exit) before you run "
        "it again."
    )
    assert last.ask("status", cluster.run_of("thread")) == "COMPLETED"
    assert last.is_alive()


@pytest.mark.parametrize("steps", [1, 10], ids=["activity a step", "fast lane"])
def test_the_count_is_exact_where_the_step_follows_another_at_once(
    steps: int, cluster: Cluster
) -> None:
    # The worker goes straight on from one step to the next, so nothing marks the first attempt.
    cluster.use("poison_graphs:lone", steps_per_activity=steps, max_attempts=2)
    first = cluster.worker()
    first.send("call", "thread", {"log": []})
    first.wait_dead()
    with pytest.raises(WorkerDiedError):
        first.reply()
    cluster.worker().wait_dead()
    last = cluster.worker()
    with pytest.raises(PoisonStepError) as caught:
        last.ask("call", "thread", {"log": []})
    assert cluster.effects.count("poison start") == 2
    assert cluster.effects.count("first start") == 1
    assert caught.value.attempts == 2
