"""Every command and program of the README works, and prints what the README says; and so for
CONTRIBUTING.md, SECURITY.md and the pages of docs."""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from readme_blocks import Block, blocks_of

from engines import Sidecar

ROOT = Path(__file__).parents[2]
_NAMES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/cli.md",
    "docs/telemetry.md",
    "docs/deploy.md",
)
PAGES = [ROOT / name for name in _NAMES]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PATIENCE_SECONDS = 300

pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)


def only(*languages: str, remark: str = "") -> Callable[..., None]:
    chosen = [b for b in BLOCKS if b.language in languages and b.remark == remark]
    assert chosen
    return pytest.mark.parametrize("block", chosen, ids=str)


@functools.cache
def output_of(script: str, directory: Path, **env: str) -> str:
    """What ``script`` prints in ``directory``; fails when it fails."""
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **env}
    # A make that `make test` runs would say where it is; other tests turn OpenTelemetry off.
    for name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS", "OTEL_SDK_DISABLED"):
        here.pop(name, None)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a command may need of a checkout, to leave its traces in."""
    for name in ("examples", "components"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@only("sh")
def test_a_command(block: Block, checkout: Path) -> None:
    output_of(block.text, ROOT if block.text.startswith("make ") else checkout)


@only("python")
def test_a_program(block: Block, sidecar: Sidecar, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(block.text)
    search = ":".join(str(ROOT / "examples" / name) for name in ("simple_graph", "crew_support"))
    output_of(f"{sys.executable} {program}", tmp_path, PYTHONPATH=search, **sidecar.env())


@only("text", remark="output of")
def test_an_output(block: Block) -> None:
    assert _sections(block.text) <= _sections(output_of(f"{block.subject}\n", ROOT))


def _sections(text: str) -> set[tuple[str, ...]]:
    """Paragraphs without what differs from run to run: numbers, and the order of their lines,
    which come from several processes."""
    plain = re.sub(r"\b\d{3,}\b|[0-9a-f]{16}", "N", text)
    return {tuple(sorted(part.splitlines())) for part in plain.split("\n\n")}


@only("diff")
def test_a_diff(block: Block) -> None:
    for unwanted in "+-":
        lines = block.text.splitlines()
        ast.parse("\n".join(line[1:] for line in lines if not line.startswith(unwanted)))


def test_every_block_is_run_or_says_why_not() -> None:
    assert {block.language for block in BLOCKS} == {"diff", "python", "sh", "text"}
    not_run = [block for block in BLOCKS if block.remark == "not run"]
    assert all(block.language == "sh" for block in not_run)
    assert all(block.remark == "output of" for block in BLOCKS if block.language == "text")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
