"""kill -9 of the worker, and of the sidecar, before, in and after each call of a model or a tool.

Of a crew of two agents, a hierarchical one, a flow and three tasks at once:

* what is recorded is never called again, what was in flight at most once more;
* the result is that of an undisturbed run;
* it goes on by itself once there is a worker again.

``make test`` runs a spread of the points; ``make kill-matrix`` runs them all.
"""

import pytest
from crew_points_table import PROGRAMS, SIDECAR_DEAD, Point, all_points, check_calls
from harness.cluster import Cluster
from harness.effects import Outside

_SPREAD = 23
"""Prime to the number of phases, so that the points of ``make test`` are of all kinds."""


def _parameters() -> list[object]:
    return [
        pytest.param(point, id=str(point), marks=() if at % _SPREAD == 0 else pytest.mark.slow)
        for at, point in enumerate(all_points())
    ]


def _use(cluster: Cluster, program: str) -> None:
    cluster.use_crew(f"crews:{program}", points=True, program="crew_points")


def _text(result: object) -> object:
    return result["raw"] if isinstance(result, dict) else result


@pytest.mark.parametrize("point", _parameters())
def test_a_crew_that_is_killed(point: Point, cluster: Cluster) -> None:
    program = PROGRAMS[point.program]
    _use(cluster, point.program)
    is_worker = point.target == "worker"
    cluster.effects.arm(point.name, "die" if is_worker else "hold")
    caller = cluster.caller()
    caller.send("call", "s", {"topic": "Dapr"})
    first = cluster.worker()
    cluster.effects.wait(point.name)
    if is_worker:
        first.wait_dead()
        cluster.worker()
    else:
        cluster.sidecar.kill()
        Outside(cluster.effects.path, cluster.effects.case).report(SIDECAR_DEAD)
        cluster.effects.release(point.name)
        cluster.sidecar.start()
    assert _text(caller.reply(60)) == program.result
    killed = first.pid if is_worker else None
    check_calls(cluster.effects.events(), program, killed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_matrix_has_every_call_of_a_run(name: str, cluster: Cluster) -> None:
    _use(cluster, name)
    assert _text(cluster.worker().ask("call", "s", {"topic": "Dapr"})) == PROGRAMS[name].result
    starts = [point for point in cluster.effects.points() if point.endswith(" starts")]
    assert sorted(starts) == sorted(f"{call} starts" for call in PROGRAMS[name].calls)
