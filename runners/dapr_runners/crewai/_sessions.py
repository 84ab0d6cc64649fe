"""Operations on a run by the session it is of."""

from dapr_runners.engine import Runner


class SessionsRunner(Runner):
    """Names runs by their id, or as the newest of a session."""

    def cancel(
        self,
        run_id: str | None = None,
        *,
        session_id: str | None = None,
        thread_id: str | None = None,
    ) -> None:
        """Cancel a run, by its id or as the newest of a session (``thread_id`` means the same).
        What is recorded stays recorded; a step that runs right now runs to its end, and its result
        is ignored. A run that has ended is left as it is."""
        super().cancel(run_id, thread_id=thread_id if session_id is None else session_id)

    terminate_workflow = cancel

    def purge(
        self,
        run_id: str | None = None,
        *,
        session_id: str | None = None,
        thread_id: str | None = None,
    ) -> None:
        """Delete everything recorded for a finished run, by its id or as the newest of a session
        (``thread_id`` means the same). Raises :class:`RunNotEndedError` while it goes on."""
        super().purge(run_id, thread_id=thread_id if session_id is None else session_id)

    purge_workflow = purge
