"""LangGraph's own tests as durable runs: ``python tests/suites/langgraph/run.py [--sample K]``.

Prints ``N passed, N failed, N skipped`` and which differences are explained; the exit status is 0
when nothing else failed. ``--sample K`` runs about every K-th test, always the same ones.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from fetch import ROOT, fetch

HERE = Path(__file__).resolve().parent
EXPLAINED = HERE / "explained.toml"


def main() -> int:
    options = _options()
    place = fetch()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        _run(place, report, options)
        results = _results(report)
    return _conclude(results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=1, help="run about every K-th test")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("tests", nargs="*", default=["tests"])
    return parser.parse_args()


def _run(place: Path, report: Path, options: argparse.Namespace) -> None:
    environment = {
        **os.environ,
        "NO_DOCKER": "true",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "runners"), str(HERE)]),
        "SUITE_SAMPLE": str(options.sample),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "durable_plugin", "-p", "sample_plugin"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--timeout", "60"]
    command += ["-o", "addopts=--strict-markers --strict-config", "-n", str(options.workers)]
    command += [f"--junitxml={report}", "--tb", "line", "--show-capture", "no", *options.tests]
    subprocess.run(command, cwd=place, env=environment, check=False)


def _results(report: Path) -> dict[str, str]:
    """``passed``, ``failed`` or ``skipped`` by test id."""
    results: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        if kinds & {"failure", "error"}:
            results[name] = "failed"
        else:
            results[name] = "skipped" if "skipped" in kinds else "passed"
    return results


def _conclude(results: dict[str, str]) -> int:
    reasons: dict[str, str] = tomllib.loads(EXPLAINED.read_text())["explained"]
    failed = [name for name, result in results.items() if result == "failed"]
    explained = [name for name in failed if name.partition("[")[0] in reasons or name in reasons]
    unexplained = sorted(set(failed) - set(explained))
    for name in explained:
        reason = reasons.get(name) or reasons[name.partition("[")[0]]
        sys.stdout.write(f"explained  {name}: {reason}\n")
    for name in unexplained:
        sys.stdout.write(f"FAILED     {name}\n")
    counts = Counter(results.values())
    sys.stdout.write(
        f"{counts['passed']} passed, {len(unexplained)} failed, {len(explained)} explained, "
        f"{counts['skipped']} skipped\n"
    )
    return 1 if unexplained or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
