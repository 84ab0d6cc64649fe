"""``dapr-runners run``: a program beside a sidecar."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dapr_runners.sidecar import EmbeddedSidecar
from signalling import send, send_beside

RUN = [str(Path(sys.executable).with_name("dapr-runners")), "run"]
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def _run(directory: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*RUN, *arguments],
        cwd=directory,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_the_program_finds_its_sidecar(tmp_path: Path) -> None:
    done = _run(
        tmp_path,
        *("--app-id", "shop", "--app-port", "8080", "--", sys.executable, "-c", PRINT_ENVIRONMENT),
        DAPR_GRPC_ENDPOINT="elsewhere:1",
    )
    assert done.returncode == 0, done.stderr
    environment = json.loads(done.stdout)
    assert environment["APP_ID"] == "shop"
    assert environment["APP_PORT"] == "8080"
    assert int(environment["DAPR_GRPC_PORT"])
    assert int(environment["DAPR_HTTP_PORT"])
    assert "DAPR_GRPC_ENDPOINT" not in environment
    assert (tmp_path / ".dapr-runners" / "shop.db").exists()


def test_the_program_works_with_the_sdk(tmp_path: Path) -> None:
    program = (
        "from dapr.clients import DaprClient\n"
        "from dapr.ext.workflow import DaprWorkflowClient\n"
        "with DaprClient() as client:\n"
        "    client.save_state('statestore', 'key', 'value')\n"
        "    print(client.get_state('statestore', 'key').data.decode())\n"
        "print(DaprWorkflowClient().get_workflow_state('unknown'))\n"
    )
    done = _run(tmp_path, "--", sys.executable, "-c", program, DAPR_API_TOKEN="secret")
    assert (done.returncode, done.stdout) == (0, "value\nNone\n"), done.stderr


def test_state_is_kept_between_runs(tmp_path: Path) -> None:
    save = "client.save_state('statestore', 'key', 'kept')"
    load = "print(client.get_state('statestore', 'key').data.decode())"
    head = "from dapr.clients import DaprClient\nclient = DaprClient()\n"
    for line in (save, load):
        done = _run(tmp_path, "--state-dir", "here", "--", sys.executable, "-c", head + line)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "kept\n"
    assert (tmp_path / "here" / "runner.db").exists()


@pytest.mark.parametrize("code", [0, 7])
def test_its_exit_code_is_the_programs(tmp_path: Path, code: int) -> None:
    assert (
        _run(tmp_path, "--", sys.executable, "-c", f"raise SystemExit({code})").returncode == code
    )


def test_a_program_ended_by_a_signal(tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert _run(tmp_path, "--", sys.executable, "-c", program).returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("send_it", [send, send_beside])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_program(
    tmp_path: Path, number: signal.Signals, send_it: Callable[[int, signal.Signals], None]
) -> None:
    program = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n"
        "print('up', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with subprocess.Popen(
        [*RUN, "--", sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"up\n"
        send_it(command.pid, number)
        assert command.wait(200) == 5


def test_without_its_sidecar_the_program_is_ended(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "parent = os.getppid()\n"
        "children = open(f'/proc/{parent}/task/{parent}/children').read().split()\n"
        "sidecar = next(int(pid) for pid in children if int(pid) != os.getpid())\n"
        "os.kill(sidecar, signal.SIGKILL)\n"
        "signal.pause()\n"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc to find the sidecar in")
    done = _run(tmp_path, "--", sys.executable, "-c", program)
    assert done.returncode == 1
    assert "The sidecar ended with code -9" in done.stderr


def test_options_of_dapr_run_are_taken(tmp_path: Path) -> None:
    options = ["--app-protocol", "grpc", "--metrics-port", "9090", "--dapr-internal-grpc-port", "0"]
    assert _run(tmp_path, *options, "--", sys.executable, "-c", "").returncode == 0


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    done = _run(tmp_path, "--", "no-such-program")
    assert done.returncode == 1
    assert "no-such-program" in done.stderr
    done = _run(tmp_path, "--resources-path", "nowhere", "--", sys.executable, "-c", "")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    with EmbeddedSidecar(tmp_path / ".dapr-runners" / "runner.db"):
        done = _run(tmp_path, "--", sys.executable, "-c", "")
    assert done.returncode == 1
    assert "held by another embedded sidecar" in " ".join(done.stderr.split())
