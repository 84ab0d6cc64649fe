"""The crash matrix: one order, prepared, charged and finalized, and a program killed once.

    python -m chaos.matrix --trials 5 --only langgraph --only durable-langgraph

Each trial starts a program in a process, kills it with SIGKILL before the charge, after it, or
after the step that charged is recorded, starts it again, and asks the payment service, a process of
its own, how often it charged. Exits with status 1 when a cell of ours is not what it promises.
"""

import argparse
import json
import queue
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from chaos.cells import SETUPS, Cell, Setup, cells
from chaos.lane import Lane, Outcome
from chaos.payments import PaymentsProcess
from chaos.processes import start_server
from chaos.report import Finding, as_json, markdown, remarks, svg, table


def run(setups: tuple[Setup, ...], trials: int, width: int, progress: Progress) -> list[Finding]:
    """Every cell of ``setups``, ``trials`` times, ``width`` trials at once."""
    todo = list(cells(setups))
    start_server(sorted({f"chaos.setups.{setup.module}" for setup in setups}))
    bar = progress.add_task("trials", total=len(todo) * trials)
    lanes: queue.SimpleQueue[Lane] = queue.SimpleQueue()

    def try_once(cell: Cell, number: int) -> Outcome:
        lane = lanes.get()
        try:
            return lane.try_once(cell, number)
        finally:
            lanes.put(lane)
            progress.advance(bar)

    with ExitStack() as stack:
        payments = stack.enter_context(PaymentsProcess())
        for _ in range(width):
            lanes.put(stack.enter_context(Lane(payments.address)))
        pool = stack.enter_context(ThreadPoolExecutor(width))
        stack.callback(pool.shutdown, cancel_futures=True)
        futures = {
            cell: [pool.submit(try_once, cell, number) for number in range(trials)] for cell in todo
        }
        return [Finding(cell, [each.result() for each in futures[cell]]) for cell in todo]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [setup.name for setup in SETUPS]
    parser.add_argument("--trials", type=int, default=5, help="of each cell (5)")
    parser.add_argument("--parallel", type=int, default=2, help="trials at once (2)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="SETUP",
        help=f"those whose names begin so; again for more. The names: {', '.join(names)}",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(".dapr-runners/chaos"),
        help="where matrix.json, matrix.md and matrix.svg go (%(default)s)",
    )
    options = parser.parse_args()
    chosen = tuple(
        setup
        for setup in SETUPS
        if options.only is None or any(setup.name.startswith(start) for start in options.only)
    )
    if not chosen:
        parser.error(f"no setup is named so; the names: {', '.join(names)}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        findings = run(chosen, options.trials, options.parallel, progress)
    console.print(table(findings))
    console.print("?  the run stopped at UNKNOWN, where somebody decides")
    for remark in remarks(findings):
        console.print(remark, highlight=False, markup=False)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "matrix.json").write_text(json.dumps(as_json(findings), indent=1) + "\n")
    (options.output / "matrix.md").write_text(markdown(findings))
    (options.output / "matrix.svg").write_text(svg(findings))
    console.print(
        f"Written: {options.output / 'matrix.json'}, matrix.md, matrix.svg", highlight=False
    )
    return int(any(one.result == "bad" for one in findings))


if __name__ == "__main__":
    sys.exit(main())
