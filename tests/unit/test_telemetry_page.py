"""The page on telemetry names what there is, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "telemetry.md").read_text()
SOURCE = "".join(
    path.read_text() for path in (ROOT / "runners" / "dapr_runners" / "telemetry").glob("*.py")
)
_NAME = r"(?:dapr_runners|gen_ai)\.[a-z_.]+[a-z]"


def test_all_names_are_on_the_page() -> None:
    used = {name for name in re.findall(rf'"({_NAME})"', SOURCE) if "._" not in name}
    told = set(re.findall(rf"`({_NAME})`", PAGE))
    assert len(used) > 40
    assert told == used
