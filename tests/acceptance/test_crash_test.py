"""Crash tests of programs: what they find, by the command, the pytest plugin and the class."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from harness.deadline import until

from dapr_runners.testing import (
    FAULTS,
    CrashTest,
    KillPoint,
    NoRunError,
    Program,
    ProgramFailedError,
)
from dapr_runners.testing._observed import observe

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "crash_programs"
BIN = Path(sys.executable).parent


def _program(name: str, *arguments: str) -> Program:
    return Program([sys.executable, str(PROGRAMS / name), *arguments], timeout=200)


def _run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=290,
        env={**os.environ, "COLUMNS": "120"},
    )


@pytest.fixture(scope="module")
def counts() -> CrashTest:
    """A program whose result depends on what its process has seen."""
    return CrashTest(_program("keeps_count.py"))


def test_the_points_of_a_run_are_its_steps_phases(counts: CrashTest) -> None:
    found = counts.points()
    assert {point.step for point in found} == {"(start)", "first", "second"}
    for step in ("first", "second"):
        phases = [point.phase for point in found if point.step == step]
        # A step takes long enough to be killed in its middle where the machine is busy.
        assert sorted({*phases} - {"halfway"}) == ["answered", "begins", "done", "recorded"]
        assert len(set(phases)) == len(phases)


def test_a_result_that_a_crash_changes_is_a_problem(counts: CrashTest) -> None:
    crash = counts.kill_at(KillPoint("second", "done"))
    assert (crash.was_reached, crash.has_finished) == (True, True)
    assert crash.is_equal is False
    assert crash.problems == ["the result is another one"]
    assert crash.again == ("second",)


def test_a_crash_that_changes_nothing_is_no_problem(counts: CrashTest) -> None:
    crash = counts.kill_at(KillPoint("first", "begins"))
    assert (crash.has_finished, crash.is_equal) == (True, True)
    assert (crash.problems, crash.again) == ([], ())


def test_a_point_that_is_not_reached_is_a_problem(counts: CrashTest) -> None:
    crash = counts.kill_at(KillPoint("first", "begins", 2))
    assert not crash.was_reached
    assert crash.problems


def test_a_program_that_begins_anew_is_told_to_name_its_run() -> None:
    crash = CrashTest(_program("keeps_count.py", "anew")).kill_at(KillPoint("first", "done"))
    assert crash.more_runs == 1
    assert "thread" in "".join(crash.problems)


def test_a_program_that_does_not_come_back_is_a_problem() -> None:
    crash = CrashTest(_program("keeps_count.py", "fails")).kill_at(KillPoint("second", "recorded"))
    assert not crash.has_finished
    assert "what was there before is gone" in crash.output


@pytest.mark.slow
def test_a_long_step_is_killed_in_its_middle_too() -> None:
    test = CrashTest(_program("keeps_count.py", "slow"))
    (point,) = [one for one in test.points() if one.phase == "halfway"]
    assert point.step == "second"
    crash = test.kill_at(point)
    assert crash.was_reached
    assert crash.again == ("second",)


def test_results_that_differ_by_themselves_are_not_compared() -> None:
    crash = CrashTest(_program("varies.py")).kill_at(KillPoint("throw", "done"))
    assert crash.is_equal is None
    assert crash.problems == []


def test_a_program_that_fails_undisturbed_is_refused() -> None:
    program = Program([sys.executable, "-c", "raise SystemExit('no luck')"])
    with pytest.raises(ProgramFailedError, match=r"code 1.*no luck"):
        CrashTest(program).points()


def test_a_program_that_hangs_undisturbed_is_refused() -> None:
    program = Program([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5)
    with pytest.raises(ProgramFailedError, match="did not end within"):
        CrashTest(program).points()


def test_a_program_without_a_run_is_refused() -> None:
    with pytest.raises(NoRunError):
        CrashTest(Program([sys.executable, "-c", "import dapr_runners"])).points()


def test_what_the_program_leaves_behind_is_put_back(tmp_path: Path) -> None:
    left = tmp_path / "left"
    text = f"import pathlib; pathlib.Path({str(left)!r}).open('x')"
    program = Program([sys.executable, "-c", text], before=f"rm -f {shlex.quote(str(left))}")
    for _ in range(2):
        with pytest.raises(NoRunError):  # and not that it failed, as the file was there
            CrashTest(program).points()


def test_a_recorded_step_that_runs_again_is_seen() -> None:
    def told(phase: str, pid: int) -> dict[str, object]:
        return {
            "pid": pid,
            "time": 1.0,
            "run": "r",
            "step": "s",
            "phase": phase,
            "n": 1,
            "key": "1",
        }

    log = [told("begins", 1), told("recorded", 1), told("begins", 2)]
    assert observe(log).repeated == {"s": 1}
    assert not observe(log).again
    assert observe([log[0], log[2]]).again == {"s": 1}


def test_the_command_prints_what_came_of_each_crash(tmp_path: Path) -> None:
    command = [sys.executable, PROGRAMS / "keeps_count.py"]
    ran = _run(BIN / "dapr-runners", "chaos", "--only", "second", "--", *command, cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    rows = re.findall(r"second (\w+) +│ (\w+) +│ (\w+)", ran.stdout)
    told = {phase: (ended, result) for phase, ended, result in rows}
    told.pop("halfway", None)  # it took long, on a busy machine
    # The program may have had its result by then, so that the next start is a run of its own.
    assert told.pop("answered") in (("yes", "equal"), ("yes", "not"))
    assert told == {
        "begins": ("yes", "another"),
        "done": ("yes", "another"),
        # It is the last one: with its record, the run has ended.
        "recorded": ("yes", "equal"),
    }


@pytest.mark.slow
def test_a_command_that_is_interrupted_prints_what_it_has_found(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    before = f"echo >> {shlex.quote(str(begun))}"
    command = subprocess.Popen(
        [
            *(BIN / "dapr-runners", "chaos", "-n", "1", "--before", before),
            *("--", sys.executable, PROGRAMS / "keeps_count.py"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # Undisturbed, the first crash, and the second, which comes to its end.
    until(lambda: begun.exists() and len(begun.read_text()) == 3, 200)
    command.terminate()
    output, _ = command.communicate(timeout=270)
    assert command.returncode == 130
    assert "killed when (start) begins" in output
    assert "Interrupted" in output


def test_the_plugin_makes_a_test_of_each_point(tmp_path: Path) -> None:
    ran = _run(
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
        *("--crash-test", PROGRAMS / "keeps_count.py", "-k", "second and (done or recorded)"),
        cwd=tmp_path,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 failed, 1 passed" in ran.stdout
    assert "* the result is another one" in ran.stdout


@pytest.mark.slow
def test_a_crew_gets_over_its_crashes() -> None:
    program = ROOT / "examples" / "crew_support" / "support.py"
    test = CrashTest(Program([sys.executable, str(program)]))
    points = test.points()
    assert {"find_order", "refund", "send_reply", "(model)"} <= {point.step for point in points}
    for point in [KillPoint("refund", "done"), KillPoint("(model)", "done", 2)]:
        assert point in points
        crash = test.kill_at(point)
        assert crash.problems == []
        assert crash.is_equal is True
        assert crash.again == (point.step,)


@pytest.mark.parametrize(
    ("how", "phase", "charges", "fields"),
    [
        (["reconcile", "bad"], "done", 2, {"doubled": ("@charge",), "has_finished": True}),
        (["ask"], "done", 1, {"unknown": ("charge",), "has_finished": False, "is_equal": None}),
        pytest.param(
            *(["reconcile"], "done", 1, {"has_finished": True, "is_equal": True}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(["reconcile"], "recorded", 1, {"has_finished": True, "is_equal": True}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(["retry"], "done", 2, {"again": ("@charge", "pay"), "doubled": ()}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_effects_that_happen_twice_are_seen(
    how: list[str], phase: str, charges: int, fields: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / "charges"
    program = Program(
        [sys.executable, str(PROGRAMS / "charges.py"), str(file), *how],
        before=f"rm -f {shlex.quote(str(file))}",
    )
    crash = CrashTest(program).kill_at(KillPoint("@charge", phase))
    assert {name: _sorted(getattr(crash, name)) for name in fields} == fields
    assert bool(crash.problems) == bool(crash.doubled)
    assert len(file.read_text().splitlines()) == charges


def _sorted(value: object) -> object:
    return tuple(sorted(value)) if isinstance(value, tuple) else value


_REGULAR = ("store-refuses",)
"""The fault that `make test` has; `make chaos` has all."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=() if name in _REGULAR else pytest.mark.slow) for name in FAULTS],
)
def test_a_charge_gets_over_a_fault(fault: str, tmp_path: Path) -> None:
    file = tmp_path / "charges"
    program = Program(
        [sys.executable, str(PROGRAMS / "charges.py"), str(file), "ask"],
        before=f"rm -f {shlex.quote(str(file))}",
        timeout=270,
    )
    crash = CrashTest(program).disturb_at(KillPoint("@charge", "done"), fault)
    assert crash.was_reached
    assert crash.problems == []
    if fault == "worker-frozen":  # its lease ran out: who took over cannot know of the charge
        assert crash.unknown == ("charge",)
    else:
        assert crash.has_finished and crash.is_equal
    assert file.read_text() == "charge\n"


def test_a_fault_at_a_point_that_is_not_reached_is_a_problem() -> None:
    crash = CrashTest(_program("keeps_count.py")).disturb_at(
        KillPoint("none", "done"), "store-slow"
    )
    assert not crash.was_reached
    assert crash.problems == ["the program did not get there this time"]
