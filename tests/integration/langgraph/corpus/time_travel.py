"""Going on from an older state: replays and forks."""

from langgraph.types import Command

from corpus.basics import linear
from corpus.case import case
from corpus.interrupts import asking_twice
from corpus.probe import Probe


@case(linear)
def replay_and_fork(it: Probe) -> None:
    it.invokes({"x": 1})
    before = next(state for state in it.history() if state.next == ("multiply",))
    it.invokes(None, before.config)
    it.shows_history()
    forked = it.updates_state(before.config, {"x": 50})
    it.invokes(None, forked)
    it.shows_history()


@case(asking_twice)
def replay_of_a_question(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="one"))
    it.invokes(Command(resume="two"))
    asked = next(state for state in it.history() if "ask" in state.next)
    it.invokes(None, asked.config)
    it.invokes(Command(resume="ONE"))
    it.invokes(Command(resume="TWO"))
    it.shows_history()
