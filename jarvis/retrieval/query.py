"""What a search is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from jarvis.retrieval import dates
from jarvis.retrieval.question import Question
from jarvis.store.vectors import Kind
from jarvis.types import Vector

HitT = TypeVar("HitT")


@dataclass(frozen=True, slots=True)
class Query:
    """A question, embedded once for every search.

    Attributes:
        text: its words; may be empty.
        vector: its embedding; None: search by words alone.
        now: the time that "last week" is counted from, aware.
        words: what its words are worth, where that is known already (``Retriever.understand``).
        period: the time that it names, if any; read once for every search.
    """

    text: str
    vector: Vector | None
    now: datetime
    words: Mapping[Kind, Question] = field(default_factory=dict)
    period: dates.Period | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", dates.find(self.text, self.now))


@dataclass(frozen=True, slots=True)
class Results(Generic[HitT]):
    """What a search found.

    Attributes:
        hits: best first.
        dropped: what was among the candidates and why it is no hit: ``id``, ``content``,
            ``reason`` and the terms of its score.
        notes: what a person should know about this search (no vector, no index …).
        gate: the thresholds that were applied, and why.
    """

    hits: tuple[HitT, ...] = ()
    dropped: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    gate: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[HitT]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
