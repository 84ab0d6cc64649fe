"""What a step asks for is compared with what was recorded, message by message."""

from typing import Any

from pydantic import BaseModel

from dapr_runners.crewai._requests import Request, canonical, request


def _ask(*messages: Any, before: Request | None = None) -> Request:
    return request({"model": "m"}, list(messages), before)


def _said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_equal_requests_have_equal_digests_whatever_came_before() -> None:
    first = _ask(_said("a"))
    assert _ask(_said("a"), _said("b")).digest == _ask(_said("a"), _said("b"), before=first).digest
    assert _ask(_said("a")).digest != _ask(_said("b")).digest
    assert _ask(_said("a"), _said("b")).digest != _ask(_said("ab")).digest


def test_a_record_holds_what_is_new() -> None:
    system, first = _said("system"), _ask(_said("system"))
    second = _ask(system, _said("more"), before=first)
    assert second.news()["kept"] == 1
    assert len(second.news()["parts"]) == 1
    rewritten = _ask(_said("other"), _said("more"), before=first)
    assert rewritten.news()["kept"] == 0
    equal = _ask(_said("system"), _said("more"), before=second)
    assert equal.news()["kept"] == 2


def test_a_message_changed_in_place_is_seen() -> None:
    message = {"role": "user", "content": "a", "tool_calls": [{"name": "x"}]}
    first = _ask(message)
    message["tool_calls"][0]["name"] = "y"  # type: ignore[index]
    assert _ask(message, before=first).digest != first.digest


def test_a_difference_shows_both() -> None:
    first = _ask(_said("system"))
    recorded = _ask(_said("system"), _said("say hello"), before=first).news()
    now = _ask(_said("system"), _said("say goodbye"), before=first)
    diff = now.difference(recorded, first).splitlines()
    assert [line for line in diff if "say" in line] == [
        '- "content": "say hello",',
        '+ "content": "say goodbye",',
    ]
    assert not any("system" in line for line in diff if line[0] in "+-")


class Point(BaseModel):
    x: int


def test_what_differs_between_processes_is_left_out() -> None:
    class Opaque:
        pass

    assert canonical({"id": 1, "tool_call_id": "a", "x": 2}) == canonical({"x": 2})
    assert canonical(f"<function f at {hex(id(Opaque))}>") == canonical("<function f at 0x7f>")
    assert canonical(Opaque()) == canonical(Opaque())
    assert canonical({1, 2}) == canonical({2, 1})
    assert canonical(Point(x=1)) != canonical(Point(x=2))
    assert canonical(Point) != canonical(int)
    assert canonical(b"a") != canonical(b"b")
