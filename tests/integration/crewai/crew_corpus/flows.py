"""Flows: parallel listeners, routers, cycles, persistence, and crews inside."""

from typing import Any

from crewai import Flow
from crewai.flow.flow import and_, listen, or_, router, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from pydantic import BaseModel

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import looks_up


@case(concurrent=True)
def crews_agents_and_models_in_a_flow(lab: Lab) -> Flow[Any]:
    class Everything(Flow):
        @start()
        def first(self) -> str:
            self.state["first"] = 1
            agent = lab.agent("A", looks_up(1, "of a crew"), lab.lookup())
            return crew(task(agent)).kickoff().raw

        @listen(first)
        def left(self, result: str) -> str:
            agent = lab.agent("B", looks_up(2, "of another"), lab.lookup())
            return crew(task(agent, f"after {result}")).kickoff().raw

        @listen(first)
        def right(self, result: str) -> str:
            agent = lab.agent("C", looks_up(2, "of an agent"), lab.lookup())
            return agent.kickoff(f"after {result}").raw

        @router(and_(left, right))
        def choose(self) -> str:
            return "go"

        @listen("go")
        def last(self) -> dict[str, Any]:
            model = lab.model(lambda _: "of a model", "direct")
            answer = model.call([{"role": "user", "content": "hi"}])
            return {"answer": answer, "first": self.state["first"]}

    return Everything()


@case(again=True)
def effects_in_methods(lab: Lab) -> Flow[Any]:
    class Counting(Flow):
        @start()
        def first(self) -> str:
            lab.saw("first")
            self.state["n"] = 1
            return "one"

        @listen(first)
        def second(self, result: str) -> str:
            lab.saw("second")
            self.state["n"] += 1
            agent = lab.agent("A", looks_up(2, "two"), lab.lookup())
            return agent.kickoff(f"after {result}").raw

        @listen(second)
        def third(self, result: str) -> str:
            lab.saw("third")
            self.state["n"] += 1
            return f"{result} {self.state['n']}"

    return Counting()


class Count(BaseModel):
    id: str = "kept"
    n: int = 0


@case()
def persisted_state(lab: Lab) -> Flow[Any]:
    database = SQLiteFlowPersistence(str(lab.log.file("db")))

    @persist(database)
    class Kept(Flow[Count]):
        @start()
        def first(self) -> str:
            self.state.n += 1
            agent = lab.agent("A", looks_up(1, "kept"), lab.lookup())
            return agent.kickoff("q").raw

        @listen(first)
        def second(self, result: str) -> str:
            self.state.n += 1
            return result

        @listen(second)
        def third(self, result: str) -> Any:
            return [result, self.state.n, database.load_state(self.state.id)]

    return Kept()


@case(again=True)
def cycle_of_signals(lab: Lab) -> Flow[Any]:
    class Cycle(Flow):
        @start()
        def begin(self) -> str:
            self.state["n"] = 0
            return "A"

        @router(begin)
        def enter(self) -> str:
            return "SignalA"

        @listen(or_("SignalA", "SignalB"))
        def handle(self) -> str:
            self.state["n"] += 1
            lab.saw("handle")
            return "done"

        @router(handle)
        def again(self) -> str:
            return "SignalB" if self.state["n"] < 3 else "stop"

        @listen("stop")
        def end(self) -> int:
            return self.state["n"]

    return Cycle()


@case(concurrent=True, again=True)
def two_routers_of_one_method(lab: Lab) -> Flow[Any]:
    class Routed(Flow):
        @start()
        def begin(self) -> str:
            return "begun"

        @router(begin)
        def left(self) -> str:
            lab.saw("left")
            return "to_left"

        @router(begin)
        def right(self) -> str:
            lab.saw("right")
            return "to_right"

        @listen("to_left")
        def left_next(self) -> str:
            lab.saw("left_next")
            return "l"

        @listen("to_right")
        def right_next(self) -> str:
            lab.saw("right_next")
            return "r"

        @listen(and_(left_next, right_next))
        def end(self) -> str:
            lab.saw("end")
            return "both"

    return Routed()
