"""How the demo looks: colours on a terminal, plain lines elsewhere."""

from typing import Any

from rich.console import Console

_console = Console(highlight=False, soft_wrap=True)

_COLOURS = {"recorded": "green", "replayed": "cyan", "counted": "yellow"}
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}


def heading(text: str) -> None:
    _console.print(f"\n[bold]{text}[/bold]")


def killed(text: str) -> None:
    _console.print(f"\n[bold red]{text}[/bold red]")


def line(kind: str, node: str, text: str) -> None:
    _console.print(f"  [{_COLOURS[kind]}]{kind:<9}[/{_COLOURS[kind]}] {node:<10} {text}")


def counted(mark: dict[str, Any]) -> None:
    """A node told the counting process that it begins."""
    nth = _ORDINALS.get(mark["count"], f"{mark['count']}th")
    line("counted", mark["node"], f"begins, for the {nth} time, in process {mark['pid']}")


def event(event: dict[str, Any]) -> None:
    """One event of ``run_async``."""
    kind = "replayed" if event["replayed"] else "recorded"
    match event["type"]:
        case "workflow_started":
            how = "attached to the run" if event["replayed"] else "started the run"
            line(kind, "run", f"{how} {event['workflow_id']}")
        case "step_planned":
            line(kind, ", ".join(event["nodes"]), f"is planned as step {event['step']}")
        case "step_completed":
            how = "from its record, not executed" if event["replayed"] else "its result is durable"
            line(kind, event["node"], f"{how} (attempt {event['attempt']})")
        case "workflow_completed":
            line(kind, "run", f"{event['status']} after {event['steps']} steps")


def table(rows: list[tuple[str, int, str, bool]]) -> None:
    """``(node, executions, what is promised, whether that was kept)``."""
    heading("Executions, counted from outside")
    for node, executions, promised, kept in rows:
        colour, word = ("green", "kept") if kept else ("red", "BROKEN")
        _console.print(
            f"  {node:<10} {executions}   promised: {promised:<28} [{colour}]{word}[/{colour}]"
        )


def verdict(problems: list[str]) -> None:
    if problems:
        for problem in problems:
            _console.print(f"[bold red]Broken promise: {problem}[/bold red]")
    else:
        _console.print("[bold green]Every promise was kept.[/bold green]")


def result(output: Any) -> None:
    _console.print(f"\n[bold]Result[/bold] {output}")
