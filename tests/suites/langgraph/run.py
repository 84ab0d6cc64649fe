"""LangGraph's own tests as durable runs: ``python tests/suites/langgraph/run.py [--sample K]``.

Prints which tests differ, those whose difference ``explained.toml`` names with the reason, and
``N passed, N failed, N explained, N open, N skipped``; the exit status is 0 when nothing else
failed. ``--sample K`` runs about every K-th test, always the same ones. Those that ``[alone]``
names are run once more, alone, when they failed, and it is said so.
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
_ALONE = "alone"


def main() -> int:
    options = _options()
    place = fetch()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        _run(place, report, options)
        results = _results(report)
        _again(place, report, options, results)
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
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "runners", HERE, HERE.parent))),
        "SUITE_SAMPLE": str(options.sample),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "durable_plugin", "-p", "sample_plugin"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--timeout", "60"]
    command += ["-o", "addopts=--strict-markers --strict-config", "-n", str(options.workers)]
    command += [f"--junitxml={report}", "--tb", "line", "--show-capture", "no", *options.tests]
    subprocess.run(command, cwd=place, env=environment, check=False)


def _again(place: Path, report: Path, options: argparse.Namespace, results: dict[str, str]) -> None:
    """Run those that failed and may rest on time alone, and put that in ``results``."""
    failed = [
        name
        for name, result in results.items()
        if result == "failed" and (_known(name) or ("", ""))[0] == _ALONE
    ]
    if not failed:
        return
    report.unlink()
    _run(place, report, argparse.Namespace(sample=1, workers=0, tests=failed))
    for name, result in _results(report).items() if report.exists() else ():
        if name in failed and result == "passed":
            sys.stdout.write(f"again      {name}: failed beside others, passed alone\n")
            results[name] = result


def _known(name: str) -> tuple[str, str] | None:
    """Kind and reason of a difference that is known."""
    test = name.partition("[")[0]
    known: dict[str, dict[str, str]] = tomllib.loads(EXPLAINED.read_text())
    return next(((kind, known[kind][test]) for kind in known if test in known[kind]), None)


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
    counts = Counter(results.values())
    unexplained = 0
    for name in sorted(name for name, result in results.items() if result == "failed"):
        if (known := _known(name)) is None or known[0] == _ALONE:
            unexplained += 1
            sys.stdout.write(f"FAILED     {name}\n")
        else:
            kind, reason = known
            counts[kind] += 1
            sys.stdout.write(f"{kind:<10} {name}: {reason}\n")
    sys.stdout.write(
        f"{counts['passed']} passed, {unexplained} failed, {counts['explained']} explained, "
        f"{counts['open']} open, {counts['skipped']} skipped\n"
    )
    return 1 if unexplained or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
