"""What a server says about itself."""

from __future__ import annotations

from dataclasses import dataclass

from jarvis.store import migrations
from jarvis.store.database import Connection


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Versions and size of the database that is connected to."""

    version: str
    pgvector: str
    pgvector_schema: str
    schema_version: int
    size_bytes: int


def server(connection: Connection) -> ServerFacts:
    """Asks the server."""
    row = connection.execute(
        "SELECT current_setting('server_version'), e.extversion, n.nspname,"
        " pg_database_size(current_database())"
        " FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    assert row is not None  # noqa: S101 -- without the extension there is no schema
    return ServerFacts(row[0], row[1], row[2], migrations.current(connection), row[3])
