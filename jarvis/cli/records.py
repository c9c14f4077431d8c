"""The JSON records of the commands: field names as the documentation promises them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from jarvis.types import ChunkHit, Memory, MemoryHit, TurnHit

if TYPE_CHECKING:
    from jarvis.services.turns import Prepared, TurnResult


def memory_record(memory: Memory) -> dict[str, Any]:
    """A memory."""
    record = {field.name: getattr(memory, field.name) for field in dataclasses.fields(memory)}
    if not record["held_reason"]:
        del record["held_reason"]
    return record


def memory_hit_record(hit: MemoryHit, *, explain: bool = False) -> dict[str, Any]:
    """A memory that a search found."""
    return memory_record(hit.memory) | _ranking(hit, explain)


def turn_hit_record(hit: TurnHit, *, explain: bool = False) -> dict[str, Any]:
    """A past turn that a search found."""
    record = {
        "id": hit.id,
        "session_id": hit.session_id,
        "role": hit.role,
        "content": hit.content,
        "created_at": hit.created_at,
    }
    return record | ({"reply": hit.reply} if hit.reply else {}) | _ranking(hit, explain)


def chunk_hit_record(hit: ChunkHit, *, explain: bool = False) -> dict[str, Any]:
    """A passage that a search found."""
    return {
        "id": hit.id,
        "document_id": hit.document_id,
        "document": hit.document,
        "page": hit.page,
        "page_label": hit.page_label,
        "start": hit.start,
        "end": hit.end,
        "content": hit.content,
    } | _ranking(hit, explain)


def answer_record(result: TurnResult, *, explain: bool = False) -> dict[str, Any]:
    """A finished turn, as ``ask --json`` prints it."""
    record: dict[str, Any] = {
        "answer": result.answer,
        "session_id": result.session_id,
        "message_id": result.message_id,
        "model": result.model,
        "memories": [memory_hit_record(hit, explain=explain) for hit in result.memories],
        "turns": [turn_hit_record(hit, explain=explain) for hit in result.turns],
        "documents": [chunk_hit_record(hit, explain=explain) for hit in result.documents],
        "tools": list(result.tools),
        "timings": {"embed_ms": None, "search_ms": None, "first_token_ms": None} | result.timings,
        "tokens": result.tokens,
        "warnings": list(result.warnings),
    }
    if explain:
        record["dropped"] = result.dropped
    return record


def prompt_record(prepared: Prepared, *, explain: bool = False) -> dict[str, Any]:
    """A prompt that was not sent, as ``ask --dry-run --json`` prints it."""
    record: dict[str, Any] = {
        "messages": [
            {"role": message.role, "content": message.content}
            for message in prepared.prompt.messages
        ],
        "model": prepared.model,
        "memories": [memory_hit_record(hit, explain=explain) for hit in prepared.memories],
        "turns": [turn_hit_record(hit, explain=explain) for hit in prepared.turns],
        "documents": [chunk_hit_record(hit, explain=explain) for hit in prepared.chunks],
        "timings": prepared.timings,
        "tokens": {"prompt": prepared.prompt.estimate, **prepared.prompt.parts},
        "warnings": list(prepared.warnings),
    }
    if explain:
        record["dropped"] = prepared.dropped
    return record


def _ranking(hit: MemoryHit | TurnHit | ChunkHit, explain: bool) -> dict[str, Any]:
    ranking: dict[str, Any] = {
        "similarity": hit.similarity,
        "score": hit.score,
        "rank": hit.rank,
    }
    return ranking | ({"explanation": hit.explanation} if explain else {})
