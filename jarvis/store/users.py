"""People. Each has rows of their own, and a key for the hashes of what they forgot."""

from __future__ import annotations

import os

import psycopg
from psycopg.rows import class_row

from jarvis.errors import NotFound
from jarvis.store.database import Connection
from jarvis.types import User


def find(connection: Connection, name: str) -> User | None:
    """The user of that name, or None."""
    with connection.cursor(row_factory=class_row(User)) as cursor:
        return cursor.execute(
            "SELECT user_id AS id, name FROM users WHERE name = %s", (name,)
        ).fetchone()


def ensure(connection: Connection, name: str) -> User:
    """The user of that name, created where there is none."""
    found = find(connection, name)
    if found is not None:
        return found
    try:
        connection.execute(
            "INSERT INTO users (name, tombstone_key) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
            (name, os.urandom(32)),
        )
    except psycopg.errors.InsufficientPrivilege as error:
        # Row-level security: to this role, others do not exist and cannot be made.
        raise NotFound(
            f"the database role {connection.info.user} may not use the user {name!r}",
            f"its owner can allow it: jarvis db allow {connection.info.user} {name}",
        ) from error
    created = find(connection, name)
    assert created is not None  # noqa: S101 -- inserted above, by us or by another process
    return created


def names(connection: Connection) -> list[str]:
    """Everybody's name, sorted."""
    return [row[0] for row in connection.execute("SELECT name FROM users ORDER BY name")]


def everyone(connection: Connection) -> list[User]:
    """Every user, in the order in which they came."""
    with connection.cursor(row_factory=class_row(User)) as cursor:
        return cursor.execute("SELECT user_id AS id, name FROM users ORDER BY user_id").fetchall()
