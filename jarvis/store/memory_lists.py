"""Memories as lists: filtered, sorted, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from psycopg import sql

from jarvis.store.database import Connection
from jarvis.store.memories import COLUMNS, memory_rows
from jarvis.store.search_filters import HOLDS_FROM
from jarvis.types import Memory, MemorySource, MemoryState, MemoryType

_ORDERS: Mapping[str, sql.SQL] = {
    "id": sql.SQL("id"),
    "created": sql.SQL("created_at DESC, id DESC"),
    "updated": sql.SQL("updated_at DESC, id DESC"),
    "importance": sql.SQL("importance DESC, id"),
    "confidence": sql.SQL("confidence DESC, id"),
    "accessed": sql.SQL("last_accessed_at DESC NULLS LAST, id"),
    "count": sql.SQL("access_count DESC, id"),
}
SORTS: tuple[str, ...] = tuple(_ORDERS)


def select(
    connection: Connection,
    user_id: int,
    *,
    states: Sequence[MemoryState] = (MemoryState.ACTIVE,),
    types: Sequence[MemoryType] = (),
    category: str | None = None,
    subject: str | None = None,
    source: MemorySource | None = None,
    min_importance: float | None = None,
    min_confidence: float | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    at: datetime | None = None,
    sort: str = "id",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> list[Memory]:
    """Memories that pass every filter.

    Args:
        states: empty: all.
        at: only what held at that time, superseded ones included.
        since, until: by ``created_at``.
        sort: a key of ``SORTS``; newest, largest or latest first, ``id`` ascending.
    """
    wanted = list(states)
    if at is not None and wanted == [MemoryState.ACTIVE]:
        wanted.append(MemoryState.SUPERSEDED)
    order = _ORDERS[sort]
    query = sql.SQL(
        "SELECT {columns} FROM (SELECT *, row_number() OVER (ORDER BY {order}) AS place"
        " FROM memories o WHERE user_id = %(user)s"
        " AND (%(states)s::text[] = '{{}}' OR state = ANY(%(states)s))"
        " AND (%(types)s::text[] = '{{}}' OR type = ANY(%(types)s))"
        " AND (%(category)s::text IS NULL OR lower(category) = lower(%(category)s))"
        " AND (%(subject)s::text IS NULL OR lower(subject) = lower(%(subject)s))"
        " AND (%(source)s::text IS NULL OR source = %(source)s)"
        " AND (%(importance)s::real IS NULL OR importance >= %(importance)s)"
        " AND (%(confidence)s::real IS NULL OR confidence >= %(confidence)s)"
        " AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)"
        " AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s)"
        " AND (%(at)s::timestamptz IS NULL OR"
        "  ({start} <= %(at)s"
        "   AND (valid_to IS NULL OR valid_to > %(at)s)))"
        ") AS m ORDER BY place {direction} LIMIT %(limit)s OFFSET %(offset)s"
    ).format(
        start=sql.SQL(HOLDS_FROM),
        columns=COLUMNS,
        order=order,
        direction=sql.SQL("DESC") if reverse else sql.SQL("ASC"),
    )
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            query,
            {
                "user": user_id,
                "states": wanted,
                "types": list(types),
                "category": category,
                "subject": subject,
                "source": source,
                "importance": min_importance,
                "confidence": min_confidence,
                "since": since,
                "until": until,
                "at": at,
                "limit": limit,
                "offset": offset,
            },
        ).fetchall()


def most_important(connection: Connection, user_id: int, limit: int) -> list[Memory]:
    """The active memories that matter most: the fallback when nothing was found."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s AND state = 'active'"
                " AND type <> 'SUMMARY' ORDER BY importance DESC, id LIMIT %s"
            ).format(COLUMNS),
            (user_id, limit),
        ).fetchall()


def with_text(connection: Connection, user_id: int, needle: str) -> list[Memory]:
    """Memories of any state whose content holds ``needle``, whatever its case."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s"
                " AND strpos(lower(content), lower(%s)) > 0 ORDER BY id"
            ).format(COLUMNS),
            (user_id, needle),
        ).fetchall()


def counts(connection: Connection, user_id: int) -> dict[str, dict[str, int]]:
    """How many memories there are, by state, type, category and source."""
    found: dict[str, dict[str, int]] = {}
    for name in ("state", "type", "category", "source"):
        rows = connection.execute(
            sql.SQL(
                "SELECT {0}, count(*) FROM memories WHERE user_id = %s"
                " AND (state = 'active' OR {1}) GROUP BY 1 ORDER BY 2 DESC, 1"
            ).format(sql.Identifier(name), sql.Literal(name == "state")),
            (user_id,),
        ).fetchall()
        found[name] = {row[0]: row[1] for row in rows}
    return found
