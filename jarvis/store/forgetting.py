"""What has to be looked at, counted and cleared when something is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psycopg import sql

from jarvis.store.database import Connection

_HANGING = ("memory_vectors", "memory_terms")
_HANGING_ON_MESSAGES = ("message_vectors", "message_terms")


def twins(connection: Connection, user_id: int, digests: Sequence[bytes]) -> list[int]:
    """Every memory with that content, in any state."""
    rows = connection.execute(
        "SELECT id FROM memories WHERE user_id = %s AND content_hash = ANY(%s) ORDER BY id",
        (user_id, list(digests)),
    ).fetchall()
    return [row[0] for row in rows]


def count_rows(connection: Connection, user_id: int, ids: Sequence[int]) -> dict[str, int]:
    """How many rows hang on these memories, by table."""
    return _count(connection, user_id, _HANGING, "memory_id", ids)


def count_message_rows(connection: Connection, user_id: int, ids: Sequence[int]) -> dict[str, int]:
    """How many rows hang on these messages, by table."""
    return _count(connection, user_id, _HANGING_ON_MESSAGES, "message_id", ids)


def _count(
    connection: Connection, user_id: int, tables: Iterable[str], column: str, ids: Sequence[int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in tables:
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE user_id = %s AND {} = ANY(%s)").format(
                sql.Identifier(table), sql.Identifier(column)
            ),
            (user_id, list(ids)),
        ).fetchone()
        found[table] = int(row[0]) if row else 0
    return found


def existing_messages(connection: Connection, user_id: int, ids: Sequence[int]) -> list[int]:
    """Those of the ids that are messages."""
    rows = connection.execute(
        "SELECT id FROM messages WHERE user_id = %s AND id = ANY(%s) ORDER BY id",
        (user_id, list(ids)),
    ).fetchall()
    return [row[0] for row in rows]


def messages_with(
    connection: Connection, user_id: int, needle: str
) -> list[tuple[int, str, int | None]]:
    """Messages whose text holds ``needle``, whatever its case: id, text, what it replies to."""
    rows = connection.execute(
        "SELECT id, content, reply_to FROM messages WHERE user_id = %s"
        " AND strpos(lower(content), lower(%s)) > 0 ORDER BY id",
        (user_id, needle),
    ).fetchall()
    return [(row[0], row[1], row[2]) for row in rows]


def texts_with(connection: Connection, user_id: int, needle: str) -> list[tuple[str, str]]:
    """Messages that are not barred, summaries and titles that hold ``needle``."""
    rows = connection.execute(
        "SELECT 'message ' || id, content FROM messages WHERE user_id = %(user)s"
        "  AND NOT barred AND strpos(lower(content), lower(%(needle)s)) > 0"
        " UNION ALL SELECT 'the summary of session ' || id, summary FROM sessions"
        "  WHERE user_id = %(user)s AND strpos(lower(summary), lower(%(needle)s)) > 0"
        " UNION ALL SELECT 'the title of session ' || id, title FROM sessions"
        "  WHERE user_id = %(user)s AND title_by <> 'user'"
        "  AND strpos(lower(title), lower(%(needle)s)) > 0",
        {"user": user_id, "needle": needle},
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def answers_given(
    connection: Connection, user_id: int, document_ids: Sequence[int], chunk_ids: Sequence[int]
) -> list[int]:
    """The answers before which passages of these documents stood."""
    rows = connection.execute(
        """
        SELECT id FROM messages WHERE user_id = %(user)s AND role = 'assistant' AND (
            EXISTS (SELECT FROM jsonb_array_elements(coalesce(details -> 'documents', '[]')) AS d
                    WHERE d::bigint = ANY(%(documents)s))
            OR EXISTS (SELECT FROM jsonb_array_elements(coalesce(details -> 'chunks', '[]')) AS c
                       WHERE c::bigint = ANY(%(chunks)s))
        ) ORDER BY id
        """,
        {"user": user_id, "documents": list(document_ids), "chunks": list(chunk_ids)},
    ).fetchall()
    return [row[0] for row in rows]


def sessions_of(connection: Connection, user_id: int, message_ids: Sequence[int]) -> list[int]:
    """The sessions of these messages."""
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM messages WHERE user_id = %s AND id = ANY(%s)"
        " ORDER BY session_id",
        (user_id, list(message_ids)),
    ).fetchall()
    return [row[0] for row in rows]


def worker_titles(connection: Connection, user_id: int) -> list[tuple[int, str]]:
    """The titles that nobody gave by hand."""
    rows = connection.execute(
        "SELECT id, title FROM sessions WHERE user_id = %s AND title_by = 'worker'", (user_id,)
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def clear_titles(tx: Connection, user_id: int, session_ids: Sequence[int]) -> int:
    """Takes the worker's titles away: it writes new ones."""
    return tx.execute(
        "UPDATE sessions SET title = '', title_by = '' WHERE user_id = %s AND id = ANY(%s)"
        " AND title_by = 'worker'",
        (user_id, list(session_ids)),
    ).rowcount


def clear_summaries(tx: Connection, user_id: int, session_ids: Sequence[int]) -> int:
    """Takes the summaries away: the worker writes new ones from what is not barred."""
    return tx.execute(
        "UPDATE sessions SET summary = '', summary_message_id = 0, closed_message_id = 0"
        " WHERE user_id = %s AND id = ANY(%s) AND (summary <> '' OR closed_message_id > 0)",
        (user_id, list(session_ids)),
    ).rowcount


def summary_memories(connection: Connection, user_id: int, session_ids: Sequence[int]) -> list[int]:
    """Memories that sum one of these sessions up."""
    rows = connection.execute(
        "SELECT id FROM memories WHERE user_id = %s AND type = 'SUMMARY'"
        " AND session_id = ANY(%s) ORDER BY id",
        (user_id, list(session_ids)),
    ).fetchall()
    return [row[0] for row in rows]


def mark_forgotten(tx: Connection, user_id: int, message_ids: Sequence[int]) -> None:
    """Notes that messages say something forgotten: no prompt shows their words any more."""
    tx.execute(
        "UPDATE messages SET details = details || '{\"forgotten\": true}'"
        " WHERE user_id = %s AND id = ANY(%s)",
        (user_id, list(message_ids)),
    )


def redact(tx: Connection, user_id: int, message_ids: Sequence[int], words: str) -> list[int]:
    """Replaces the words of messages for good; returns whose were."""
    rows = tx.execute(
        "UPDATE messages SET content = %s, redacted = true, details = details - 'tools'"
        " WHERE user_id = %s AND id = ANY(%s) AND NOT redacted RETURNING id",
        (words, user_id, list(message_ids)),
    ).fetchall()
    return sorted(row[0] for row in rows)
