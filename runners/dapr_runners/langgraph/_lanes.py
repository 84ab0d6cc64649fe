"""Lanes: the loop of the root graph, and of subgraphs whose nodes are steps of their own."""

from dapr_runners.langgraph._live import Live


def split_lane(lane: str) -> tuple[str, int, str]:
    """``(lane around it, number of the plan, task id)`` of a subgraph's lane."""
    head, _, last = lane[:-1].rpartition("/")
    n, _, task = last.partition(":")
    return (f"{head}/" if head else ""), int(n), task


def root_of(live: Live) -> Live:
    """The root graph's loop around ``live``."""
    while live.parent is not None:
        live = live.parent
    return live
