"""Locks of the database that say who does background work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jarvis.store.database import Database

WORKER_LOCK = 0x6A61_7277_6F72  # "jarwor"
"""Key of the advisory lock that the one worker of a database holds."""


@contextlib.contextmanager
def worker_lock(database: Database) -> Iterator[bool]:
    """Tries to become the database's one worker; gives whether that worked.

    The lock goes with its connection: a worker that is killed leaves it at once.
    """
    connection = database.connect()
    try:
        if database.settings.prepared_statements:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (WORKER_LOCK,)).fetchone()
            yield bool(row and row[0])
            return
        # A transaction pooler lends its connection for one transaction: keep that open.
        with connection.transaction():
            row = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", (WORKER_LOCK,)
            ).fetchone()
            yield bool(row and row[0])
    finally:
        connection.close()
