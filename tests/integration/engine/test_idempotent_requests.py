"""Requests of nodes carry an Idempotency-Key: the same when the step runs again."""

import asyncio
from typing import Any

import httpx
import pytest
from langgraph.graph import START, StateGraph
from run_helpers import MakeRunner
from typing_extensions import TypedDict

from dapr_runners import current_step
from dapr_runners.effects import current_effect, effect
from dapr_runners.effects.http import AsyncIdempotencyTransport, IdempotencyTransport
from dapr_runners.langgraph import StepRetry

pytestmark = pytest.mark.timeout(240)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
Sent = list[tuple[str, str, str | None]]


class State(TypedDict, total=False):
    n: int


class Service:
    """Keeps the method, path and key of what it is sent, and fails its first ``failures`` times."""

    def __init__(self, failures: int = 0) -> None:
        self.sent: Sent = []
        self._failures = failures
        self._mock = httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, request.url.path, request.headers.get("Idempotency-Key")))
        return httpx.Response(200)

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(transport=IdempotencyTransport(self._mock), base_url="http://pay")

    @property
    def async_client(self) -> httpx.AsyncClient:
        transport = AsyncIdempotencyTransport(self._mock)
        return httpx.AsyncClient(transport=transport, base_url="http://pay")

    def fail(self) -> None:
        if self._failures:
            self._failures -= 1
            raise ConnectionError("not yet")

    @property
    def keys(self) -> list[str | None]:
        return [key for _, _, key in self.sent]


def _graph(node: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda s: "node" if s["n"] < 2 else "__end__")
    return builder.compile()


def _node(service: Service, is_async: bool) -> Any:
    def body(number: int) -> list[tuple[str, str, dict[str, Any]]]:
        return [
            ("POST", "/charges", {"json": {"cents": 1}}),
            ("POST", "/charges", {"json": {"cents": 2}}),
            ("POST", "/charges", {"json": {"cents": 1}}),
            ("DELETE", "/carts/7", {}),
            ("GET", "/charges", {}),
            ("POST", "/mine", {"headers": {"Idempotency-Key": "mine"}}),
        ]

    def run(state: State) -> State:
        for method, path, options in body(state.get("n", 0)):
            service.client.request(method, path, **options)
        service.fail()
        return {"n": state.get("n", 0) + 1}

    async def run_async(state: State) -> State:
        for method, path, options in body(state.get("n", 0)):
            async with service.async_client as client:
                await client.request(method, path, **options)
        service.fail()
        return {"n": state.get("n", 0) + 1}

    return run_async if is_async else run


@_MODES
def test_keys_are_those_of_the_operations(is_async: bool, make_runner: MakeRunner) -> None:
    service = Service(failures=1)
    retry = StepRetry(first_interval=0.05)
    runner = make_runner(_graph(_node(service, is_async)), retry=retry)

    asyncio.run(runner.ainvoke({"n": 0})) if is_async else runner.invoke({"n": 0})
    failed, again, next_step = service.keys[:6], service.keys[6:12], service.keys[12:]
    assert failed == again
    one, two, one_again, deletion, reading, mine = again
    assert one == one_again
    assert reading is None
    assert mine == "mine"
    assert len({one, two, deletion}) == 3
    assert None not in (one, two, deletion)
    # The next step is another operation, with the same requests.
    assert not {one, two, deletion} & {*next_step}


def test_the_first_request_of_an_effect_has_its_key(make_runner: MakeRunner) -> None:
    service = Service()
    keys: list[str] = []

    @effect
    def charge(cents: int) -> int:
        running = current_effect()
        assert running is not None
        keys.append(running.idempotency_key)
        service.client.post("/charges", json={"cents": cents})
        service.client.post("/charges", json={"cents": cents})
        service.client.post("/receipts", json={"cents": cents})
        return cents

    def node(state: State) -> State:
        charge(1)
        charge(2)
        service.client.post("/charges", json={"cents": 1})
        return {"n": 2}

    make_runner(_graph(node)).invoke({"n": 0})
    first, first_again, receipt, second, second_again, other_receipt, bare = service.keys
    assert [first, second] == keys
    assert first_again == first
    assert second_again == second
    assert len({first, second, receipt, other_receipt, bare}) == 5


def test_what_is_sent_while_it_is_made_is_another_each_time(make_runner: MakeRunner) -> None:
    service = Service()

    def node(state: State) -> State:
        for _ in range(2):
            service.client.post("/charges", content=iter([b"a", b"b"]))
        return {"n": 2}

    make_runner(_graph(node)).invoke({"n": 0})
    assert len(set(service.keys)) == 2


def test_outside_of_a_step_nothing_is_marked() -> None:
    service = Service()
    assert current_step() is None
    service.client.post("/charges", json={})
    assert service.keys == [None]
