"""What the matrix found: a table, JSON and a picture."""

from collections import Counter
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from itertools import groupby
from typing import Any

from rich.table import Table

from chaos.cells import Cell
from chaos.lane import Outcome
from chaos.trial import KILLS

_KEYS = {"none": "none", "inside": "made inside the step", "saved": "saved before"}
_KILLED = {
    "before": "before the charge",
    "after": "after the charge",
    "recorded": "after the record",
}
_RESULTS = ("good", "other", "bad")
"""As promised, or published; other than was published; not as promised."""
_STYLES = {"good": "green", "other": "yellow", "bad": "bold red"}
_FILLS = {"good": "#d7f0dc", "other": "#fbe8b0", "bad": "#f6c3c0"}


@dataclass(frozen=True)
class Finding:
    """A cell and what came of its trials."""

    cell: Cell
    outcomes: list[Outcome]

    @property
    def result(self) -> str:
        """One of ``_RESULTS``."""
        if all(one.is_as_expected(self.cell) for one in self.outcomes):
            return "good"
        return "bad" if self.cell.setup.is_ours else "other"

    @property
    def text(self) -> str:
        """Charges, as ``2``, or ``1 x4, 2 x1`` where trials differ; ``?`` after that of a run that
        stopped at UNKNOWN."""
        counts = Counter(_shown(one) for one in self.outcomes)
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{text} x{count}" for text, count in sorted(counts.items()))


def _shown(outcome: Outcome) -> str:
    marks = {"done": "", "unknown": " ?"}
    return f"{outcome.charges}{marks.get(outcome.ending, f' ({outcome.ending})')}"


def table(findings: list[Finding]) -> Table:
    """Charges a cell."""
    shown = Table("", "idempotency key", *(_KILLED[kill] for kill in KILLS), title="Charges")
    for title, rows in _groups(findings):
        for at, row in enumerate(rows):
            cells = [f"[{_STYLES[one.result]}]{one.text}[/]" for one in row]
            is_last = at == len(rows) - 1
            key = _KEYS[row[0].cell.key]
            shown.add_row("" if at else title, key, *cells, end_section=is_last)
    return shown


def markdown(findings: list[Finding]) -> str:
    """The table for a page: keys that make no difference share a row."""
    lines = ["| | idempotency key | " + " | ".join(_KILLED[kill] for kill in KILLS) + " |"]
    lines.append("|---" * (len(KILLS) + 2) + "|")
    for title, rows in _groups(findings):
        named = title
        for texts, alike in groupby(rows, lambda row: [one.text for one in row]):
            found = [_KEYS[row[0].cell.key] for row in alike]
            keys = "any" if len(found) == len(_KEYS) else ", or ".join(found)
            lines.append(f"| {named} | {keys} | {' | '.join(texts)} |")
            named = ""
    return "\n".join(lines) + "\n"


def remarks(findings: list[Finding]) -> list[str]:
    """Sentences on what was not as promised, or published, and on programs that failed."""
    found: list[str] = []
    for one in findings:
        cell = one.cell
        where = f"{cell.setup.name}, key {_KEYS[cell.key]}, killed {_KILLED[cell.kill]}"
        if one.result != "good":
            what = "was promised" if cell.setup.is_ours else "was published"
            expected = _shown(Outcome(cell.expected.charges, cell.expected.ending))
            found.append(f"{where}: {one.text}, and {expected} {what}.")
        failures = Counter(failure for each in one.outcomes for failure in each.failures)
        details = Counter(each.detail for each in one.outcomes if each.ending == "hung")
        for text, count in (failures + details).items():
            if text:
                found.append(f"{where}: a program failed {count} x with {text}")
    return found


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """Everything that was found."""
    names = ("langgraph", "llama-index-workflows", "crewai", "dapr-runners")
    return {
        "versions": {name: version(name) for name in names},
        "cells": [
            {
                "setup": one.cell.setup.name,
                "ours": one.cell.setup.is_ours,
                "key": one.cell.key,
                "killed": one.cell.kill,
                "expected": asdict(one.cell.expected),
                "result": one.result,
                "trials": [asdict(outcome) for outcome in one.outcomes],
            }
            for one in findings
        ],
    }


_ROW, _LEFT, _KEY, _CELL, _TOP = 26, 330, 170, 140, 56


def svg(findings: list[Finding]) -> str:
    """The table as a picture."""
    groups = _groups(findings)
    height = _TOP + _ROW * sum(len(rows) for _, rows in groups) + 40
    width = _LEFT + _KEY + _CELL * len(KILLS) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(10, 22, "Charges for one order, the program killed with SIGKILL once", bold=True),
    ]
    heads = ["idempotency key", *(_KILLED[kill] for kill in KILLS)]
    for at, head in enumerate(heads):
        parts.append(_text(_LEFT + (_KEY + _CELL * (at - 1) if at else 0), 46, head))
    y = _TOP
    for title, rows in groups:
        parts.append(f'<line x1="10" y1="{y}" x2="{width - 10}" y2="{y}" stroke="#999"/>')
        parts.append(_text(10, y + 18, title, bold=True))
        for row in rows:
            parts.append(_text(_LEFT, y + 18, _KEYS[row[0].cell.key]))
            for at, one in enumerate(row):
                x = _LEFT + _KEY + _CELL * at
                parts.append(
                    f'<rect x="{x}" y="{y + 2}" width="{_CELL - 8}" height="{_ROW - 4}" rx="3" '
                    f'fill="{_FILLS[one.result]}"/>'
                )
                parts.append(_text(x + 10, y + 18, one.text))
            y += _ROW
    legend = "? the run stopped at UNKNOWN. Green: as published of others, as promised of ours."
    parts += [_text(10, y + 26, legend), "</svg>"]
    return "\n".join(parts) + "\n"


def _text(x: int, y: int, text: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}"{weight}>{escape(text)}</text>'


def _groups(findings: list[Finding]) -> list[tuple[str, list[list[Finding]]]]:
    """Findings by title, and in it by key: a row each."""
    return [
        (title, [list(row) for _, row in groupby(group, lambda one: one.cell.key)])
        for title, group in groupby(findings, lambda one: one.cell.setup.title)
    ]
