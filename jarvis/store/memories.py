"""Memories: one fact a row.

Duplicates are impossible by the unique index on the hash of an active memory's content; that
hash is made in ``content_hash`` and nowhere else. Vectors and terms hang on a memory by a
cascading key and are written through ``jarvis.retrieval.index``.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql
from psycopg.errors import UniqueViolation

from jarvis.store.database import Connection
from jarvis.store.rows import rows_by
from jarvis.types import Memory, MemorySource, MemoryState, MemoryType, WorkState

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


def memory_of(row: dict[str, Any]) -> Memory:
    """A memory out of the columns of its row."""
    row["type"] = MemoryType(row["type"])
    row["state"] = MemoryState(row["state"])
    row["source"] = MemorySource(row["source"])
    return Memory(**row)


memory_rows = rows_by(memory_of)
"""The row factory of a query for ``COLUMNS``."""


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
    while True:
        existing = find_by_hash(tx, user_id, digest, new.state)
        if existing is not None:
            return existing, False
        created = _insert(tx, user_id, new, digest)
        if created is not None:
            return created, True
        # Somebody else stored it between the two statements: its row is visible now, unless it
        # was forgotten again meanwhile.


def _insert(tx: Connection, user_id: int, new: NewMemory, digest: bytes) -> Memory | None:
    """Stores a memory; None when an active one has that content."""
    with tx.cursor(row_factory=memory_rows) as cursor:
        return cursor.execute(
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
                " valid_to = greatest(least(coalesce(valid_to, %s), %s), valid_from),"
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
