"""``dapr-runners questions``: what runs ask people."""

import dataclasses
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dapr_runners._statuses import RunStatus
from dapr_runners._times import with_iso
from dapr_runners.cli._errors import FrameworkMissingError
from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._options import AsJson, OfOneRunner, OfOneThread, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._unreadable import Unreadable

if TYPE_CHECKING:
    from dapr_runners.engine import Overview, Question, RunSummary

ASKING = (RunStatus.WAITING, RunStatus.INTERRUPTED)


@on_sidecar
def questions(
    where: Sidecar,
    runner: OfOneRunner = None,
    thread: OfOneThread = None,
    as_json: AsJson = False,
) -> None:
    """List what runs ask and nobody has answered, the newest run first: run, key, thread, prompt.

    `answer RUN KEY VALUE` answers one. Runs that cannot be read are named on stderr, and the exit
    code is 1 then.
    """
    from dapr_runners.engine import Wanted, iterate_in_thread, list_runs, run_in_thread
    from dapr_runners.state import UNREADABLE
    from dapr_runners.state import as_json as as_plain

    unreadable = Unreadable()
    found: list[dict[str, Any]] = []
    with where.runs() as runs:
        for run in iterate_in_thread(list_runs(runs, Wanted(runner, thread), unreadable)):
            try:
                asked = run_in_thread(asked_by(runs, run))
            except (FrameworkMissingError, *UNREADABLE) as error:
                unreadable(run.run_id, error)
                continue
            about = {"run_id": run.run_id, "runner": run.runner, "thread": run.thread}
            since = with_iso({"last_updated_at": run.last_updated_at})
            found += [{**about, **since, **dataclasses.asdict(question)} for question in asked]
    if as_json:
        print_json([as_plain(each) for each in found])
    printer = console()
    for each in () if as_json else found:
        prompt = as_plain(each["prompt"])
        about = f"{each['run_id']}  {each['key']}  {each['thread'] or '-'}  {prompt}"
        printer.print(escape(about))
    unreadable.exit()


async def asked_by(runs: "Overview", run: "RunSummary") -> "list[Question]":
    """What ``run`` asks. Who asks nothing need not have its framework here: a run of a crew may ask
    while other steps of it are at work, and before its workflow knows."""
    if run.status in ASKING or (run.framework == "crewai" and not run.status.is_over):
        return await (await insight_into(runs, run.run_id)).questions(runs, run.run_id)
    return []
