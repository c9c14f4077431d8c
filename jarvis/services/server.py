"""The database server, seen from outside: started, stopped, looked at, spoken to with ``psql``."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jarvis import postgres
from jarvis.errors import DatabaseUnavailable, JarvisError, NotFound, UsageError

if TYPE_CHECKING:
    from jarvis.paths import Paths
    from jarvis.store.database import Connection, Database


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known without starting anything. Empty or None: not known."""

    embedded: bool
    running: bool
    address: str
    version: str
    pgvector: str
    schema_version: int | None
    pid: int | None
    data: Path | None
    log: Path | None
    size_bytes: int | None
    problem: str


def start(database: Database, paths: Paths) -> ServerStatus:
    """Starts the embedded server and brings the schema up to date.

    Raises:
        DatabaseUnavailable: it cannot be started.
    """
    if database.embedded:
        # Not only when nothing answers: this also replaces a server of older programs.
        postgres.ensure_running(
            paths, progress=database.progress, idle_hours=database.settings.idle_hours
        )
    database.open()
    return status(database, paths)


def stop(database: Database, paths: Paths) -> bool:
    """Stops the embedded server. False: it did not run.

    Raises:
        UsageError: the server is one of the user's own.
    """
    if not database.embedded:
        raise UsageError(
            f"{database.describe()} is not run by Jarvis", "stop it where it was started"
        )
    database.close()
    return postgres.stop(paths, progress=database.progress)


def status(database: Database, paths: Paths) -> ServerStatus:
    """Looks at the server; neither starts nor changes it."""
    own = postgres.status(paths) if database.embedded else None
    running, problem, version, pgvector, schema = False, "", "", "", None
    if own is None or own.running:
        try:
            with contextlib.closing(database.connect_as_owner()) as connection:
                running = True
                version, pgvector, schema = _ask(connection)
        except JarvisError as error:
            problem = error.message
    elif own.pid is not None:
        problem = "it is starting, or recovering"
    return ServerStatus(
        embedded=database.embedded,
        running=running,
        address=database.describe(),
        version=version or (own.version if own else ""),
        pgvector=pgvector,
        schema_version=schema,
        pid=own.pid if own else None,
        data=own.data if own else None,
        log=own.log if own else None,
        size_bytes=own.size_bytes if own else None,
        problem=problem,
    )


def _ask(connection: Connection) -> tuple[str, str, int]:
    from jarvis.store import migrations

    number = connection.info.server_version
    return (
        f"{number // 10_000}.{number % 10_000}",
        migrations.pgvector_version(connection),
        migrations.current(connection),
    )


def psql(
    database: Database,
    arguments: Sequence[str] = (),
    *,
    admin: bool = False,
    execute: Callable[[str, list[str], dict[str, str]], object] = os.execve,
) -> None:
    """Becomes ``psql``, connected to Jarvis's database. Returns only when it cannot.

    The password travels in the environment, where only this user sees it, never as an argument.

    Args:
        admin: as the embedded server's superuser.

    Raises:
        DatabaseUnavailable: the server cannot be reached.
        NotFound: there is no ``psql``.
    """
    database.open()
    info = database.conninfo()
    if admin:
        if not database.embedded:
            raise UsageError(
                "--admin is for the embedded server", "put the role into database.user"
            )
        info["user"] = postgres.ADMIN_ROLE
    database.close()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    for key, value in info.items():
        name = _VARIABLES.get(key)
        if name is None:
            raise UsageError(f"database.url has {key}, which psql takes in no variable")
        environment[name] = str(value)
    settings = database.settings
    if settings.schema and settings.prepared_statements and not database.embedded:
        # A pooler refuses options, and one in the address comes last: it wins.
        path = f"-c search_path={settings.schema},public,extensions"
        environment["PGOPTIONS"] = f"{path} {environment.get('PGOPTIONS', '')}".strip()
    tls = str(info.get("sslmode", "")) in _ENCRYPTED
    program = _psql_program(embedded=database.embedded, tls=tls)
    execute(program, [program, *arguments], environment)


_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
    "gssencmode": "PGGSSENCMODE",
    "channel_binding": "PGCHANNELBINDING",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}


_ENCRYPTED = {"require", "verify-ca", "verify-full"}


def _psql_program(*, embedded: bool, tls: bool) -> str:
    # The wheel's psql cannot speak TLS: for another server the machine's own is better.
    if not embedded and (found := shutil.which("psql")):
        return found
    if tls:
        raise NotFound(
            "psql is not installed, and the one that comes with Jarvis cannot encrypt",
            "install postgresql-client",
        )
    with contextlib.suppress(DatabaseUnavailable):
        return str(postgres.binaries() / "psql")
    raise NotFound("psql is not installed", "install postgresql-client")


def allow(database: Database, role: str, user: str | None) -> bool:
    """Lets a database role at the rows of one user, or (None) at everybody's.

    Returns:
        whether the user is new.

    Raises:
        NotFound: there is no such role.
        DatabaseUnavailable: the configured role does not own the tables.
    """
    from jarvis.store import roles

    database.open()
    with contextlib.closing(database.connect_as_owner()) as connection:
        return roles.allow(connection, role, user)


def deny(database: Database, role: str) -> None:
    """Takes all rights back from a database role.

    Raises:
        NotFound: there is no such role.
        DatabaseUnavailable: the configured role does not own the tables.
    """
    from jarvis.store import roles

    database.open()
    with contextlib.closing(database.connect_as_owner()) as connection:
        roles.deny(connection, role)


def roles_of(database: Database) -> list[dict[str, str | None]]:
    """Which database role may see whose rows; ``user`` None: everybody's."""
    from jarvis.store import roles

    database.open()
    with contextlib.closing(database.connect_as_owner()) as connection:
        return [{"role": role, "user": user} for role, user in roles.everyone(connection)]
