"""Connections to Postgres: found, pooled, mended.

A command first tries the address; only when nothing answers at the embedded server's socket is
the supervisor loaded to start it. A connection that died between two uses is replaced once,
before the caller's first statement, so that a restarted server costs nobody a turn.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from jarvis import postgres
from jarvis.config import DatabaseSettings
from jarvis.errors import ConfigError, DatabaseUnavailable
from jarvis.paths import Paths
from jarvis.store.address import conninfo, hint, reason, schema_name

Connection = psycopg.Connection[TupleRow]

IDLE_CONNECTIONS = 4
"""Connections kept for the next use: history and the three arms of a search run side by side."""


SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": r"read\ committed",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""What a session goes by, whatever an administrator set for the role, the database or the server:
dates in another style cannot be read, rounded numbers make another export."""

REPORTED = {"TimeZone": "UTC", "DateStyle": "ISO", "standard_conforming_strings": "on"}
"""Those of :data:`SESSION` that the server reports. A pooler refuses or forgets the others, but
carries these from one of its connections to the next."""


def silent(_: str) -> None:
    """Progress that nobody wants to see."""


class Database:
    """The database of this configuration, opened when first used.

    Safe to use from several threads: each use takes a connection of its own.
    """

    def __init__(
        self,
        settings: DatabaseSettings,
        paths: Paths,
        progress: Callable[[str], None] = silent,
        before_migration: Callable[[Database, int], None] = lambda *_: None,
    ) -> None:
        self.settings = settings
        self.paths = paths
        self.progress = progress
        self.before_migration = before_migration
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._start_lock = threading.Lock()
        self._ready = False
        self._closed = False

    @property
    def embedded(self) -> bool:
        """Whether the embedded server is used."""
        return not (self.settings.url or self.settings.host)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection inside a transaction: committed at the end, rolled back on an error.

        Raises:
            DatabaseUnavailable: the server cannot be reached or started, or went away.
        """
        connection, block = self._begin()
        with self._use(connection), contextlib.ExitStack() as stack:
            stack.push(block)
            yield connection

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in which every statement stands for itself.

        Raises:
            DatabaseUnavailable: the server cannot be reached or started, or went away.
        """
        with self._use(self._take()) as connection:
            yield connection

    @contextlib.contextmanager
    def maintenance(self) -> Iterator[Connection]:
        """A connection of its own as the role that owns the tables: indexes, functions, grants.

        On a server of the user's own that is the configured role. Autocommit, so that
        ``CREATE INDEX CONCURRENTLY`` is possible.

        Raises:
            DatabaseUnavailable: as ``transaction``.
        """
        self._prepare()
        connection = self._connect(owner=True)
        try:
            yield connection
        finally:
            connection.close()

    def open(self) -> None:
        """Connects, starting the embedded server and migrating the schema where needed.

        Raises:
            DatabaseUnavailable: that is impossible; the message says why.
        """
        with self._use(self._take()):
            pass

    def answers(self) -> bool:
        """Whether the server can be reached now; none is started for the answer."""
        try:
            self._give_back(self._connect())
        except DatabaseUnavailable:
            return False
        return True

    def connect(self) -> Connection:
        """A connection of the caller's own, outside the pool; the caller closes it.

        Raises:
            DatabaseUnavailable: the server cannot be reached or started.
        """
        self._prepare()
        return self._connect()

    def connect_as_owner(self) -> Connection:
        """A connection of the caller's own as the role that owns the tables, the schema as it is.

        The only one to use while a migration runs; the server must be up.

        Raises:
            DatabaseUnavailable: the server cannot be reached.
        """
        return self._connect(owner=True)

    def close(self) -> None:
        """Closes the idle connections now, and those in use as soon as they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def conninfo(self) -> dict[str, Any]:
        """What libpq is given, the password included.

        Raises:
            ConfigError: the settings contradict each other or cannot be read.
        """
        if self.embedded:
            address = postgres.address(self.paths)
            return {
                "host": address.host,
                "port": address.port,
                "user": address.user,
                "dbname": address.dbname,
            }
        return conninfo(self.settings)

    def describe(self) -> str:
        """The address for people, without a password."""
        info = self.conninfo()
        place = info.get("host", "localhost")
        return f"{info.get('dbname', '')} at {place}:{info.get('port', 5432)}"

    @contextlib.contextmanager
    def _use(self, connection: Connection) -> Iterator[Connection]:
        try:
            yield connection
        except psycopg.OperationalError as error:
            if connection.closed or connection.broken:
                self.close()
                raise DatabaseUnavailable(
                    f"the database went away: {reason(error)}", "run the command again"
                ) from error
            raise
        finally:
            self._give_back(connection)

    def _begin(self) -> tuple[Connection, contextlib.AbstractContextManager[object]]:
        """A connection with its transaction begun.

        A server that was just killed takes a moment to close its connections: one that fails at
        this, before the caller's first statement, is replaced.
        """
        for attempt in range(IDLE_CONNECTIONS + 1):
            connection = self._take()
            block = connection.transaction()
            try:
                block.__enter__()
            except psycopg.OperationalError as error:
                connection.close()
                if attempt == IDLE_CONNECTIONS:
                    raise DatabaseUnavailable(
                        f"the database went away: {reason(error)}", "run the command again"
                    ) from error
            else:
                return connection, block
        raise AssertionError("the last attempt returns or raises")

    def _take(self) -> Connection:
        self._prepare()
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if _alive(connection):
                return connection
            connection.close()
        try:
            return self._connect()
        except DatabaseUnavailable:
            if not self.embedded:
                raise
            # It was stopped after we had started it: start it again, once.
            self._ready = False
            self._prepare()
            return self._connect()

    def _give_back(self, connection: Connection) -> None:
        status = connection.info.transaction_status
        if connection.closed or status != psycopg.pq.TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _prepare(self) -> None:
        if self._ready:
            return
        with self._start_lock:
            if self._is_ready():
                return
            try:
                connection = self._connect()
            except DatabaseUnavailable:
                if not self.embedded:
                    raise
                postgres.ensure_running(
                    self.paths,
                    progress=self.progress,
                    idle_hours=self.settings.idle_hours,
                )
                connection = self._connect()
            try:
                self._migrate(connection)
            except BaseException:
                connection.close()
                raise
            self._ready = True
        self._give_back(connection)

    def _is_ready(self) -> bool:
        # Another thread may have changed it while this one waited for the lock.
        return self._ready

    def _migrate(self, connection: Connection) -> None:
        from jarvis.store import migrations

        try:
            if migrations.is_current(connection):
                return
            with contextlib.closing(self._connect(owner=True)) as owner:
                migrations.migrate(owner, self)
        except psycopg.Error as error:
            raise DatabaseUnavailable(
                f"the database {self.describe()} cannot be prepared: {reason(error)}",
                "jarvis doctor says what is missing",
            ) from error

    def _connect(self, *, owner: bool = False) -> Connection:
        info = self.conninfo()
        if owner and self.embedded:
            info["user"] = postgres.OWNER_ROLE
        options = [f"-c {name}={value}" for name, value in SESSION.items()]
        if self.settings.schema and not self.embedded:
            options += [f"-c search_path={schema_name(self.settings.schema)},public,extensions"]
        if not self.settings.prepared_statements:
            options = []  # a transaction pooler refuses or forgets them
        options += [str(info["options"])] if "options" in info else []
        ours = {
            "connect_timeout": max(2, round(self.settings.connect_timeout)),
            "application_name": "jarvis",
        }
        always = {"options": " ".join(options) or None, "client_encoding": "UTF8"}
        try:
            connection = psycopg.connect(
                **{**ours, **info, **always},
                autocommit=True,
                prepare_threshold=5 if self.settings.prepared_statements else None,
            )
            _settle(connection)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(
                f"cannot connect to the database {self.describe()}: {reason(error)}",
                "jarvis db start" if self.embedded else hint(error),
            ) from error
        except psycopg.ProgrammingError as error:  # libpq reads its parameters before it connects
            raise ConfigError(
                f"the database's address cannot be used: {reason(error)}",
                "what stands after its ? are libpq's parameters, such as ?sslmode=verify-full",
            ) from error
        return connection


def _settle(connection: Connection) -> None:
    """Sets what its options could not, where that differs."""
    for name, value in REPORTED.items():
        # A style has an order of day and month besides, which does not matter to ISO.
        if (connection.info.parameter_status(name) or "").split(",")[0] != value:
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _alive(connection: Connection) -> bool:
    """Whether an idle connection still has a server at the other end; asks the socket only."""
    if connection.closed:
        return False
    import select

    try:
        # A server that went away has sent a farewell or closed: the socket is readable.
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        return not poll.poll(0)
    except OSError:
        return False
