"""Callers while no process works."""

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from run_helpers import collect, eventually
from test_processes import FOLDER, callers_of, worker_of

from dapr_runners.engine import RunCancelledError, RunNotFoundError, WorkerMissingError
from dapr_runners.engine._keys import untold_key
from engines import Engine, Sidecar, until_nobody_works

pytestmark = pytest.mark.timeout(240)


def status_at(sidecar: Sidecar, run_id: str) -> str | None:
    client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
    state = client.get_workflow_state(run_id)
    client.close()
    return None if state is None else state.runtime_status.name


async def test_a_cancelled_run_does_not_go_on(engine: Engine, tmp_path: Path) -> None:
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("held")
        with worker_of(sidecar, tmp_path) as worker:
            waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="held-1")))
            await eventually((tmp_path / "worked").exists)
            worker.kill()
        until_nobody_works(sidecar)
        runner.cancel("held-1")
        with pytest.raises(RunCancelledError):
            await waiting
        assert status_at(sidecar, "held-1") == "RUNNING"
        with worker_of(sidecar, tmp_path) as second:
            await eventually(lambda: status_at(sidecar, "held-1") in ("TERMINATED", "COMPLETED"))
            assert runner.invoke({"x": 0})["log"] == [second.pid, "last"]
        assert (tmp_path / "worked").read_text().split() == [str(worker.pid), str(second.pid)]


async def test_a_purged_run_is_gone(engine: Engine, tmp_path: Path) -> None:
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("who")
        with worker_of(sidecar, tmp_path) as worker:
            first = await collect(runner.run_async({"x": 1}, run_id="purged"))
            await eventually(lambda: status_at(sidecar, "purged") == "COMPLETED")
            worker.kill()
        until_nobody_works(sidecar)
        runner.purge("purged")
        with worker_of(sidecar, tmp_path) as second:
            await eventually(lambda: status_at(sidecar, "purged") is None)
            with pytest.raises(RunNotFoundError):
                runner.purge("purged")
            again = await collect(runner.run_async({"x": 1}, run_id="purged"))
    assert first[-1]["output"]["log"] == [worker.pid, "last"]
    assert again[-1]["output"]["log"] == [second.pid, "last"]


async def test_a_cancelled_run_is_purged_once_it_can_end(engine: Engine, tmp_path: Path) -> None:
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("held")
        with worker_of(sidecar, tmp_path) as worker:
            waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="held-1")))
            await eventually((tmp_path / "worked").exists)
            worker.kill()
        until_nobody_works(sidecar)
        runner.cancel("held-1")
        with pytest.raises(RunCancelledError):
            await waiting
        with pytest.raises(WorkerMissingError) as told:
            runner.purge("held-1")
        assert str(told.value) == (
            f"No process works for the app of the sidecar at {sidecar.address}, and without one "
            "the sidecar changes no workflow: this one is left as it is. Start a worker (a program "
            "that calls start() on the runner), then do this again."
        )
        with worker_of(sidecar, tmp_path):
            runner.purge("held-1")
        assert status_at(sidecar, "held-1") is None


async def test_a_call_says_that_it_waits_for_a_worker(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("who")
        waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="early")))
        await eventually(lambda: "no worker" in caplog.text)
        told = [each for each in caplog.record_tuples if "no worker" in each[2]]
        assert told == [
            (
                "dapr_runners",
                logging.WARNING,
                "Run early waits to be started: no worker of the runner 'who' seems to be there. "
                "It is recorded, and begins when a program that calls start() on the runner is; "
                "this call waits for that.",
            )
        ]
        with worker_of(sidecar, tmp_path) as worker:
            assert (await waiting)[-1]["output"]["log"] == [worker.pid, "last"]


async def test_a_run_begins_though_its_caller_is_killed(engine: Engine, tmp_path: Path) -> None:
    program = (
        "from engine_graphs import make\n"
        "runner = make('who', PORT)\n"
        "runner.connect()\n"
        "runner.invoke({'x': 1}, thread_id='early')\n"
    )
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("who")
        caller = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program.replace("PORT", str(sidecar.grpc_port)),
            env={**os.environ, "PYTHONPATH": str(FOLDER)},
            stderr=asyncio.subprocess.PIPE,
        )
        assert caller.stderr is not None
        async for line in caller.stderr:
            if b"waits to be started" in line:
                break
        await eventually(lambda: runner.store.get(untold_key("who")) is not None)
        caller.kill()
        await caller.communicate()
        run = runner._resolve(None, "early")
        assert status_at(sidecar, run) is None
        with worker_of(sidecar, tmp_path) as worker:
            await eventually(lambda: status_at(sidecar, run) == "COMPLETED")
            log = runner.invoke({"x": 1}, thread_id="early")["log"]
        assert log == [worker.pid, "last"]
        assert (tmp_path / "worked").read_text().split() == [str(worker.pid)]


async def test_a_call_that_waits_for_a_worker_is_cancelled(engine: Engine, tmp_path: Path) -> None:
    with engine.sidecar(tmp_path) as sidecar, callers_of(sidecar) as connect:
        runner = connect("who")
        waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="early")))
        await eventually(lambda: runner.store.get("dr/run/early/spec") is not None)
        runner.cancel("early")
        with worker_of(sidecar, tmp_path):
            with pytest.raises(RunCancelledError):
                await waiting
            await eventually(lambda: status_at(sidecar, "early") in ("TERMINATED", "COMPLETED"))
        assert not (tmp_path / "worked").exists()
