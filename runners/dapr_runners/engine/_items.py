"""Items that follow from others, in the same activity or in their place."""

from dapr_runners.engine._work import OF_A_RUN, Json


def asks_about(item: Json) -> Json:
    """The item that asks whether the step of ``item`` is to be given up."""
    return {**item, "name": "__control__", "step": item["name"]}


def made_plan_of(item: Json) -> Json:
    """The item that made the plan of a step that is alone: another such step, or the begin."""
    of_both = [key for key in (*OF_A_RUN, "lane") if key in item and key != "limit"]
    kept = {key: item[key] for key in of_both}
    previous = {key: value for key, value in item["prev"].items() if key != "by"}
    op = "begin" if "task" not in previous else "step" if "then" in previous else "fuse"
    return {**kept, "op": op, "n": item["n"] - 1, **previous}


def commit_of(item: Json, outcome: Json) -> Json:
    """The item that commits the step of ``item``, alone in its lane."""
    base = {key: item[key] for key in OF_A_RUN if key in item}
    place = {key: item[key] for key in ("lane", "at", "n")}
    done = [[outcome["id"], outcome["at"]]]
    return {**base, **place, "op": "commit", "name": item["then"], "done": done, "alone": True}


def lone_step(outcome: Json) -> Json | None:
    """The one step that a plan goes on with, in one activity with what follows it."""
    if outcome["k"] != "plan" or len(outcome["steps"]) != 1:
        return None
    step: Json = outcome["steps"][0]
    return step if step.get("fuse") or step.get("then") else None


def is_planned(item: Json, outcome: Json) -> bool:
    """Whether ``item`` is the one step that is recorded to come next."""
    step = lone_step(outcome)
    if step is None or bool(step.get("fuse")) != (item["op"] == "fuse"):
        return False
    return (step["id"], step["name"]) == (item["task"], item.get("step") or item["name"])


def next_fused(item: Json, outcome: Json) -> Json | None:
    """The fused step, if it is one, that a plan goes on with: it may follow ``item`` at once."""
    step = lone_step(outcome)
    if step is None or not step.get("fuse"):
        return None
    base = {key: item[key] for key in OF_A_RUN if key in item}
    if "told" in outcome:
        base["told"] = outcome["told"]
    return {
        **base,
        "op": "fuse",
        "lane": outcome["lane"],
        "at": outcome["at"],
        "n": outcome["n"],
        "task": step["id"],
        "name": step["name"],
    }
