"""Finding what is stored: one path for memories, past turns and passages of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jarvis.retrieval.query import Query, Results

if TYPE_CHECKING:
    from jarvis.retrieval.search import Retriever

__all__ = ["Query", "Results", "Retriever"]


def __getattr__(name: str) -> Any:
    # The write side must not pay for the read side, nor the other way round.
    if name == "Retriever":
        from jarvis.retrieval.search import Retriever

        return Retriever
    raise AttributeError(name)
