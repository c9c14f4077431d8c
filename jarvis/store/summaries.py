"""Which conversations want a summary or a title, and where those are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg.rows import class_row

from jarvis.store.database import Connection
from jarvis.types import Message


@dataclass(frozen=True, slots=True)
class Outgrown:
    """A conversation whose messages from ``mark`` to ``upto`` no longer fit into a prompt."""

    session_id: int
    mark: int
    upto: int
    summary: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A conversation that is over and has no SUMMARY memory that covers all of it."""

    session_id: int
    title: str
    last: int
    began_at: datetime
    ended_at: datetime


def outgrown(connection: Connection, user_id: int, limit: int | None = None) -> list[Outgrown]:
    """Conversations whose last answer found the history too long (``details.summarise_to``)."""
    with connection.cursor(row_factory=class_row(Outgrown)) as cursor:
        return cursor.execute(
            "SELECT s.id AS session_id, s.summary_message_id AS mark, m.upto, s.summary"
            " FROM sessions s CROSS JOIN LATERAL ("
            "  SELECT coalesce((details ->> 'summarise_to')::bigint, 0) AS upto FROM messages"
            "  WHERE user_id = s.user_id AND session_id = s.id AND role = 'assistant'"
            "  ORDER BY id DESC LIMIT 1) m"
            " WHERE s.user_id = %s AND m.upto > s.summary_message_id"
            " ORDER BY s.updated_at DESC LIMIT %s",
            (user_id, limit),
        ).fetchall()


def readable(
    connection: Connection, user_id: int, session_id: int, *, after: int = 0, upto: int
) -> list[Message]:
    """Messages that a summary may be made of, oldest first: nothing barred or redacted."""
    with connection.cursor(row_factory=class_row(Message)) as cursor:
        return cursor.execute(
            "SELECT id, session_id, role, content, status, created_at, model, tokens, timings,"
            " barred FROM messages WHERE user_id = %s AND session_id = %s AND id > %s AND id <= %s"
            " AND NOT barred AND NOT redacted AND role <> 'tool'"
            " AND NOT EXISTS (SELECT 1 FROM messages q WHERE q.user_id = messages.user_id"
            "  AND q.id = messages.reply_to AND (q.barred OR q.redacted))"
            " ORDER BY id",
            (user_id, session_id, after, upto),
        ).fetchall()


def save(tx: Connection, user_id: int, before: Outgrown, text: str) -> bool:
    """Keeps a summary up to ``before.upto``; False when another was kept in the meantime."""
    return (
        tx.execute(
            "UPDATE sessions SET summary = %s, summary_message_id = %s"
            " WHERE user_id = %s AND id = %s AND summary_message_id = %s",
            (text, before.upto, user_id, before.session_id, before.mark),
        ).rowcount
        == 1
    )


def closed(
    connection: Connection,
    user_id: int,
    *,
    idle: timedelta,
    turns: int,
    limit: int | None = None,
) -> list[Closed]:
    """Conversations that were closed, or not used for ``idle``, with at least ``turns`` turns."""
    with connection.cursor(row_factory=class_row(Closed)) as cursor:
        return cursor.execute(
            "SELECT s.id AS session_id, s.title, max(m.id) AS last,"
            " min(m.created_at) AS began_at, max(m.created_at) AS ended_at"
            " FROM sessions s JOIN messages m ON m.user_id = s.user_id AND m.session_id = s.id"
            " WHERE s.user_id = %s AND (s.closed_at IS NOT NULL OR s.updated_at < now() - %s)"
            " GROUP BY s.user_id, s.id HAVING max(m.id) > s.closed_message_id"
            " AND count(*) FILTER (WHERE m.role = 'user') >= %s"
            " ORDER BY max(m.id) DESC LIMIT %s",
            (user_id, idle, turns, limit),
        ).fetchall()


def settle_closed(tx: Connection, user_id: int, session_id: int, last: int) -> bool:
    """Notes that the SUMMARY memory covers a conversation up to ``last``; False: it did."""
    return (
        tx.execute(
            "UPDATE sessions SET closed_message_id = %s"
            " WHERE user_id = %s AND id = %s AND closed_message_id < %s",
            (last, user_id, session_id, last),
        ).rowcount
        == 1
    )


def former(connection: Connection, user_id: int, session_id: int) -> list[int]:
    """The active SUMMARY memories of a conversation."""
    rows = connection.execute(
        "SELECT id FROM memories WHERE user_id = %s AND session_id = %s AND type = 'SUMMARY'"
        " AND state = 'active' ORDER BY id",
        (user_id, session_id),
    ).fetchall()
    return [int(row[0]) for row in rows]


def close(tx: Connection, user_id: int, session_id: int) -> bool:
    """Marks a conversation as over; the next message in it opens it again."""
    return (
        tx.execute(
            "UPDATE sessions SET closed_at = now()"
            " WHERE user_id = %s AND id = %s AND closed_at IS NULL",
            (user_id, session_id),
        ).rowcount
        == 1
    )


def untitled(connection: Connection, user_id: int, limit: int | None = None) -> list[int]:
    """Conversations with an answer and without a title, the latest first."""
    rows = connection.execute(
        "SELECT s.id FROM sessions s WHERE s.user_id = %s AND s.title_by = '' AND s.title = ''"
        " AND EXISTS (SELECT 1 FROM messages m WHERE m.user_id = s.user_id"
        "  AND m.session_id = s.id AND m.role = 'assistant')"
        " ORDER BY s.updated_at DESC LIMIT %s",
        (user_id, limit),
    ).fetchall()
    return [int(row[0]) for row in rows]
