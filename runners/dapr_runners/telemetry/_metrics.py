"""Metrics of runs, steps and effects, and those of the GenAI conventions."""

from typing import Any

from opentelemetry import metrics

from dapr_runners import __version__

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400)
_OPERATION = tuple(0.01 * 2**power for power in range(14))
_TOKENS = tuple(4**power for power in range(14))
_BYTES = (256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class Metrics:
    """The instruments of one meter provider (default: the global one)."""

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        meter = metrics.get_meter("dapr_runners", __version__, provider)

        def seconds(name: str, description: str, bounds: Any = _SECONDS) -> metrics.Histogram:
            return meter.create_histogram(
                name, "s", description, explicit_bucket_boundaries_advisory=bounds
            )

        self._started = meter.create_counter(
            "dapr_runners.runs.started", "{run}", "Runs whose first activity is recorded."
        )
        self._ended = meter.create_counter("dapr_runners.runs.ended", "{run}", "Runs, by status.")
        self._run = seconds("dapr_runners.run.duration", "From the call of a run to its end.")
        self._steps = meter.create_counter(
            "dapr_runners.steps", "{step}", "Steps whose outcome is recorded."
        )
        self._step = seconds("dapr_runners.step.duration", "From the plan of a step to its record.")
        self._attempt = seconds("dapr_runners.attempt.duration", "Of one execution of a step.")
        self._retries = meter.create_counter(
            "dapr_runners.step.retries", "{retry}", "Attempts that failed and are followed by one."
        )
        self._lost = meter.create_counter(
            "dapr_runners.attempts.lost", "{attempt}", "Attempts whose worker was lost."
        )
        self._queue = seconds(
            "dapr_runners.step.queue_time", "From when a step might begin to when it did."
        )
        self._wait = seconds(
            "dapr_runners.step.wait_time", "Of a step, for a person or for its next attempt."
        )
        self._unknown = meter.create_counter(
            "dapr_runners.effects.unknown", "{effect}", "Effects whose outcome was not known."
        )
        self._size = meter.create_histogram(
            "dapr_runners.snapshot.size",
            "By",
            "Of the record that a run goes on from, without what is stored by reference.",
            explicit_bucket_boundaries_advisory=_BYTES,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._operation = seconds(
            "gen_ai.client.operation.duration", "GenAI operation duration.", _OPERATION
        )

    def run_started(self, runner: str) -> None:
        self._started.add(1, _of(runner))

    def run_ended(self, runner: str, status: str, took: float | None) -> None:
        about = {**_of(runner), "dapr_runners.run.status": status}
        self._ended.add(1, about)
        if took is not None:
            self._run.record(took, about)

    def step(self, runner: str, name: str, took: float, error: BaseException | None) -> None:
        about = {**_of(runner), "dapr_runners.step.name": name, **_error(error)}
        self._steps.add(1, about)
        self._step.record(took, about)

    def attempt(self, name: str, took: float, error: BaseException | None) -> None:
        self._attempt.record(took, {"dapr_runners.step.name": name, **_error(error)})

    def retry(self, runner: str, name: str, after: float) -> None:
        about = {**_of(runner), "dapr_runners.step.name": name}
        self._retries.add(1, about)
        self._wait.record(after, {**about, "dapr_runners.waits_for": "retry"})

    def waited_for_person(self, runner: str, name: str, took: float) -> None:
        about = {"dapr_runners.step.name": name, "dapr_runners.waits_for": "person"}
        self._wait.record(took, {**_of(runner), **about})

    def lost(self, runner: str, name: str) -> None:
        self._lost.add(1, {**_of(runner), "dapr_runners.step.name": name})

    def queued(self, runner: str, name: str, took: float) -> None:
        self._queue.record(max(took, 0.0), {**_of(runner), "dapr_runners.step.name": name})

    def unknown_effect(self, effect: str) -> None:
        self._unknown.add(1, {"dapr_runners.effect": effect})

    def snapshot(self, runner: str, size: int) -> None:
        self._size.record(size, _of(runner))

    def chat(self, about: dict[str, Any], took: float, tokens: dict[str, int | None]) -> None:
        self._operation.record(took, about)
        for kind, count in tokens.items():
            if count is not None:
                self._tokens.record(count, {**about, "gen_ai.token.type": kind})

    def tool(self, about: dict[str, Any], took: float) -> None:
        self._operation.record(took, about)


def _of(runner: str) -> dict[str, str]:
    return {"dapr_runners.runner": runner}


def _error(error: BaseException | None) -> dict[str, str]:
    return {} if error is None else {"error.type": type(error).__name__}
