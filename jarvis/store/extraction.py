"""Where the reading of messages for facts stands, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from jarvis.store.database import Connection
from jarvis.types import WorkState


@dataclass(frozen=True, slots=True)
class Unread:
    """A message of the user's that waits.

    ``before`` is their message before it, or "". ``ruled``: what the rules find in it is stored
    already, and only the model was not heard yet.
    """

    id: int
    session_id: int
    content: str
    created_at: datetime
    attempts: int
    ruled: bool
    before: str


def next_unread(connection: Connection, user_id: int, limit: int) -> list[Unread]:
    """The messages that are due, oldest first."""
    with connection.cursor(row_factory=class_row(Unread)) as cursor:
        return cursor.execute(
            "SELECT m.id, m.session_id, m.content, m.created_at, m.extract_attempts AS attempts,"
            " m.details ? 'ruled' AS ruled,"
            " coalesce((SELECT p.content FROM messages p WHERE p.user_id = m.user_id"
            "  AND p.session_id = m.session_id AND p.id < m.id AND p.role = 'user'"
            "  AND NOT p.barred ORDER BY p.id DESC LIMIT 1), '') AS before"
            " FROM messages m WHERE m.user_id = %s AND m.extract_state = 'pending'"
            " AND m.extract_after <= now() ORDER BY m.id LIMIT %s",
            (user_id, limit),
        ).fetchall()


def count_due(connection: Connection, user_id: int) -> int:
    """How many messages could be read now."""
    row = connection.execute(
        "SELECT count(*) FROM messages WHERE user_id = %s AND extract_state = 'pending'"
        " AND extract_after <= now()",
        (user_id,),
    ).fetchone()
    return int(row[0]) if row else 0


def take(tx: Connection, user_id: int, message_id: int) -> bool:
    """Locks a message that still waits; False when somebody settled it meanwhile."""
    return (
        tx.execute(
            "SELECT 1 FROM messages WHERE user_id = %s AND id = %s"
            " AND extract_state = 'pending' AND NOT barred FOR UPDATE",
            (user_id, message_id),
        ).fetchone()
        is not None
    )


def settle(tx: Connection, user_id: int, message_id: int, state: WorkState) -> None:
    """Marks a message as read (or as never to be read)."""
    tx.execute(
        "UPDATE messages SET extract_state = %s, extract_error = '', details = details - 'ruled'"
        " WHERE user_id = %s AND id = %s AND extract_state = 'pending'",
        (state, user_id, message_id),
    )


def mark_ruled(tx: Connection, user_id: int, message_id: int) -> None:
    """Notes that the facts that need no model are stored; the message still waits."""
    tx.execute(
        "UPDATE messages SET details = details || '{\"ruled\": true}'"
        " WHERE user_id = %s AND id = %s",
        (user_id, message_id),
    )


def postpone(
    tx: Connection, user_id: int, message_id: int, error: str, *, wait_s: float, max_attempts: int
) -> None:
    """Notes a failure: tried again after the wait, which doubles, or given up."""
    tx.execute(
        "UPDATE messages SET extract_attempts = extract_attempts + 1, extract_error = %s,"
        " extract_after = now() + make_interval(secs => %s * 2 ^ least(extract_attempts, 10)),"
        " extract_state = CASE WHEN extract_attempts + 1 >= %s THEN 'failed' ELSE 'pending' END"
        " WHERE user_id = %s AND id = %s AND extract_state = 'pending'",
        (error, wait_s, max_attempts, user_id, message_id),
    )


def retry_failed(tx: Connection, user_id: int) -> int:
    """Puts what was given up, or waits for its next attempt, back to the front."""
    return tx.execute(
        "UPDATE messages SET extract_state = 'pending', extract_attempts = 0,"
        " extract_after = now() WHERE user_id = %s AND (extract_state = 'failed'"
        " OR (extract_state = 'pending' AND extract_after > now()))",
        (user_id,),
    ).rowcount


def ask_again(tx: Connection, user_id: int, session_ids: Sequence[int] | None = None) -> int:
    """Has every message of the user's that may be read read once more."""
    return tx.execute(
        "UPDATE messages SET extract_state = 'pending', extract_attempts = 0,"
        " extract_after = now() WHERE user_id = %s AND role = 'user' AND NOT barred"
        " AND (%s::bigint[] IS NULL OR session_id = ANY(%s))"
        " AND extract_state IN ('done', 'skipped', 'failed')",
        (
            user_id,
            None if session_ids is None else list(session_ids),
            None if session_ids is None else list(session_ids),
        ),
    ).rowcount


def states(connection: Connection, user_id: int) -> dict[str, int]:
    """How many of the user's messages are in which state."""
    rows = connection.execute(
        "SELECT extract_state, count(*) FROM messages WHERE user_id = %s AND role = 'user'"
        " GROUP BY 1 ORDER BY 1",
        (user_id,),
    ).fetchall()
    return {row[0]: row[1] for row in rows}


def failures(connection: Connection, user_id: int, limit: int = 5) -> list[tuple[int, str]]:
    """The last messages that were given up, with why."""
    rows = connection.execute(
        "SELECT id, extract_error FROM messages WHERE user_id = %s AND extract_state = 'failed'"
        " ORDER BY id DESC LIMIT %s",
        (user_id, limit),
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def bar(tx: Connection, user_id: int, message_ids: Sequence[int]) -> list[int]:
    """Keeps messages out of searches, prompts of other sessions and extraction, for good.

    Returns:
        The ids that were not barred before. Their terms and vectors are the caller's to remove
        (``jarvis.retrieval.index.remove``), in the same transaction and before this.
    """
    rows = tx.execute(
        "UPDATE messages SET barred = true, extract_state = 'barred', extract_error = '',"
        " details = details - 'ruled'"
        " WHERE user_id = %s AND id = ANY(%s) AND NOT barred RETURNING id",
        (user_id, list(message_ids)),
    ).fetchall()
    return sorted(row[0] for row in rows)
