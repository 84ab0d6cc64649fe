"""A chat model that follows a script, so that the example needs no key and no network."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Looks the balance up, asks to pay, and reports: one answer for each state of the talk.

    The answer follows from the messages alone. A model object that counts its own calls would
    count from zero in the next process.
    """

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: list[BaseMessage]) -> AIMessage:
    asked = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
    results = [message for message in messages[asked:] if isinstance(message, ToolMessage)]
    if not results:
        return _call("balance", {"account": "ACME"})
    if len(results) == 1:
        return _call("pay", {"account": "ACME", "amount": 120})
    return AIMessage(f"The payment desk says: {results[-1].text}")


def _call(name: str, arguments: dict[str, Any]) -> AIMessage:
    call = {"name": name, "args": arguments, "id": f"call-{name}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])
