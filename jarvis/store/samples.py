"""Rows for benchmarks: many at once, of a user who is deleted afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from psycopg import sql

from jarvis.store.database import Connection
from jarvis.store.memories import content_hash


def add_memories(tx: Connection, user_id: int, contents: Sequence[str]) -> None:
    """Facts with the ids 1 …; nothing is left to check with them."""
    tx.cursor().executemany(
        "INSERT INTO memories (user_id, id, type, content, content_hash, importance, confidence,"
        " source, check_state) VALUES (%s, %s, 'FACT', %s, %s, 0.5, 1.0, 'manual', 'skipped')",
        [
            (user_id, number, content, content_hash(content))
            for number, content in enumerate(contents, 1)
        ],
    )


def add_turns(
    tx: Connection, user_id: int, texts: Sequence[str], session_length: int, at: datetime
) -> None:
    """Messages with the ids 1 …, user and assistant in turn, in sessions of equal length."""
    sessions = -(-len(texts) // session_length)
    tx.cursor().executemany(
        "INSERT INTO sessions (user_id, id, title, title_by, created_at, updated_at,"
        " closed_message_id) VALUES (%s, %s, %s, 'worker', %s, %s, %s)",
        [
            (user_id, number, f"sample {number}", at, at, min(number * session_length, len(texts)))
            for number in range(1, sessions + 1)
        ],
    )
    tx.cursor().executemany(
        "INSERT INTO messages (user_id, id, session_id, role, content, reply_to, created_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [
            (
                user_id,
                index + 1,
                index // session_length + 1,
                "assistant" if index % 2 else "user",
                text,
                index if index % 2 else None,
                at,
            )
            for index, text in enumerate(texts)
        ],
    )


def add_chunks(tx: Connection, user_id: int, texts: Sequence[str], per_document: int) -> None:
    """Passages with the ids 1 …, in documents of equal length."""
    documents = -(-len(texts) // per_document)
    tx.cursor().executemany(
        "INSERT INTO documents (user_id, id, name, sha256, media_type)"
        " VALUES (%s, %s, %s, %s, 'text/plain')",
        [
            (user_id, number, f"sample-{number}.txt", number.to_bytes(32))
            for number in range(1, documents + 1)
        ],
    )
    tx.cursor().executemany(
        "INSERT INTO chunks (user_id, id, document_id, ordinal, start_char, end_char, tokens,"
        " content) VALUES (%s, %s, %s, %s, 0, %s, %s, %s)",
        [
            (
                user_id,
                index + 1,
                index // per_document + 1,
                index % per_document,
                len(text),
                len(text) // 4,
                text,
            )
            for index, text in enumerate(texts)
        ],
    )


def set_counters(tx: Connection, user_id: int) -> None:
    """Lets further ids follow those of the rows that are there."""
    for kind, table in (
        ("memory", "memories"),
        ("session", "sessions"),
        ("message", "messages"),
        ("document", "documents"),
        ("chunk", "chunks"),
    ):
        tx.execute(
            sql.SQL(
                "INSERT INTO counters (user_id, kind, last_id)"
                " SELECT %s, %s, coalesce(max(id), 0) FROM {} WHERE user_id = %s"
                " ON CONFLICT (user_id, kind) DO UPDATE SET last_id = excluded.last_id"
            ).format(sql.Identifier(table)),
            (user_id, kind, user_id),
        )


def settle(owner: Connection) -> None:
    """Does at once what autovacuum would do beside the measurement, a minute after such a load.

    Args:
        owner: a connection in autocommit; a table of another role's is passed over.
    """
    owner.execute(
        "VACUUM (ANALYZE) sessions, messages, memories, chunks, memory_terms, message_terms,"
        " chunk_terms, memory_vectors, message_vectors, chunk_vectors"
    )


def remove_user(tx: Connection, user_id: int) -> None:
    """Deletes a user of a benchmark with everything."""
    tx.execute("DELETE FROM users WHERE user_id = %s", (user_id,))


def remove_memories(tx: Connection, user_id: int) -> int:
    """Deletes the memories of a user of a benchmark; returns how many there were."""
    return tx.execute("DELETE FROM memories WHERE user_id = %s", (user_id,)).rowcount
