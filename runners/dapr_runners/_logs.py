"""Log records that tell of which step they are."""

import logging

from dapr_runners._current_step import running_step


class StepFilter(logging.Filter):
    """Adds to each log record the ``run_id``, ``step`` (name), ``step_id`` and ``attempt`` of the
    recorded step whose code logs it: "", "", "" and 0 outside of one. What a record has already
    stays. It drops nothing.

    Add it to handlers: a logger's filters do not see what the loggers below it log::

        handler.addFilter(StepFilter())
        handler.setFormatter(logging.Formatter("%(run_id)s %(step)s/%(attempt)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        step = running_step.get()
        told = ("", "", "", 0)
        if step is not None:
            told = (step.run_id, step.name, step.key, step.attempt)
        for name, value in zip(("run_id", "step", "step_id", "attempt"), told, strict=True):
            record.__dict__.setdefault(name, value)
        return True
