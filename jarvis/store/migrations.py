"""The schema: ordered files in ``sql/``, each applied once, in a transaction, under a lock.

Two processes that start at once do not collide: an advisory lock lets one migrate while the
other waits. The common case, nothing to do, is one query.
"""

from __future__ import annotations

import importlib.resources
import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from jarvis import postgres
from jarvis.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from jarvis.store.database import Connection, Database

LOCK = 0x6A61_7276_6973  # "jarvis"
"""Key of the advisory lock that a migration holds."""

MINIMUM_SERVER = 150_000
MINIMUM_PGVECTOR = (0, 8)

_NAME = re.compile(r"V(\d+)__([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of ``sql/``."""

    version: int
    name: str
    text: str


def folder() -> Traversable:
    """Where the migrations lie: inside the wheel, or at the top of a checkout."""
    packaged = importlib.resources.files("jarvis") / "sql"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"


def available() -> list[Migration]:
    """All migrations, in order."""
    found = []
    for entry in folder().iterdir():
        match = _NAME.fullmatch(entry.name)
        if match:
            found.append(
                Migration(int(match[1]), entry.name.removesuffix(".sql"), entry.read_text("utf-8"))
            )
    return sorted(found, key=lambda migration: migration.version)


def latest() -> int:
    """The newest version, from the file names alone."""
    versions = (_NAME.fullmatch(entry.name) for entry in folder().iterdir())
    return max(int(match[1]) for match in versions if match)


def current(connection: Connection) -> int:
    """The version that the database has; 0 for an empty one."""
    try:
        row = connection.execute("SELECT max(version) FROM schema_migrations").fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        return 0  # empty, or another process has just begun
    return int(row[0] or 0) if row else 0


def is_current(connection: Connection) -> bool:
    """Whether there is nothing to migrate."""
    return current(connection) == latest()


def migrate(connection: Connection, database: Database, up_to: int | None = None) -> list[str]:
    """Brings the schema up to date (or to version ``up_to``) and returns what was applied.

    Raises:
        DatabaseUnavailable: the server is too old, lacks pgvector, or has a newer schema.
    """
    target = latest() if up_to is None else up_to
    have = current(connection)
    if have == target:
        return []
    if have > target and up_to is None:
        raise DatabaseUnavailable(
            f"the database has schema version {have}, this Jarvis knows up to {target}",
            "use the newer Jarvis that made it",
        )
    _prepare(connection, database)
    applied: list[str] = []
    for step in available():
        # One lock a step, and not one a connection: behind a pooler each transaction may have
        # another connection.
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            have = current(connection)
            if not have < step.version <= target:
                continue
            if have and not applied:
                database.before_migration(database, have)
            database.progress(f"preparing the database: {step.name}")
            connection.execute(sql.SQL(step.text))
            connection.execute(
                "INSERT INTO schema_migrations (version, name) VALUES (%s, %s)",
                (step.version, step.name),
            )
            give_rights(connection, database)
        applied.append(step.name)
    return applied


def _prepare(connection: Connection, database: Database) -> None:
    """Makes what the migrations need: the schema, the extension, the table of what was applied."""
    _check_server(connection)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        _ensure_schema(connection, database)
        _ensure_extension(connection, database)
        row = connection.execute("SELECT to_regclass('schema_migrations') IS NULL").fetchone()
        if row and row[0]:
            connection.execute(
                "CREATE TABLE schema_migrations (version int PRIMARY KEY,"
                " name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
            )


def _ensure_schema(connection: Connection, database: Database) -> None:
    name = database.settings.schema
    if not name or database.embedded:
        return
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s), current_schema", (name,)
    ).fetchone()
    assert row is not None  # noqa: S101 -- a SELECT without FROM has one row
    if not row[0]:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        row = connection.execute("SELECT true, current_schema").fetchone()
    if row is not None and row[1] != name:
        # Behind a pooler a connection cannot set its own search path.
        raise DatabaseUnavailable(
            f"the role does not look into the schema {name} first",
            f"an administrator must run: ALTER ROLE {connection.info.user}"
            f" SET search_path = {name}, public",
        )


def give_rights(connection: Connection, database: Database) -> None:
    """Puts new tables under row-level security and lets those use them who may.

    On the embedded server that is the role of daily work, which owns nothing.
    """
    row = connection.execute("SELECT to_regprocedure('protect_tables()') IS NOT NULL").fetchone()
    protected = bool(row and row[0])
    if database.embedded:
        _grant(connection)
        if protected:
            connection.execute("SELECT allow_role(%s)", (postgres.RUNTIME_ROLE,))
    elif protected:
        connection.execute("SELECT protect_tables()")


def _grant(connection: Connection) -> None:
    """Lets the role of daily work, which owns nothing, use the tables."""
    role = sql.Identifier(postgres.RUNTIME_ROLE)
    row = connection.execute("SELECT current_schema").fetchone()
    schema = sql.Identifier(row[0] if row else "public")
    for statement in (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    ):
        connection.execute(sql.SQL(statement).format(schema=schema, role=role))


def pgvector_version(connection: Connection) -> str:
    """The extension's version in this database; empty: it is not there."""
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return str(row[0]) if row else ""


def _check_server(connection: Connection) -> None:
    version = connection.info.server_version
    if version < MINIMUM_SERVER:
        raise DatabaseUnavailable(
            f"Postgres {version // 10_000} is too old", "Jarvis needs Postgres 15 or newer"
        )


def _ensure_extension(connection: Connection, database: Database) -> None:
    version = pgvector_version(connection)
    if not version:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector")
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnavailable(
                "the role may not create the extension vector",
                f"an administrator must run, in {connection.info.dbname}: CREATE EXTENSION vector",
            ) from error
        except psycopg.Error as error:
            raise DatabaseUnavailable(
                "the server does not have the extension vector (pgvector)",
                "install pgvector 0.8 or newer on the database server",
            ) from error
        version = pgvector_version(connection)
    parts = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if parts < MINIMUM_PGVECTOR:
        raise DatabaseUnavailable(
            f"pgvector {version} is too old", "run: ALTER EXTENSION vector UPDATE (0.8 or newer)"
        )
    row = connection.execute(
        "SELECT to_regtype('vector') IS NOT NULL, n.nspname"
        " FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    if row is not None and not row[0]:
        raise DatabaseUnavailable(
            f"pgvector lies in the schema {row[1]}, where the role does not look",
            _where_to_look(connection, database, str(row[1])),
        )


def _where_to_look(connection: Connection, database: Database, place: str) -> str:
    schema = database.settings.schema
    if schema and database.settings.prepared_statements:
        # The connection sets its own path, which a role's does not change; one in the address does.
        return (
            "an administrator must run: ALTER EXTENSION vector SET SCHEMA public; or give"
            f" database.url the parameter ?options=-csearch_path%3D{schema},{place}"
        )
    path = ", ".join([*([schema] if schema else []), "public", place])
    return f"an administrator must run: ALTER ROLE {connection.info.user} SET search_path = {path}"
