"""What the doctor says of an installation, from the versions that are there."""

from types import ModuleType

import pytest

from dapr_runners.cli import _checks
from dapr_runners.cli._checks import installation, merged
from dapr_runners.cli._findings import Finding


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Distributions and their versions, instead of those of this environment."""
    versions: dict[str, str] = {}
    monkeypatch.setattr(_checks, "_version", versions.get)
    return versions


def sdk() -> Finding:
    return next(found for found in installation() if found.subject == "dapr SDK")


@pytest.mark.parametrize(
    ("dapr", "expected"),
    [
        ("1.18.3", False),
        ("1.19.0", True),
        ("1.19.0rc1", True),
        ("2.0", True),
        ("1.20.0.dev4", True),
    ],
)
def test_since_1_19_one_distribution_has_all(dapr: str, expected: bool) -> None:
    assert merged(dapr) is expected


def test_no_sdk(installed: dict[str, str]) -> None:
    assert sdk() == Finding(
        "dapr SDK", "problem", "not installed", "pip install 'dapr[workflow]>=1.19,<1.20'"
    )


def test_the_old_distribution_beside_the_new_one(installed: dict[str, str]) -> None:
    installed |= {"dapr": "1.19.0", "dapr-ext-workflow": "1.18.3"}
    found = sdk()
    assert not found.ok
    assert found.text == (
        "dapr 1.19.0 has the workflow package in it, and dapr-ext-workflow 1.18.3 beside it"
        " overwrites that"
    )
    assert found.remedy == (
        "remove it and restore the files it shares: pip uninstall dapr-ext-workflow, then pip"
        " install --force-reinstall --no-deps dapr"
    )


@pytest.mark.parametrize(
    ("dapr", "remedy"),
    [
        ("1.19.0", "pip install --force-reinstall --no-deps dapr"),
        ("1.18.3", "pip install dapr-ext-workflow==1.18.3"),
    ],
)
def test_files_of_the_sdk_are_missing(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, dapr: str, remedy: str
) -> None:
    def gone(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(_checks, "import_module", gone)
    installed["dapr"] = dapr
    found = sdk()
    assert not found.ok
    assert found.text == (
        f'dapr {dapr}: dapr.ext.workflow cannot be imported (ModuleNotFoundError("No module named'
        " 'dapr.ext.workflow'\"))"
    )
    assert found.remedy == remedy


def test_only_the_folder_of_the_sdk_is_left(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_checks, "import_module", ModuleType)
    installed["dapr"] = "1.19.0"
    found = sdk()
    assert not found.ok
    assert "has no attribute 'DaprWorkflowClient'" in found.text
    assert found.remedy == "pip install --force-reinstall --no-deps dapr"


def test_an_sdk_that_is_newer_than_all_tests(installed: dict[str, str]) -> None:
    installed["dapr"] = "1.20.0"
    assert (sdk().status, sdk().ok) == ("warning", True)


def test_an_installation_that_is_whole() -> None:
    assert all(found.ok for found in installation())
