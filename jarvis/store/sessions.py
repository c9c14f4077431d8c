"""Conversations and their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Cursor
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from jarvis.errors import NotFound
from jarvis.store.database import Connection
from jarvis.store.message_keys import MessageTerms
from jarvis.types import FORGOTTEN, Message, MessageStatus, Role, Session, WorkState


def _message_row(cursor: Cursor[Any]) -> Callable[[Sequence[Any]], Message]:
    """Rows into messages, their words for role and status into members of the enumerations."""
    make = dict_row(cursor)

    def message_of(values: Sequence[Any]) -> Message:
        row = make(values)
        row["role"], row["status"] = Role(row["role"]), MessageStatus(row["status"])
        return Message(**row)

    return message_of


def create(connection: Connection, user_id: int, *, title: str = "", system: str = "") -> Session:
    """Starts a conversation."""
    row = connection.execute(
        "INSERT INTO sessions (user_id, id, title, title_by, system)"
        " VALUES (%s, next_id(%s, 'session'), %s, CASE WHEN %s = '' THEN '' ELSE 'user' END, %s)"
        " RETURNING id",
        (user_id, user_id, title, title, system),
    ).fetchone()
    assert row is not None  # noqa: S101 -- an INSERT with RETURNING returns its row
    found = get(connection, user_id, row[0])
    assert found is not None  # noqa: S101 -- inserted in this transaction
    return found


def get(connection: Connection, user_id: int, session_id: int) -> Session | None:
    """The conversation, or None."""
    with connection.cursor(row_factory=class_row(Session)) as cursor:
        return cursor.execute(
            "SELECT id, title, summary, created_at, updated_at, closed_at,"
            " (SELECT count(*) FROM messages m WHERE m.user_id = s.user_id"
            "  AND m.session_id = s.id AND m.role = 'user')::int AS turns"
            " FROM sessions s WHERE user_id = %s AND id = %s",
            (user_id, session_id),
        ).fetchone()


def latest(connection: Connection, user_id: int) -> Session | None:
    """The conversation that was used last, or None."""
    row = connection.execute(
        "SELECT id FROM sessions WHERE user_id = %s ORDER BY updated_at DESC, id DESC LIMIT 1",
        (user_id,),
    ).fetchone()
    return get(connection, user_id, row[0]) if row else None


def recent(
    connection: Connection, user_id: int, *, limit: int | None = None, offset: int = 0
) -> list[Session]:
    """Conversations, the one used last first."""
    with connection.cursor(row_factory=class_row(Session)) as cursor:
        return cursor.execute(
            "SELECT s.id, s.title, s.summary, s.created_at, s.updated_at, s.closed_at,"
            " count(m.id)::int AS turns"
            " FROM sessions s LEFT JOIN messages m"
            "  ON m.user_id = s.user_id AND m.session_id = s.id AND m.role = 'user'"
            " WHERE s.user_id = %s"
            " GROUP BY s.user_id, s.id ORDER BY s.updated_at DESC, s.id DESC LIMIT %s OFFSET %s",
            (user_id, limit, offset),
        ).fetchall()


_INSERT = """
    WITH used AS (
        UPDATE sessions SET updated_at = now(), closed_at = NULL
        WHERE user_id = %(user)s AND id = %(session)s RETURNING user_id, id
    ), added AS (
        INSERT INTO messages (user_id, id, session_id, role, content, reply_to, status, model,
                              details, tokens, timings, extract_state, barred)
        SELECT user_id, next_id(user_id, 'message'), id, %(role)s, %(content)s,
               %(reply_to)s::bigint, %(status)s, %(model)s, %(details)s, %(tokens)s, %(timings)s,
               %(extract)s, %(barred)s FROM used
        RETURNING user_id, id, session_id, role, content, status, created_at, model, tokens,
                  timings, barred
    )"""

_INSERT_TERMS = """, worded AS (
        INSERT INTO message_terms (user_id, message_id, language, counts, terms, weights, stale)
        SELECT user_id, id, %(language)s, %(counts)s::sparsevec, %(terms)s::int[],
               %(weights)s::sparsevec, true FROM added
    )"""

_ADDED = """
    SELECT id, session_id, role, content, status, created_at, model, tokens, timings, barred
    FROM added"""


def add_message(
    connection: Connection,
    user_id: int,
    session_id: int,
    role: Role,
    content: str,
    *,
    terms: MessageTerms | None = None,
    reply_to: int | None = None,
    status: MessageStatus = MessageStatus.COMPLETE,
    model: str = "",
    details: Mapping[str, Any] | None = None,
    tokens: Mapping[str, int] | None = None,
    timings: Mapping[str, float] | None = None,
    extract: WorkState = WorkState.SKIPPED,
    barred: bool = False,
) -> Message:
    """Adds a message at the end of a conversation, and marks the conversation as used.

    One statement: what is said is stored on the way to the answer.

    Args:
        terms: its words; without them they are the caller's to write, in the same transaction.

    Raises:
        NotFound: there is no such conversation.
    """
    with connection.cursor(row_factory=_message_row) as cursor:
        message = cursor.execute(
            _INSERT + (_INSERT_TERMS if terms else "") + _ADDED,
            {
                "user": user_id,
                "session": session_id,
                "role": role,
                "content": content,
                "reply_to": reply_to,
                "status": status,
                "model": model,
                "details": Jsonb(dict(details or {})),
                "tokens": Jsonb(dict(tokens or {})),
                "timings": Jsonb(dict(timings or {})),
                "extract": extract,
                "barred": barred,
                **(terms.parameters() if terms else {}),
            },
        ).fetchone()
    if message is None:
        raise NotFound(f"there is no session {session_id}", "jarvis session list")
    return message


@dataclass(frozen=True, slots=True)
class Talk:
    """What a turn needs of its conversation.

    ``messages`` are those after the ones that ``summary`` covers, oldest first; of what was
    forgotten only ``FORGOTTEN`` stands in them. ``system`` is the conversation's own system
    prompt, empty where it has none.
    """

    system: str = ""
    summary: str = ""
    messages: tuple[Message, ...] = ()


def talk(connection: Connection, user_id: int, session_id: int) -> Talk:
    """The conversation as a model may see it again."""
    opened = connection.execute(
        "SELECT system, summary, summary_message_id FROM sessions WHERE user_id = %s AND id = %s",
        (user_id, session_id),
    ).fetchone()
    if opened is None:
        return Talk()
    system, summary, covered = opened
    with connection.cursor(row_factory=_message_row) as cursor:
        rows = cursor.execute(
            "SELECT id, session_id, role, CASE WHEN barred AND details ? 'forgotten'"
            " THEN %s ELSE content END AS content, status, created_at, barred"
            " FROM messages WHERE user_id = %s AND session_id = %s AND id > %s ORDER BY id",
            (FORGOTTEN, user_id, session_id, covered or 0),
        ).fetchall()
    return Talk(system, summary, tuple(rows))


def messages(
    connection: Connection,
    user_id: int,
    session_id: int,
    *,
    after: int = 0,
    last: int | None = None,
) -> list[Message]:
    """The messages of a conversation with an id above ``after``, oldest first.

    Args:
        last: only so many, counted from the end.
    """
    with connection.cursor(row_factory=_message_row) as cursor:
        rows = cursor.execute(
            "SELECT id, session_id, role, content, status, created_at, model, tokens, timings,"
            " barred FROM messages WHERE user_id = %s AND session_id = %s AND id > %s"
            " ORDER BY id DESC LIMIT %s",
            (user_id, session_id, after, last),
        ).fetchall()
    rows.reverse()
    return rows


def message(connection: Connection, user_id: int, message_id: int) -> Message | None:
    """One message, or None."""
    with connection.cursor(row_factory=_message_row) as cursor:
        return cursor.execute(
            "SELECT id, session_id, role, content, status, created_at, model, tokens, timings,"
            " barred FROM messages WHERE user_id = %s AND id = %s",
            (user_id, message_id),
        ).fetchone()


def summary_mark(connection: Connection, user_id: int, session_id: int) -> int:
    """The id of the last message that the conversation's summary covers; 0 for none."""
    row = connection.execute(
        "SELECT summary_message_id FROM sessions WHERE user_id = %s AND id = %s",
        (user_id, session_id),
    ).fetchone()
    return int(row[0]) if row else 0


def unread(connection: Connection, user_id: int) -> int:
    """How many messages the worker has not looked at for facts."""
    row = connection.execute(
        "SELECT count(*) FROM messages WHERE user_id = %s AND extract_state = 'pending'",
        (user_id,),
    ).fetchone()
    return int(row[0]) if row else 0


def rename(connection: Connection, user_id: int, session_id: int, title: str, by: str) -> bool:
    """Gives a conversation a title; the worker never replaces one of the user's.

    Returns:
        whether there was such a conversation to rename.
    """
    cursor = connection.execute(
        "UPDATE sessions SET title = %s, title_by = %s WHERE user_id = %s AND id = %s"
        " AND (%s = 'user' OR title_by <> 'user')",
        (title, by, user_id, session_id, by),
    )
    return cursor.rowcount == 1


def persona(connection: Connection, user_id: int, session_id: int) -> str:
    """The system prompt that a conversation has of its own, "" for none."""
    row = connection.execute(
        "SELECT system FROM sessions WHERE user_id = %s AND id = %s", (user_id, session_id)
    ).fetchone()
    return str(row[0]) if row else ""


def set_persona(connection: Connection, user_id: int, session_id: int, system: str) -> bool:
    """Gives a conversation a system prompt of its own; returns whether there was one to change."""
    cursor = connection.execute(
        "UPDATE sessions SET system = %s WHERE user_id = %s AND id = %s",
        (system, user_id, session_id),
    )
    return cursor.rowcount == 1


def delete(connection: Connection, user_id: int, session_ids: Sequence[int]) -> int:
    """Deletes conversations with their messages; returns how many there were."""
    return connection.execute(
        "DELETE FROM sessions WHERE user_id = %s AND id = ANY(%s)", (user_id, list(session_ids))
    ).rowcount


def remove_last_turn(connection: Connection, user_id: int, session_id: int) -> str | None:
    """Removes the last message of the user and all after it; returns its words, None for none."""
    row = connection.execute(
        "SELECT id, content FROM messages WHERE user_id = %s AND session_id = %s AND role = 'user'"
        " ORDER BY id DESC LIMIT 1 FOR UPDATE",
        (user_id, session_id),
    ).fetchone()
    if row is None:
        return None
    connection.execute(
        "DELETE FROM messages WHERE user_id = %s AND session_id = %s AND id >= %s",
        (user_id, session_id, row[0]),
    )
    return str(row[1])
