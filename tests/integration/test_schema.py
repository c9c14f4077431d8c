"""The keys of the schema: fit for distribution by ``user_id``; the same from every old version."""

from __future__ import annotations

from typing import Any

import pytest

from jarvis.config import DatabaseSettings
from jarvis.paths import Paths
from jarvis.store import archive, migrations
from jarvis.store.database import Connection, Database
from tests.unit.test_distribution import TABLES

pytestmark = pytest.mark.owner

EVERYWHERE = {"users", "role_users", "embedding_models", "schema_migrations"}
"""Small tables that a distributed database keeps on every node."""


def test_every_key_begins_with_the_user(database: Database) -> None:
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT t.relname, i.relname, a.attname FROM pg_index x"
            " JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid"
            " LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]"
            " WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace"
        ).fetchall()
    assert len(rows) > 15
    assert [r[:2] for r in rows if r[0] not in EVERYWHERE and r[2] != "user_id"] == []


def test_the_check_of_the_queries_knows_every_table(database: Database) -> None:
    with database.connection() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert {row[0] for row in rows} == {*TABLES, *EVERYWHERE}


def test_every_table_of_people_has_a_primary_key(database: Database) -> None:
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class t WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_index x"
            " WHERE x.indrelid = t.oid AND x.indisprimary)"
        ).fetchall()
    assert rows == []


def test_every_reference_carries_the_user(database: Database) -> None:
    """A foreign key between distributed tables has ``user_id`` first on both sides."""
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT k.conrelid::regclass::text, k.confrelid::regclass::text, a.attname, b.attname"
            " FROM pg_constraint k"
            " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]"
            " JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]"
            " WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace"
        ).fetchall()
    assert len(rows) > 10
    wrong = [
        row
        for row in rows
        if row[1] not in {"embedding_models"} and (row[2], row[3]) != ("user_id", "user_id")
    ]
    assert wrong == []


def test_every_table_of_people_is_under_row_level_security(database: Database) -> None:
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id'"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
        ).fetchall()
    assert len(rows) > 15
    assert [name for name, secured in rows if not secured] == []


def test_the_backup_knows_every_table(database: Database) -> None:
    with database.connection() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert {row[0] for row in rows} <= set(archive.table_names())


def _schema(connection: Connection) -> list[tuple[Any, ...]]:
    """Columns, keys, indexes, functions and policies, comparable."""
    found: list[tuple[Any, ...]] = []
    for query in (
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
        " pg_get_expr(d.adbin, d.adrelid), a.attstorage::text FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace AND conrelid <> 0",
        "SELECT proname, pg_get_functiondef(oid) FROM pg_proc p WHERE prokind = 'f'"
        " AND pronamespace = 'public'::regnamespace AND NOT EXISTS"
        " (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')",
        "SELECT tablename, policyname, qual, with_check FROM pg_policies",
    ):
        found += connection.execute(query.encode()).fetchall()
    return sorted(found, key=repr)


def test_from_every_older_version_the_same_schema(settings: DatabaseSettings, paths: Paths) -> None:
    database = Database(settings, paths)
    with database.connect_as_owner() as connection:
        wanted = _schema(connection)
        for step in migrations.available():
            with connection.transaction():
                archive.drop_all(connection)
            migrations.migrate(connection, database, up_to=step.version)
            assert migrations.current(connection) == step.version
            migrations.migrate(connection, database)
            assert _schema(connection) == wanted, f"from version {step.version}"
