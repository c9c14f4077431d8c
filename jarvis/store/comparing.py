"""Memories beside each other: neighbours by vector, merging, and who was compared already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import sql

from jarvis.store.database import Connection
from jarvis.store.memories import COLUMNS, memory_of, memory_rows
from jarvis.store.rows import rows_by
from jarvis.types import Memory, WorkState


def neighbours(
    connection: Connection,
    user_id: int,
    memory_id: int,
    model_id: int,
    *,
    limit: int,
    min_cosine: float,
) -> list[tuple[Memory, float]]:
    """The active memories whose vectors are nearest to that of a memory, with the cosine.

    Exact, nearest first. Empty when the memory has no vector of that model.
    """
    with connection.cursor(row_factory=rows_by(_with_cosine)) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {}, cosine FROM memories JOIN ("
                " SELECT v.memory_id, 1 - (v.embedding <=> q.embedding) AS cosine"
                " FROM memory_vectors q JOIN memory_vectors v ON v.user_id = q.user_id"
                "  AND v.model_id = q.model_id AND v.memory_id <> q.memory_id"
                " JOIN memories o ON o.user_id = v.user_id AND o.id = v.memory_id"
                "  AND o.state = 'active'"
                " WHERE q.user_id = %(user)s AND q.memory_id = %(id)s AND q.model_id = %(model)s"
                "  AND q.embedding IS NOT NULL AND v.embedding IS NOT NULL"
                " ORDER BY v.embedding <=> q.embedding, v.memory_id LIMIT %(limit)s"
                ") AS near ON memories.id = near.memory_id"
                " WHERE memories.user_id = %(user)s AND cosine >= %(least)s"
                " ORDER BY cosine DESC, id"
            ).format(COLUMNS),
            {
                "user": user_id,
                "id": memory_id,
                "model": model_id,
                "limit": limit,
                "least": min_cosine,
            },
        ).fetchall()


def _with_cosine(row: dict[str, Any]) -> tuple[Memory, float]:
    cosine = float(row.pop("cosine"))
    return memory_of(row), cosine


def lock(tx: Connection, user_id: int, ids: Sequence[int]) -> list[Memory]:
    """Locks memories against change, always in the same order; returns those that exist."""
    with tx.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s AND id = ANY(%s) ORDER BY id FOR UPDATE"
            ).format(COLUMNS),
            (user_id, sorted(ids)),
        ).fetchall()


def merge(tx: Connection, user_id: int, *, into: int, other: Memory) -> None:
    """Gives a memory what its duplicate knew better; the duplicate is the caller's to delete."""
    tx.execute(
        "UPDATE memories SET importance = greatest(importance, %s),"
        " confidence = greatest(confidence, %s), valid_from = coalesce(valid_from, %s),"
        " category = CASE WHEN category = '' THEN %s ELSE category END, updated_at = now()"
        " WHERE user_id = %s AND id = %s",
        (
            other.importance,
            other.confidence,
            other.valid_from_at,
            other.category,
            user_id,
            into,
        ),
    )
    tx.execute(
        "UPDATE memories SET superseded_by = %s WHERE user_id = %s AND superseded_by = %s",
        (into, user_id, other.id),
    )


def checked(tx: Connection, user_id: int, memory_id: int, state: WorkState) -> None:
    """Notes that a memory was compared with the others."""
    tx.execute(
        "UPDATE memories SET check_state = %s WHERE user_id = %s AND id = %s"
        " AND check_state = 'pending'",
        (state, user_id, memory_id),
    )


def unchecked(tx: Connection, user_id: int, ids: Sequence[int]) -> set[int]:
    """Those of the ids that were not compared yet."""
    rows = tx.execute(
        "SELECT id FROM memories WHERE user_id = %s AND id = ANY(%s) AND check_state = 'pending'",
        (user_id, list(ids)),
    ).fetchall()
    return {row[0] for row in rows}


def next_unchecked(connection: Connection, user_id: int, limit: int) -> list[int]:
    """Memories with a vector that were not compared yet, oldest first."""
    rows = connection.execute(
        "SELECT m.id FROM memories m WHERE m.user_id = %s AND m.check_state = 'pending'"
        " AND m.state = 'active' AND EXISTS (SELECT 1 FROM memory_vectors v"
        "  WHERE v.user_id = m.user_id AND v.memory_id = m.id AND v.embedding IS NOT NULL)"
        " ORDER BY m.id LIMIT %s",
        (user_id, limit),
    ).fetchall()
    return [row[0] for row in rows]


def count_unchecked(connection: Connection, user_id: int) -> int:
    """How many memories with a vector were not compared yet."""
    return len(next_unchecked(connection, user_id, 1000))
