"""kill -9 of the worker, and of the sidecar, before, in and after every node and every commit.

Of each run that is killed, in sync, async and fast-lane mode:

* what is recorded never runs again, what was in flight runs at most once more;
* no node begins before what it depends on is recorded;
* the result is that of an undisturbed run, and so is the checkpoint history in the saver;
* it goes on by itself once there is a worker again.

``make test`` runs every seventh point; ``make kill-matrix`` runs them all.
"""

from collections.abc import Callable, Iterator

import pytest
from harness.effects import EffectsService
from lane import Lane
from matrix import Matrix
from points import MODES, Point, all_points, names

from engines import Engine

_SPREAD = 7
"""Prime to the number of phases, so that the points of ``make test`` are of all kinds."""
_WIDTH = {"worker": 2, "sidecar": 4}
"""Runs at once. After a sidecar's death they mostly wait: the SDK reconnects after 2 s."""


def _parameters() -> list[object]:
    return [
        pytest.param(point, id=str(point), marks=() if at % _SPREAD == 0 else pytest.mark.slow)
        for at, point in enumerate(all_points())
    ]


@pytest.fixture(scope="module")
def matrix_for(
    request: pytest.FixtureRequest,
    engine: Engine,
    effects_service: EffectsService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Point], Matrix]]:
    """The matrix that a point belongs to: that of its target, with all points that are to run."""
    matrices: dict[str, Matrix] = {}
    wanted = [
        item.callspec.params["point"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.function is test_a_run_that_is_killed
        and item.callspec.params["engine"] == engine.name
    ]

    def get(point: Point) -> Matrix:
        if point.target not in matrices:
            for other in matrices.values():
                other.close()
            matrices.clear()
            matrices[point.target] = Matrix(
                [each for each in wanted if each.target == point.target],
                _WIDTH[point.target],
                effects_service,
                engine,
                tmp_path_factory.mktemp,
            )
        return matrices[point.target]

    yield get
    for matrix in matrices.values():
        matrix.close()


@pytest.mark.parametrize("point", _parameters())
def test_a_run_that_is_killed(point: Point, matrix_for: Callable[[Point], Matrix]) -> None:
    matrix_for(point).result(point)


@pytest.mark.parametrize("mode", MODES)
def test_the_matrix_has_every_point_of_a_run(
    mode: str,
    engine: Engine,
    effects_service: EffectsService,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lane = Lane(mode, tmp_path_factory.mktemp(mode), effects_service, engine)
    try:
        assert set(lane.points_of_base()) == {*names(mode, 1), *names(mode, 2)}
    finally:
        lane.close()
