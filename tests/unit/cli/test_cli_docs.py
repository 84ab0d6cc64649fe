"""The page about the command line names every command, and every exit code."""

import re
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.cli._exits import ExitCode

_PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")


def test_every_command_is_on_the_page() -> None:
    command: Any = get_command(app)
    known = {name for name, each in command.commands.items() if not each.hidden}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", _PAGE, re.M)) == known


def test_every_option_on_the_page_is_one() -> None:
    command: Any = get_command(app)
    options = {
        option
        for each in (command, *command.commands.values())
        for parameter in each.params
        for option in parameter.opts
    }
    letters = command.commands["dead-letter"].commands.values()
    options |= {option for each in letters for each_ in each.params for option in each_.opts}
    assert set(re.findall(r"(--[a-z][a-z-]+)", _PAGE)) - options <= {"--help"}


def test_every_exit_code_is_on_the_page() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", _PAGE, re.M)}
    assert codes == {code.value for code in ExitCode}


def test_completion_is_printed() -> None:
    result = CliRunner().invoke(app, ["--show-completion", "bash"])
    assert result.exit_code == 0, result.output
    assert "complete" in result.output


def test_a_run_can_be_named_by_its_thread_everywhere() -> None:
    command: Any = get_command(app)
    commands = dict(command.commands)
    letters = commands.pop("dead-letter").commands
    commands |= {f"dead-letter {name}": each for name, each in letters.items()}
    about_a_run = {
        name: {option for parameter in each.params for option in parameter.opts}
        for name, each in commands.items()
        if any("RUN" in (parameter.metavar or "") for parameter in each.params)
    }
    reading = {"show", "events", "logs", "export", "dead-letter decisions"}
    assert about_a_run.keys() >= {*reading, "answer", "reconcile"}
    for name, options in about_a_run.items():
        assert {"--thread", "--runner"} <= options, name
