"""All rows of Jarvis's tables, out of the database and back into it.

Rows travel as the text of ``COPY``, so an archive can be read into any version of Postgres, into
any schema and by a role that may neither dump nor create databases. The tables themselves are not
in it: they are made again by the migrations, up to the version that the archive names.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from jarvis.errors import DatabaseUnavailable, JarvisError
from jarvis.store import migrations, roles
from jarvis.store.database import Connection
from jarvis.store.transfer import one_moment

HISTORY = "schema_migrations"
"""The migrator's own table; it is not made by a file."""

MADE_LATER = "search_memories"
"""The function that the worker makes for the model in use; it outlives a restore."""

_CREATE_TABLE = re.compile(r"^\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.I | re.M)
_CREATE_FUNCTION = re.compile(
    r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?FUNCTION\s+(?:\S+\.)?(\w+)", re.I | re.M
)

_TABLES = """
SELECT c.relname, array_agg(a.attname ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND c.relname = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname
"""

_REFERENCES = """
SELECT DISTINCT child.relname, parent.relname
FROM pg_constraint k
JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid
WHERE k.contype = 'f' AND child.relnamespace = current_schema()::regnamespace
  AND child.oid <> parent.oid
"""

_IDENTITIES = """
SELECT c.relname, a.attname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND c.relname = ANY(%s) AND a.attidentity <> ''
"""

_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = ANY(%s)
  AND pg_get_userbyid(p.proowner) = current_user
"""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of an archive. ``sha256`` is of the text of its rows."""

    name: str
    columns: tuple[str, ...]
    rows: int
    sha256: str


Write = Callable[[str], Callable[[bytes], object]]
"""Opens the entry of a table and returns what takes its bytes."""
Read = Callable[[str], Iterator[bytes]]
"""The bytes of a table's entry."""


def table_names() -> list[str]:
    """Every table that any migration makes."""
    found = {name for step in migrations.available() for name in _CREATE_TABLE.findall(step.text)}
    return sorted(found | {HISTORY})


def function_names() -> list[str]:
    """Every function that any migration makes."""
    return sorted(
        {name for step in migrations.available() for name in _CREATE_FUNCTION.findall(step.text)}
    )


def export(connection: Connection, write: Write) -> list[Table]:
    """Writes all rows as they were at one moment; says what was written.

    Raises:
        psycopg.Error: the database failed.
    """
    tables = []
    with connection.transaction():
        one_moment(connection)
        present = _present(connection)
        for name in _in_order(connection, list(present)):
            take = write(name)
            digest, rows = hashlib.sha256(), 0
            query = sql.SQL("COPY (SELECT {columns} FROM {table}) TO STDOUT").format(
                columns=_list(present[name]), table=sql.Identifier(name)
            )
            with connection.cursor() as cursor, cursor.copy(query) as rows_out:
                for block in rows_out:
                    data = bytes(block)
                    digest.update(data)
                    rows += data.count(b"\n")  # one inside a value is written as \n
                    take(data)
            tables.append(Table(name, tuple(present[name]), rows, digest.hexdigest()))
    return tables


def restore(
    connection: Connection,
    version: int,
    tables: list[Table],
    read: Read,
    *,
    after: Callable[[Connection], None],
    rehearse: bool = False,
) -> None:
    """Replaces everything by an archive, in one transaction: all of it or nothing.

    Args:
        connection: of the role that owns the tables.
        version: the schema version of the archive; newer migrations are for the caller.
        after: gives rights on the new tables (see ``migrations``).
        rehearse: do it all beside the present tables, check it, and undo it.

    Raises:
        JarvisError: what arrived is not what the archive said.
        psycopg.Error: the database failed.
    """
    see_all: list[str] = []
    with connection.transaction(force_rollback=rehearse):
        connection.execute("SET LOCAL lock_timeout = '60s'")
        if rehearse:
            _scratch_schema(connection)
        else:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (migrations.LOCK,))
            see_all = [role for role, user in roles.everyone(connection) if user is None]
            drop_all(connection)
        _build(connection, version)
        names = [table.name for table in tables]
        unknown = set(names) - set(_present(connection))
        if unknown:
            raise JarvisError(f"the backup holds tables nobody knows: {', '.join(sorted(unknown))}")
        _fill(connection, tables, read)
        after(connection)
        if not rehearse and version >= roles.SINCE:
            for role in see_all:
                connection.execute("SELECT allow_role(%s)", (role,))


def _fill(connection: Connection, tables: list[Table], read: Read) -> None:
    by_name = {table.name: table for table in tables}
    present = list(_present(connection))
    # A role that the policies bind, owner or not, may not COPY; the owner lifts that for itself.
    forced = [row[0] for row in connection.execute(_FORCED, (present,))]
    _each(connection, "ALTER TABLE {} NO FORCE ROW LEVEL SECURITY", forced)
    connection.execute(sql.SQL("TRUNCATE {}").format(_list(present)))
    for name in _in_order(connection, list(by_name)):
        table = by_name[name]
        digest, rows = hashlib.sha256(), 0
        query = sql.SQL("COPY {table} ({columns}) FROM STDIN").format(
            table=sql.Identifier(name), columns=_list(table.columns)
        )
        with connection.cursor() as cursor:
            with cursor.copy(query) as rows_in:
                for data in read(name):
                    digest.update(data)
                    rows += data.count(b"\n")
                    rows_in.write(data)
            count = cursor.rowcount
        if (rows, digest.hexdigest(), count) != (table.rows, table.sha256, table.rows):
            raise JarvisError(
                f"the backup is damaged: table {name} has {count} rows, not {table.rows}",
                "nothing was changed; use another backup",
            )
    _each(connection, "ALTER TABLE {} FORCE ROW LEVEL SECURITY", forced)
    for name, column in connection.execute(_IDENTITIES, (present,)).fetchall():
        connection.execute(
            sql.SQL(
                "SELECT setval(pg_get_serial_sequence({literal}, {column_literal}),"
                " coalesce(max({column}), 1), max({column}) IS NOT NULL) FROM {table}"
            ).format(
                literal=sql.Literal(f'"{name}"'),
                column_literal=sql.Literal(column),
                column=sql.Identifier(column),
                table=sql.Identifier(name),
            )
        )


_FORCED = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) AND relforcerowsecurity
"""


def drop_all(connection: Connection) -> None:
    """Drops Jarvis's tables and functions from the current schema, and nothing else."""
    present = [row[0] for row in connection.execute(_TABLES, (table_names(),))]
    if present:
        connection.execute(sql.SQL("DROP TABLE {} CASCADE").format(_list(sorted(present))))
    _drop_functions(connection, function_names())


def _drop_functions(connection: Connection, names: list[str]) -> None:
    for (signature,) in connection.execute(_FUNCTIONS, (names,)).fetchall():
        # The server wrote this text, quoted as it has to be.
        connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {} CASCADE").format(sql.SQL(signature)))


def erase(connection: Connection) -> str:
    """Removes everything that the role may remove; says what that was, empty: nothing.

    The owner drops the tables; another role deletes the rows of its users.
    """
    with connection.transaction():
        row = connection.execute(
            "SELECT pg_get_userbyid(relowner) = current_user FROM pg_class"
            " WHERE oid = to_regclass('users')"
        ).fetchone()
        if row is None:
            return ""
        if row[0]:
            drop_all(connection)
            _drop_functions(connection, [MADE_LATER])
            return "the tables of Jarvis"
        connection.execute("DELETE FROM users")
        return "the rows of this role's users"


def counts(connection: Connection) -> dict[str, int]:
    """How many rows each table has."""
    found = {}
    for name in sorted(_present(connection)):
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))
        ).fetchone()
        found[name] = int(row[0]) if row else 0
    return found


def _build(connection: Connection, version: int) -> None:
    """The empty tables of a schema version, in the current schema."""
    steps = [step for step in migrations.available() if step.version <= version]
    if not steps or steps[-1].version != version:
        raise DatabaseUnavailable(
            f"the backup has schema version {version}, this Jarvis knows up to"
            f" {migrations.latest()}",
            "use the newer Jarvis that made it",
        )
    connection.execute(
        "CREATE TABLE schema_migrations (version int PRIMARY KEY,"
        " name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    for step in steps:
        connection.execute(sql.SQL(step.text))


def _scratch_schema(connection: Connection) -> None:
    row = connection.execute("SELECT current_schema, pg_backend_pid()").fetchone()
    assert row is not None  # noqa: S101 -- a SELECT without FROM has one row
    name = f"jarvis_rehearsal_{row[1]}"
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    path = sql.SQL(", ").join(map(sql.Identifier, (name, row[0] or "public", "public")))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(path))


def _present(connection: Connection) -> dict[str, list[str]]:
    """Our tables that are there, with their columns."""
    rows = connection.execute(_TABLES, (table_names(),)).fetchall()
    return {name: list(columns) for name, columns in rows}


def _in_order(connection: Connection, names: list[str]) -> list[str]:
    """``names`` so that each comes after what it refers to."""
    parents: dict[str, set[str]] = {name: set() for name in names}
    for child, parent in connection.execute(_REFERENCES).fetchall():
        if child in parents and parent in parents:
            parents[child].add(parent)
    ordered: list[str] = []
    while parents:
        free = sorted(name for name, above in parents.items() if above <= set(ordered))
        if not free:
            raise JarvisError(f"tables refer to each other in a circle: {', '.join(parents)}")
        ordered += free
        for name in free:
            del parents[name]
    return ordered


def _each(connection: Connection, statement: LiteralString, names: list[str]) -> None:
    for name in names:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


def _list(names: list[str] | tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


@contextlib.contextmanager
def translated(what: str, hint: str) -> Iterator[None]:
    """Turns an error of the database into one for people, without the rows that it quotes.

    Raises:
        DatabaseUnavailable: the database failed; the message begins with ``what``.
    """
    try:
        yield
    except psycopg.Error as error:
        reason = error.diag.message_primary or (str(error).splitlines() or [""])[0]
        raise DatabaseUnavailable(f"{what}: {reason or type(error).__name__}", hint) from error
