"""Candidates become hits."""

from __future__ import annotations

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
    """A candidate on its way to a hit."""

    candidate: Candidate
    explanation: dict[str, Any]
    score: float = 0.0
    reason: str = ""


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def dropped(entry: Scored) -> dict[str, Any]:
    return {
        "id": entry.candidate.id,
        "content": entry.candidate.row["content"],
        "reason": entry.reason,
        "score": round(entry.score, 4),
        **entry.explanation,
    }


def _common(entry: Scored, rank: int) -> dict[str, Any]:
    return {
        "similarity": rounded(entry.candidate.similarity),
        "score": round(entry.score, 4),
        "rank": rank,
        "explanation": entry.explanation,
    }


def memory_hit(entry: Scored, rank: int) -> MemoryHit:
    row = dict(entry.candidate.row)
    row["type"] = MemoryType(row["type"])
    row["state"] = MemoryState(row["state"])
    row["source"] = MemorySource(row["source"])
    return MemoryHit(memory=Memory(id=entry.candidate.id, **row), **_common(entry, rank))


def turn_hit(entry: Scored, rank: int) -> TurnHit:
    row = dict(entry.candidate.row)
    row["role"] = Role(row["role"])
    return TurnHit(id=entry.candidate.id, **row, **_common(entry, rank))


def chunk_hit(entry: Scored, rank: int) -> ChunkHit:
    row = dict(entry.candidate.row)
    for unused in ("ordinal", "created_at"):
        row.pop(unused)
    row["start"], row["end"] = row.pop("start_char"), row.pop("end_char")
    return ChunkHit(id=entry.candidate.id, **row, **_common(entry, rank))
