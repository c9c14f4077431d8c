"""Locks of the database that say who does background work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import LiteralString

from jarvis.store.database import Connection, Database

_WORKER_LOCK = 0x6A61_7277 << 32  # "jarw", then the user


class WorkerLocks:
    """Whose background work this process does. Each user's is done by one worker at a time.

    By user, since a worker sees only the users of its database role: one whose role sees ada may
    not keep another away from bob's work.
    """

    def __init__(self, connection: Connection, *, pooled: bool) -> None:
        self._connection = connection
        self._try: LiteralString = (
            "SELECT pg_try_advisory_xact_lock(%s)" if pooled else "SELECT pg_try_advisory_lock(%s)"
        )
        self._taken: set[int] = set()

    def take(self, user_id: int) -> bool:
        """Whether this worker does that user's work, from now until its end."""
        if user_id not in self._taken:
            key = _WORKER_LOCK | (user_id & 0xFFFF_FFFF)
            row = self._connection.execute(self._try, (key,)).fetchone()
            if not (row and row[0]):
                return False
            self._taken.add(user_id)
        return True


@contextlib.contextmanager
def worker_locks(database: Database) -> Iterator[WorkerLocks]:
    """The locks of one worker. They go with its connection: one that is killed leaves them at once.

    Raises:
        DatabaseUnavailable: the server cannot be reached.
    """
    pooled = not database.settings.prepared_statements
    connection = database.connect()
    try:
        # A transaction pooler lends its connection for one transaction: keep that open.
        with connection.transaction() if pooled else contextlib.nullcontext():
            yield WorkerLocks(connection, pooled=pooled)
    finally:
        connection.close()
