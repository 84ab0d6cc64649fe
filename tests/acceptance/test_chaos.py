"""The crash matrix, a short one, and the payment service that it counts with."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest
from chaos import matrix
from chaos.cells import SETUPS, Cell, cells
from chaos.lane import Outcome
from chaos.payments import Account, PaymentsProcess
from chaos.report import Finding, markdown

ROOT = Path(__file__).parents[2]
SHORT = ("langgraph", "llamaindex", "durable-langgraph")


@pytest.fixture(scope="module")
def payments() -> Iterator[PaymentsProcess]:
    with PaymentsProcess() as service:
        yield service


@pytest.fixture
def account(payments: PaymentsProcess, request: pytest.FixtureRequest) -> Account:
    return Account(payments.address, request.node.name)


def test_a_charge_with_a_known_key_is_made_once(account: Account) -> None:
    assert account.charge("a", 100, "k") == account.charge("a", 100, "k")
    assert account.charge("a", 100, "other").id == "charge-2"
    account.charge("a", 100)
    account.charge("b", 100)
    assert [one.id for one in account.charges(key="k")] == ["charge-1"]
    assert [one.id for one in account.charges(order="a")] == ["charge-1", "charge-2", "charge-3"]
    assert len(account.charges()) == 4


def test_an_account_without_memory_of_keys_charges_twice(account: Account) -> None:
    account.configure(dedupe=False)
    account.charge("a", 100, "k")
    account.charge("a", 100, "k")
    assert [one.key for one in account.charges(key="k")] == ["k", "k"]


def test_a_charge_whose_response_is_lost_was_made(account: Account) -> None:
    account.configure(lose_responses=1)
    with pytest.raises(RemoteDisconnected):
        account.charge("a", 100, "k")
    assert account.charge("a", 100, "k").id == "charge-1"
    assert len(account.charges()) == 1


def test_a_charge_is_made_after_the_delay(account: Account) -> None:
    account.configure(delay=0.2)
    began = time.monotonic()
    account.charge("a", 100)
    assert time.monotonic() - began >= 0.2
    assert len(account.charges()) == 1


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Any]:
    """Cells of a short matrix, by setup, key and kill."""
    output = tmp_path_factory.mktemp("matrix")
    only = [word for name in SHORT for word in ("--only", name)]
    ran = subprocess.run(
        [sys.executable, "-m", "chaos.matrix", "--trials", "1", "--output", output, *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (output / "matrix.svg").read_text().startswith("<svg")
    told = json.loads((output / "matrix.json").read_text())["cells"]
    return {(one["setup"], one["key"], one["killed"]): one for one in told}


def _charges(cell: Any) -> int:
    (trial,) = cell["trials"]
    return trial["charges"]


@pytest.mark.parametrize("setup", ["langgraph", "llamaindex"])
@pytest.mark.parametrize("key", ["none", "inside"])
def test_plain_frameworks_charge_twice_without_a_saved_key(
    found: dict[Any, Any], setup: str, key: str
) -> None:
    assert _charges(found[setup, key, "after"]) == 2
    assert _charges(found[setup, key, "before"]) == _charges(found[setup, key, "recorded"]) == 1


def test_our_runner_charges_once_with_the_key_it_keeps_or_with_reconcile(
    found: dict[Any, Any],
) -> None:
    ours = [one for one in found.values() if one["ours"]]
    kept = [one for one in ours if one["key"] == "saved" or one["setup"].endswith("reconciled")]
    assert len(kept) == 15
    assert [_charges(one) for one in kept] == [1] * 15
    assert {one["trials"][0]["ending"] for one in kept} == {"done"}


@pytest.mark.parametrize("key", ["none", "inside"])
def test_our_runner_stops_at_unknown_with_neither(found: dict[Any, Any], key: str) -> None:
    (trial,) = found["durable-langgraph-declared", key, "after"]["trials"]
    assert (trial["charges"], trial["ending"]) == (1, "unknown")


_OURS = next(setup for setup in SETUPS if setup.is_ours)
_THEIRS = next(setup for setup in SETUPS if not setup.is_ours)


@pytest.mark.parametrize(
    ("cell", "outcome", "status"),
    [
        (Cell(_OURS, "saved", "after"), Outcome(1, "done"), 0),
        (Cell(_OURS, "saved", "after"), Outcome(2, "done"), 1),
        (Cell(_OURS, "saved", "after"), Outcome(1, "hung"), 1),
        # What others do other than was published is told, and is nothing that we promised.
        (Cell(_THEIRS, "saved", "after"), Outcome(2, "done"), 0),
        (Cell(_THEIRS, "saved", "after"), Outcome(1, "failed"), 0),
    ],
)
def test_a_broken_promise_is_told_by_the_exit_status(
    cell: Cell,
    outcome: Outcome,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(matrix, "run", lambda *_: [Finding(cell, [outcome, Outcome(1, "done")])])
    monkeypatch.setattr(sys, "argv", ["matrix", "--output", str(tmp_path)])
    assert matrix.main() == status
    is_expected = outcome == Outcome(1, "done")
    told = "1 was promised" in (text := capsys.readouterr().out) or "1 was published" in text
    assert told is not is_expected


def test_the_readme_shows_what_the_matrix_expects() -> None:
    findings = [
        Finding(cell, [Outcome(cell.expected.charges, cell.expected.ending)])
        for cell in cells(SETUPS)
    ]
    assert markdown(findings) in (ROOT / "README.md").read_text("utf-8")
