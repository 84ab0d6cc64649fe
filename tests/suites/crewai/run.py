"""CrewAI's own tests, driven step by step: ``python tests/suites/crewai/run.py CREWAI_SRC``.

They run twice: as they are, and with every run driven by the runner, each outside call a step. What
fails the first time (an optional package is missing, say) proves nothing, and is only counted.
Prints which tests differ, those whose difference ``explained.toml`` names with the reason, and
``N passed, N failed, N explained, N open, N fail without the runner too``; the exit status is 0
when nothing failed. ``--sample K`` runs about every K-th test, always the same ones.
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
EXPLAINED = HERE / "explained.toml"
TESTS = (
    *("agents", "crew", "events", "experimental", "hooks", "knowledge", "mcp", "memory"),
    *("pipeline", "project", "storage", "task", "tools"),
    *("test_agent_multimodal.py", "test_async_human_feedback.py", "test_callback.py"),
    *("test_checkpoint.py", "test_context.py", "test_crew.py", "test_crew_multimodal.py"),
    *("test_crew_thread_safety.py", "test_custom_llm.py", "test_event_record.py"),
    *("test_execution_uuid.py", "test_flow.py", "test_flow_ask.py", "test_flow_conversation.py"),
    *("test_flow_default_override.py", "test_flow_definition.py"),
    *("test_flow_from_definition.py", "test_flow_human_input_integration.py"),
    *("test_flow_multimodal.py", "test_flow_persistence.py", "test_flow_persistence_factory.py"),
    *("test_flow_resumability_regression.py", "test_flow_usage_metrics.py"),
    *("test_guardrail_serialization.py", "test_hallucination_guardrail.py"),
    *("test_human_feedback_decorator.py", "test_human_feedback_integration.py"),
    *("test_markdown_task.py", "test_project.py", "test_stream_frames.py", "test_streaming.py"),
    *("test_streaming_integration.py", "test_task.py", "test_task_guardrails.py"),
    *("test_tool_cache_default.py", "test_usage_shape_parity.py"),
)
"""What of ``lib/crewai/tests`` runs crews; the rest tests providers, command lines and the like."""


def main() -> int:
    options = _options()
    results: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("plain", "driven"):
            report = Path(folder) / f"{name}.xml"
            _run(report, options, is_driven=name == "driven")
            results[name] = _results(report)
    return _conclude(results["plain"], results["driven"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of CrewAI's repository")
    parser.add_argument("--sample", type=int, default=1, help="run about every K-th test")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("tests", nargs="*", default=TESTS, help="of lib/crewai/tests")
    return parser.parse_args()


def _run(report: Path, options: argparse.Namespace, *, is_driven: bool) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "runners", HERE, HERE.parent))),
        "SUITE_SAMPLE": str(options.sample),
        "SUITE_DRIVEN": "1" if is_driven else "0",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTEST_VCR_RECORD_MODE": "none",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "crew_plugin", "-p", "sample_plugin"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--timeout", "60", "--block-network"]
    command += ["-o", "addopts=--import-mode=importlib", "-n", str(options.workers)]
    command += ["--dist", "loadfile", f"--junitxml={report}", "--tb", "line"]
    command += ["--show-capture", "no", *(f"lib/crewai/tests/{test}" for test in options.tests)]
    subprocess.run(command, cwd=options.checkout, env=environment, check=False)


def _results(report: Path) -> dict[str, str]:
    """``passed``, ``failed`` or ``skipped`` by test."""
    results: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname', '').removeprefix('lib.crewai.tests.')}::{case.get('name')}"
        if kinds & {"failure", "error"}:
            results[name] = "failed"
        else:
            results[name] = "skipped" if "skipped" in kinds else "passed"
    return results


def _conclude(plain: dict[str, str], driven: dict[str, str]) -> int:
    known: dict[str, dict[str, str]] = tomllib.loads(EXPLAINED.read_text())
    counts = Counter(result for result in driven.values() if result != "failed")
    unexplained = 0
    for name in sorted(name for name, result in plain.items() if result == "passed"):
        if driven.get(name) == "passed":
            continue
        test = name.partition("[")[0]
        kind = next((kind for kind, reasons in known.items() if test in reasons), None)
        if kind is None:
            unexplained += 1
            sys.stdout.write(f"FAILED     {name}\n")
        else:
            counts[kind] += 1
            sys.stdout.write(f"{kind:<10} {name}: {known[kind][test]}\n")
    failing = sum(result == "failed" for result in plain.values())
    sys.stdout.write(
        f"{counts['passed']} passed, {unexplained} failed, {counts['explained']} explained, "
        f"{counts['open']} open, {failing} fail without the runner too\n"
    )
    return 1 if unexplained or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
