"""Candidates become hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jarvis.store.search import Candidate
from jarvis.types import (
    ChunkHit,
    Memory,
    MemoryHit,
    MemorySource,
    MemoryState,
    MemoryType,
    Role,
    TurnHit,
)


@dataclass(slots=True)
class Scored:
    """A candidate on its way to a hit.

    Most candidates become none, so what explains one is put into words only when it is asked for.

    Attributes:
        meaning_rank: its place in the dense arm, from 1; None: not found there.
        words_rank: the same for the lexical arm.
        fused: what the ranks are worth together, 0 … 1.
        factors: what importance, recency and dates make of it.
        share: the part of the question's idf that it holds, 0 … 1.
        passed: the sides of the gate that it passed: ``meaning``, ``words``.
        reason: why it is no hit; empty for one.
    """

    candidate: Candidate
    meaning_rank: int | None
    words_rank: int | None
    fused: float
    factors: Mapping[str, float]
    score: float
    share: float = 0.0
    passed: tuple[str, ...] = ()
    reason: str = ""

    def explain(self, words: Mapping[int, str]) -> dict[str, Any]:
        """Every term of the score. ``words``: the question's, by term."""
        return {
            "similarity": rounded(self.candidate.similarity),
            "meaning_rank": self.meaning_rank,
            "bm25": round(self.candidate.words, 3),
            "words_rank": self.words_rank,
            "words": sorted(words[term] for term in self.candidate.matched),
            "fused": round(self.fused, 4),
            **{name: round(factor, 3) for name, factor in self.factors.items()},
            "matched": round(self.share, 3),
            "gate": " and ".join(self.passed) or "closed",
        }


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def dropped(entry: Scored, words: Mapping[int, str]) -> dict[str, Any]:
    return {
        "id": entry.candidate.id,
        "content": entry.candidate.row["content"],
        "reason": entry.reason,
        "score": round(entry.score, 4),
        **entry.explain(words),
    }


def _common(entry: Scored, rank: int, words: Mapping[int, str]) -> dict[str, Any]:
    return {
        "similarity": rounded(entry.candidate.similarity),
        "score": round(entry.score, 4),
        "rank": rank,
        "explanation": entry.explain(words),
    }


def memory_hit(entry: Scored, rank: int, words: Mapping[int, str]) -> MemoryHit:
    row = dict(entry.candidate.row)
    row["type"] = MemoryType(row["type"])
    row["state"] = MemoryState(row["state"])
    row["source"] = MemorySource(row["source"])
    return MemoryHit(memory=Memory(id=entry.candidate.id, **row), **_common(entry, rank, words))


def turn_hit(entry: Scored, rank: int, words: Mapping[int, str]) -> TurnHit:
    row = dict(entry.candidate.row)
    row["role"] = Role(row["role"])
    return TurnHit(id=entry.candidate.id, **row, **_common(entry, rank, words))


def chunk_hit(entry: Scored, rank: int, words: Mapping[int, str]) -> ChunkHit:
    row = dict(entry.candidate.row)
    for unused in ("ordinal", "created_at"):
        row.pop(unused)
    row["start"], row["end"] = row.pop("start_char"), row.pop("end_char")
    return ChunkHit(id=entry.candidate.id, **row, **_common(entry, rank, words))
