"""A worker leaves what its program has imported out of the collections of garbage."""

import gc

import pytest

from dapr_runners.engine import Worker

pytestmark = pytest.mark.timeout(60)

MANY = 10_000
"""Objects: fewer than pytest alone imports."""


@pytest.fixture
def worker(sidecar):
    return Worker(sidecar.address)


def test_what_was_there_is_left_out_until_the_worker_stops(worker):
    worker.start()
    while_it_works = gc.get_freeze_count()
    worker.stop()

    assert while_it_works > MANY > gc.get_freeze_count()


def test_what_the_program_has_frozen_itself_stays_so(worker):
    gc.freeze()
    try:
        worker.start()
        worker.stop()
        assert gc.get_freeze_count() > MANY
    finally:
        gc.unfreeze()


def test_a_program_that_collects_no_garbage_is_left_alone(worker):
    gc.disable()
    try:
        worker.start()
        frozen = gc.get_freeze_count()
        worker.stop()
        assert frozen < MANY
    finally:
        gc.enable()
