"""Memories: one fact a row.

Duplicates are impossible by the unique index on the hash of an active memory's content; that
hash is made in ``content_hash`` and nowhere else. Vectors and terms hang on a memory by a
cascading key and are written through ``jarvis.retrieval.index``.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import Cursor, sql
from psycopg.errors import UniqueViolation

from jarvis.store.database import Connection
from jarvis.types import Memory, MemorySource, MemoryState, MemoryType, WorkState

Sort = Literal["id", "created", "updated", "importance", "confidence", "accessed", "count"]

COLUMNS = sql.SQL(
    "id, type, category, subject, content, importance, confidence, state, source, session_id,"
    " message_id, superseded_by, valid_from AS valid_from_at, valid_to AS valid_to_at, created_at,"
    " updated_at, last_accessed_at, access_count, held_reason"
)
"""What a memory is made of, in a query."""


class SameContent(Exception):
    """Another active memory has that content already."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory that has no id yet. ``created_at`` None: now."""

    content: str
    type: MemoryType = MemoryType.FACT
    category: str = ""
    subject: str = "user"
    importance: float = 0.5
    confidence: float = 1.0
    state: MemoryState = MemoryState.ACTIVE
    source: MemorySource = MemorySource.MANUAL
    session_id: int | None = None
    message_id: int | None = None
    valid_from_at: datetime | None = None
    valid_to_at: datetime | None = None
    held_reason: str = ""
    check_state: WorkState = WorkState.PENDING
    created_at: datetime | None = None


def content_hash(content: str) -> bytes:
    """SHA-256 of the NFC, whitespace-collapsed, case-folded content."""
    folded = " ".join(unicodedata.normalize("NFC", content).split()).casefold()
    # Folding may take letters apart again (U+0130): without NFC once more, equal texts differ.
    return hashlib.sha256(unicodedata.normalize("NFC", folded).encode()).digest()


def memory_rows(cursor: Cursor[Any]) -> Callable[[Sequence[Any]], Memory]:
    """The row factory of a query for ``COLUMNS``."""
    names = [column.name for column in cursor.description or ()]

    def make(values: Sequence[Any]) -> Memory:
        return memory_of(dict(zip(names, values, strict=True)))

    return make


def memory_of(row: dict[str, Any]) -> Memory:
    """A memory out of the columns of its row."""
    row["type"] = MemoryType(row["type"])
    row["state"] = MemoryState(row["state"])
    row["source"] = MemorySource(row["source"])
    return Memory(**row)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except UniqueViolation as error:
        raise SameContent from error


def add(tx: Connection, user_id: int, new: NewMemory) -> tuple[Memory, bool]:
    """Stores a memory, or finds the one that says the same already.

    Returns:
        The memory, and whether it is new. Terms and vectors are the caller's to write.
    """
    digest = content_hash(new.content)
    existing = find_by_hash(tx, user_id, digest, new.state)
    if existing is not None:
        return existing, False
    with tx.cursor(row_factory=memory_rows) as cursor:
        created = cursor.execute(
            sql.SQL(
                "INSERT INTO memories (user_id, id, type, category, subject, content,"
                " content_hash, importance, confidence, state, source, session_id, message_id,"
                " valid_from, valid_to, held_reason, check_state, created_at, updated_at)"
                " VALUES (%(user)s, next_id(%(user)s, 'memory'), %(type)s, %(category)s,"
                " %(subject)s, %(content)s, %(hash)s, %(importance)s, %(confidence)s, %(state)s,"
                " %(source)s, %(session)s, %(message)s, %(from)s, %(to)s, %(reason)s, %(check)s,"
                " coalesce(%(created)s, now()), coalesce(%(created)s, now()))"
                " ON CONFLICT (user_id, content_hash) WHERE state = 'active' DO NOTHING"
                " RETURNING {}"
            ).format(COLUMNS),
            {
                "user": user_id,
                "type": new.type,
                "category": new.category,
                "subject": new.subject,
                "content": new.content,
                "hash": digest,
                "importance": new.importance,
                "confidence": new.confidence,
                "state": new.state,
                "source": new.source,
                "session": new.session_id,
                "message": new.message_id,
                "from": new.valid_from_at,
                "to": new.valid_to_at,
                "reason": new.held_reason,
                "check": new.check_state,
                "created": new.created_at,
            },
        ).fetchone()
    if created is not None:
        return created, True
    existing = find_by_hash(tx, user_id, digest, new.state)
    assert existing is not None  # noqa: S101 -- the conflict names it, and its row is visible now
    return existing, False


def find_by_hash(
    connection: Connection, user_id: int, digest: bytes, state: MemoryState = MemoryState.ACTIVE
) -> Memory | None:
    """The memory with that content in that state, or None."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s AND content_hash = %s AND state = %s"
                " ORDER BY id LIMIT 1"
            ).format(COLUMNS),
            (user_id, digest, state),
        ).fetchone()


def get(connection: Connection, user_id: int, memory_id: int) -> Memory | None:
    """One memory, or None."""
    found = get_many(connection, user_id, [memory_id])
    return found[0] if found else None


def get_many(connection: Connection, user_id: int, ids: Sequence[int]) -> list[Memory]:
    """The memories of these ids that exist, by id."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s AND id = ANY(%s) ORDER BY id"
            ).format(COLUMNS),
            (user_id, list(ids)),
        ).fetchall()


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
        " FROM memories WHERE user_id = %(user)s"
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
        "  (coalesce(valid_from, created_at) <= %(at)s"
        "   AND (valid_to IS NULL OR valid_to > %(at)s)))"
        ") AS m ORDER BY place {direction} LIMIT %(limit)s OFFSET %(offset)s"
    ).format(columns=COLUMNS, order=order, direction=sql.SQL("DESC") if reverse else sql.SQL("ASC"))
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


def of_message(connection: Connection, user_id: int, message_id: int) -> list[Memory]:
    """What was taken from a message, in any state."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM memories WHERE user_id = %s AND message_id = %s ORDER BY id"
            ).format(COLUMNS),
            (user_id, message_id),
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


def update(
    tx: Connection,
    user_id: int,
    memory_id: int,
    *,
    content: str | None = None,
    type: MemoryType | None = None,
    category: str | None = None,
    subject: str | None = None,
    importance: float | None = None,
    confidence: float | None = None,
    state: MemoryState | None = None,
    held_reason: str | None = None,
    valid_from_at: datetime | None = None,
    valid_to_at: datetime | None = None,
    source: MemorySource | None = None,
) -> Memory | None:
    """Changes what is given of a memory; None where there is none.

    Raises:
        SameContent: another active memory has that content. The transaction is over then.
    """
    with tx.cursor(row_factory=memory_rows) as cursor, _translated():
        return cursor.execute(
            sql.SQL(
                "UPDATE memories SET"
                " content = coalesce(%(content)s, content),"
                " content_hash = coalesce(%(hash)s, content_hash),"
                " check_state = CASE WHEN %(content)s::text IS NULL THEN check_state"
                "  ELSE 'pending' END,"
                " type = coalesce(%(type)s, type), category = coalesce(%(category)s, category),"
                " subject = coalesce(%(subject)s, subject),"
                " importance = coalesce(%(importance)s, importance),"
                " confidence = coalesce(%(confidence)s, confidence),"
                " state = coalesce(%(state)s, state),"
                " source = coalesce(%(source)s, source),"
                " held_reason = coalesce(%(reason)s, held_reason),"
                " valid_from = coalesce(%(from)s, valid_from),"
                " valid_to = coalesce(%(to)s, valid_to), updated_at = now()"
                " WHERE user_id = %(user)s AND id = %(id)s RETURNING {}"
            ).format(COLUMNS),
            {
                "user": user_id,
                "id": memory_id,
                "content": content,
                "hash": content_hash(content) if content is not None else None,
                "type": type,
                "category": category,
                "subject": subject,
                "importance": importance,
                "confidence": confidence,
                "state": state,
                "reason": held_reason,
                "from": valid_from_at,
                "to": valid_to_at,
                "source": source,
            },
        ).fetchone()


def supersede(
    tx: Connection, user_id: int, old_id: int, new_id: int | None, at: datetime
) -> Memory | None:
    """Closes an active memory at ``at``; ``new_id`` is the one that took its place.

    Returns:
        The closed memory; None when it is not there or not active any more.
    """
    with tx.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "UPDATE memories SET state = 'superseded', superseded_by = %s,"
                " valid_to = greatest(least(coalesce(valid_to, %s), %s),"
                "  coalesce(valid_from, created_at)),"
                " updated_at = now()"
                " WHERE user_id = %s AND id = %s AND state = 'active' RETURNING {}"
            ).format(COLUMNS),
            (new_id, at, at, user_id, old_id),
        ).fetchone()


def history(connection: Connection, user_id: int, memory_id: int) -> list[Memory]:
    """The memory with all that it took the place of and all that took its place, oldest first."""
    with connection.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
            sql.SQL(
                "WITH RECURSIVE chain (id) AS ("
                " SELECT id FROM memories WHERE user_id = %(user)s AND id = %(id)s"
                " UNION"
                " SELECT m.id FROM chain c JOIN memories m ON m.user_id = %(user)s"
                "  AND (m.superseded_by = c.id OR m.id ="
                "   (SELECT superseded_by FROM memories WHERE user_id = %(user)s AND id = c.id)))"
                " SELECT {} FROM memories WHERE user_id = %(user)s"
                " AND id IN (SELECT id FROM chain)"
                " ORDER BY coalesce(valid_from, created_at), id"
            ).format(COLUMNS),
            {"user": user_id, "id": memory_id},
        ).fetchall()


def delete(tx: Connection, user_id: int, ids: Sequence[int]) -> list[int]:
    """Deletes memories with their vectors and terms; returns the ids that were there.

    What they had closed stays closed, without a link to them.
    """
    rows = tx.execute(
        "DELETE FROM memories WHERE user_id = %s AND id = ANY(%s) RETURNING id",
        (user_id, list(ids)),
    ).fetchall()
    tx.execute(
        "UPDATE memories SET superseded_by = NULL WHERE user_id = %s AND superseded_by = ANY(%s)",
        (user_id, list(ids)),
    )
    return sorted(row[0] for row in rows)


def touch(tx: Connection, user_id: int, ids: Iterable[int]) -> None:
    """Counts that these memories were put before the model."""
    tx.execute(
        "WITH used AS (SELECT id FROM memories WHERE user_id = %s AND id = ANY(%s)"
        " ORDER BY id FOR NO KEY UPDATE)"
        " UPDATE memories m SET access_count = access_count + 1, last_accessed_at = now()"
        " FROM used WHERE m.user_id = %s AND m.id = used.id",
        (user_id, sorted(ids), user_id),
    )


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
