"""The pytest plugin: ``pytest --crash-test app.py`` makes a test of each point of its runs.

Loaded by every pytest, so it imports what it needs when it is asked for something.
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from dapr_runners.testing import Crash, CrashTest, KillPoint


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dapr-runners", "crash tests of dapr-runners")
    group.addoption(
        "--crash-test",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="kill this program (a Python file, or a command) at every point of its durable runs;"
        " each is a test. Without other arguments, nothing else is tested.",
    )
    group.addoption(
        "--crash-test-before",
        metavar="COMMAND",
        help="a shell command to run before each crash, which puts back what the program left",
    )
    group.addoption(
        "--crash-test-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long the program may take (60)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.crash_test and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    for text in session.config.option.crash_test:
        items += _items(session, text)


def _items(session: pytest.Session, text: str) -> "Iterator[CrashItem]":
    from dapr_runners import DaprRunnersError
    from dapr_runners.testing import CrashTest, Program

    options: Any = session.config.option
    words = shlex.split(text)
    command = [sys.executable, *words] if words[0].endswith(".py") else words
    test = CrashTest(
        Program(command, before=options.crash_test_before, timeout=options.crash_test_timeout)
    )
    try:
        points = test.points()
    except DaprRunnersError as error:
        raise pytest.UsageError(str(error)) from error
    for point in points:
        item: CrashItem = cast(Any, CrashItem).from_parent(
            session, name=str(point), nodeid=f"{text}::{point}", path=Path(words[0])
        )
        item.test, item.point = test, point
        yield item


class CrashError(Exception):
    """The program did not get over the crash."""

    def __init__(self, crash: "Crash") -> None:
        super().__init__("; ".join(crash.problems))
        self.crash = crash


class CrashItem(pytest.Item):
    """A crash at one point of a program's runs."""

    test: "CrashTest"
    point: "KillPoint"

    def runtest(self) -> None:
        """Kill the program, and start it again."""
        crash = self.test.kill_at(self.point)
        if crash.problems:
            raise CrashError(crash)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The problems, and what the program wrote last."""
        if not isinstance(excinfo.value, CrashError):
            return super().repr_failure(excinfo, style)
        crash = excinfo.value.crash
        problems = "\n".join(f"* {problem}" for problem in crash.problems)
        return f"The program was {crash}:\n{problems}\n\nIts last output:\n{crash.output}"

    def reportinfo(self) -> tuple[Path, None, str]:
        """The heading of a failure."""
        return self.path, None, f"killed when {self.point}"
