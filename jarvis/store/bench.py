"""What only the recall benchmark asks of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from psycopg import sql

from jarvis.store.database import Connection
from jarvis.store.vectors import Kind, compose, vector_text
from jarvis.types import Vector


def add_conversation(
    tx: Connection, user_id: int, turns: Sequence[tuple[int, str, datetime]]
) -> None:
    """Stores (session, text, time) as a user's messages with the ids 1 …, as already read."""
    sessions = {session: at for session, _, at in reversed(turns)}
    tx.cursor().executemany(
        "INSERT INTO sessions (user_id, id, title, title_by, created_at, updated_at)"
        " VALUES (%s, %s, 'sample', 'worker', %s, %s)",
        [(user_id, session, at, at) for session, at in sorted(sessions.items())],
    )
    tx.cursor().executemany(
        "INSERT INTO messages (user_id, id, session_id, role, content, extract_state, created_at)"
        " VALUES (%s, %s, %s, 'user', %s, 'done', %s)",
        [
            (user_id, number, session, text, at)
            for number, (session, text, at) in enumerate(turns, 1)
        ],
    )


def link_facts(tx: Connection, user_id: int, sources: Mapping[int, int]) -> None:
    """Says of memories which messages they were taken from."""
    tx.execute(
        "UPDATE memories m SET message_id = s.message"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS s (memory, message)"
        " WHERE m.user_id = %s AND m.id = s.memory",
        (list(sources), list(sources.values()), user_id),
    )


def nearest(
    connection: Connection, kind: Kind, user_id: int, model_id: int, vector: Vector, limit: int
) -> list[int]:
    """The rows whose own vectors are nearest, compared one by one."""
    rows = connection.execute(
        compose(
            kind,
            "SELECT {owner_id} FROM {vectors} WHERE user_id = %s AND model_id = %s"
            " AND embedding IS NOT NULL {own} ORDER BY embedding <=> %s::vector LIMIT %s",
            own=sql.SQL("AND key = 0" if kind == "turn" else ""),
        ),
        (user_id, model_id, vector_text(vector), limit),
    )
    return [row[0] for row in rows]
