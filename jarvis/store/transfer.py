"""Rows of one user as JSON and back: every column but whose they are.

Postgres writes and reads the JSON itself, so a column that a later migration adds is exported
without a change here. What can be made anew (vectors, terms, hashes) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from jarvis.store.database import Connection

Table = Literal[
    "sessions", "messages", "memories", "documents", "document_paths", "chunks", "tombstones"
]

_ORDER: Mapping[str, sql.Composable] = {
    "document_paths": sql.SQL("path"),
    "tombstones": sql.SQL("hash"),
}
_LEFT_OUT: Mapping[str, list[str]] = {"memories": ["content_hash", "check_state"]}
COUNTERS: Mapping[str, str] = {
    "sessions": "session",
    "messages": "message",
    "memories": "memory",
    "documents": "document",
    "chunks": "chunk",
}
"""The counter that gives the ids of a table."""


class BadRow(Exception):
    """A row that the database refuses; the text says why, without a value."""


def rows(connection: Connection, user_id: int, table: Table) -> Iterator[dict[str, Any]]:
    """The user's rows, always in the same order."""
    query = sql.SQL(
        "SELECT to_jsonb(t) - 'user_id' - %s::text[] FROM {} t WHERE user_id = %s ORDER BY {}"
    ).format(sql.Identifier(table), _ORDER.get(table, sql.SQL("id")))
    for row in connection.execute(query, (_LEFT_OUT.get(table, []), user_id)):
        yield row[0]


def one_moment(tx: Connection) -> None:
    """Has every statement of a new transaction see the same moment, and give every digit.

    Behind a pooler the settings of the role would hold: a rounded number is another number, and
    a date in another style is read by no other server.
    """
    tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    tx.execute("SET LOCAL extra_float_digits = 1")
    tx.execute("SET LOCAL datestyle = 'ISO'")
    tx.execute("SET LOCAL bytea_output = 'hex'")


def insert(tx: Connection, user_id: int, table: Table, row: Mapping[str, Any]) -> bool:
    """Inserts a row as ``rows`` gave it; columns that it lacks get their defaults.

    Returns:
        False when there is such a row already.

    Raises:
        BadRow: the database refuses it. The transaction goes on.
    """
    known = _columns(tx, table)
    given = {name: value for name, value in row.items() if name in known and value is not None}
    given["user_id"] = user_id
    names = sorted(given)
    query = sql.SQL(
        "INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::{table}, %s)"
        " ON CONFLICT DO NOTHING"
    ).format(table=sql.Identifier(table), names=sql.SQL(", ").join(map(sql.Identifier, names)))
    try:
        with tx.transaction():
            return tx.execute(query, (Jsonb(given),)).rowcount == 1
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise BadRow(error.diag.message_primary or type(error).__name__) from error


_known: dict[str, frozenset[str]] = {}


def _columns(tx: Connection, table: str) -> frozenset[str]:
    if table not in _known:
        cursor = tx.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(table)))
        _known[table] = frozenset(column.name for column in cursor.description or ())
    return _known[table]


def find(tx: Connection, user_id: int, table: Table, row_id: int) -> dict[str, Any] | None:
    """One row, as ``rows`` gives it."""
    query = sql.SQL(
        "SELECT to_jsonb(t) - 'user_id' - %s::text[] FROM {} t WHERE user_id = %s AND id = %s"
    ).format(sql.Identifier(table))
    found = tx.execute(query, (_LEFT_OUT.get(table, []), user_id, row_id)).fetchone()
    return found[0] if found else None


def document_with(tx: Connection, user_id: int, sha256: str) -> int | None:
    """The document with that content (``\\x…``, as ``rows`` gives it)."""
    try:
        with tx.transaction():
            row = tx.execute(
                "SELECT id FROM documents WHERE user_id = %s AND sha256 = %s::bytea",
                (user_id, sha256),
            ).fetchone()
    except psycopg.DataError as error:
        raise BadRow(error.diag.message_primary or "bad hash") from error
    return int(row[0]) if row else None


def next_id(tx: Connection, user_id: int, table: Table) -> int:
    """Takes the next id of a table."""
    row = tx.execute("SELECT next_id(%s, %s)", (user_id, COUNTERS[table])).fetchone()
    assert row is not None  # noqa: S101 -- the function returns one
    return int(row[0])


def raise_counter(tx: Connection, user_id: int, table: Table, used: int) -> None:
    """Has ids go on after ``used``; a counter is never lowered."""
    tx.execute(
        "INSERT INTO counters AS c (user_id, kind, last_id) VALUES (%s, %s, %s)"
        " ON CONFLICT (user_id, kind) DO UPDATE"
        " SET last_id = greatest(c.last_id, excluded.last_id)",
        (user_id, COUNTERS[table], used),
    )


def tombstone_key(connection: Connection, user_id: int) -> str:
    """The key of the user's tombstones, in hexadecimal digits."""
    row = connection.execute(
        "SELECT encode(tombstone_key, 'hex') FROM users WHERE user_id = %s", (user_id,)
    ).fetchone()
    return str(row[0]) if row else ""


def adopt_tombstone_key(tx: Connection, user_id: int, key: str) -> bool:
    """Takes over the key of an export; only where no tombstone depends on another one."""
    try:
        with tx.transaction():
            return (
                tx.execute(
                    "UPDATE users SET tombstone_key = decode(%s, 'hex') WHERE user_id = %s"
                    " AND (tombstone_key = decode(%s, 'hex') OR (length(%s) = 64 AND NOT EXISTS"
                    "  (SELECT 1 FROM tombstones WHERE user_id = %s)))",
                    (key, user_id, key, key, user_id),
                ).rowcount
                == 1
            )
    except psycopg.DataError as error:
        raise BadRow("the tombstone key is none") from error
