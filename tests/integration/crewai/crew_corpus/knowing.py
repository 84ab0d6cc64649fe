"""Memory and knowledge."""

from typing import Any

from crewai import Crew
from crewai.knowledge.knowledge import Knowledge
from crewai.knowledge.source.string_knowledge_source import StringKnowledgeSource
from crewai.knowledge.storage.base_knowledge_storage import BaseKnowledgeStorage
from crewai.memory.unified_memory import Memory
from pydantic import PrivateAttr

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, final, looks_up

_MEMORY_ANSWERS: dict[str, Any] = {
    "ExtractedMemories": {"memories": ["m1 learned", "m2 learned"]},
    "MemoryAnalysis": {
        "suggested_scope": "/s",
        "categories": ["c"],
        "importance": 0.5,
        "extracted_metadata": {"entities": [], "dates": [], "topics": []},
    },
    "QueryAnalysis": {
        "keywords": ["k"],
        "suggested_scopes": ["/"],
        "complexity": 0.1,
        "recall_queries": ["q"],
    },
}


def _embed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text) % 7), 1.0, float(sum(map(ord, text)) % 11), 0.5] for text in texts]


@case(concurrent=True, nested=True)
def memory(lab: Lab) -> Crew:
    def script(request: Request) -> Any:
        if request.model is None:
            return looks_up(1, "remembered")(request)
        other = {"actions": [], "insert_new": True, "insert_reason": ""}
        return _MEMORY_ANSWERS.get(request.model, other)

    kept = Memory(
        llm=lab.model(script, "memory", native=True),
        embedder=_embed,
        storage=str(lab.log.file("memory")),
    )

    def log_memory(output: Any) -> Any:
        kept.drain_writes()
        lab.saw("after", memories=sorted(record.content for record in kept.list_records()))
        return output

    tasks = [task(lab.agent(role, script, lab.lookup()), f"{role} learns") for role in "AB"]
    return crew(*tasks, memory=kept, after_kickoff_callbacks=[log_memory])


class LoggedStorage(BaseKnowledgeStorage):
    """Knows one thing."""

    _lab: Any = PrivateAttr()

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab

    def search(self, query: Any, *_: Any, **__: Any) -> list[Any]:
        self._lab.saw("search", q=str(query))
        return [{"id": "1", "content": "KB says 42", "metadata": {}, "score": 0.9}]

    async def asearch(self, query: Any, *_: Any, **__: Any) -> list[Any]:
        return self.search(query)

    def save(self, documents: Any) -> None:
        self._lab.saw("save", documents=len(documents))

    async def asave(self, documents: Any) -> None:
        self.save(documents)

    def reset(self) -> None: ...

    async def areset(self) -> None: ...


@case()
def knowledge(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        if "query" in str(request.messages[0]["content"]).lower():
            return "kb query"
        return final("42" if request.count("KB says 42") else "unknown")

    source = StringKnowledgeSource(content="hello world")
    known = Knowledge(collection_name="c", sources=[source], storage=LoggedStorage(lab))
    known.add_sources()
    return crew(task(lab.agent("A", script)), knowledge=known)
