"""An agent of LangGraph's prebuilt parts: a model, its tools, and a person who must agree."""

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from model import ScriptedModel


@tool
def balance(account: str) -> str:
    """What is owed to an account."""
    return f"120 EUR are owed to {account}"


@tool
def pay(account: str, amount: int) -> str:
    """Pay an amount to an account, once a person has agreed."""
    # Asked first: after the answer LangGraph runs the tool again from its beginning.
    if interrupt({"question": f"Pay {amount} EUR to {account}?"}) != "yes":
        return "refused"
    return f"{amount} EUR paid to {account}"


tools = [balance, pay]
model = ScriptedModel().bind_tools(tools)


def talk(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node(talk)
builder.add_node(ToolNode(tools))
builder.add_edge(START, "talk")
builder.add_conditional_edges("talk", tools_condition)
builder.add_edge("tools", "talk")

graph = builder.compile()
