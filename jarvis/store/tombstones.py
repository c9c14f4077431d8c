"""What was forgotten, so that it is not extracted again from what is still there.

A tombstone is the hash of a memory's content hash under the user's own random key: it tells
whether a given text was forgotten, and nothing else.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from jarvis.store.database import Connection


def _tombstone(tx: Connection, user_id: int, digest: bytes) -> bytes:
    row = tx.execute("SELECT tombstone_key FROM users WHERE user_id = %s", (user_id,)).fetchone()
    assert row is not None  # noqa: S101 -- a user whose rows are used exists
    return hmac.digest(row[0], digest, "sha256")


def bury(tx: Connection, user_id: int, digests: Iterable[bytes]) -> int:
    """Leaves tombstones; returns how many are new."""
    hashes = [_tombstone(tx, user_id, digest) for digest in sorted(set(digests))]
    return tx.execute(
        "INSERT INTO tombstones (user_id, hash) SELECT %s, unnest(%s::bytea[])"
        " ON CONFLICT DO NOTHING",
        (user_id, hashes),
    ).rowcount


def is_buried(tx: Connection, user_id: int, digest: bytes) -> bool:
    """Whether a memory with that content was forgotten."""
    return (
        tx.execute(
            "SELECT 1 FROM tombstones WHERE user_id = %s AND hash = %s",
            (user_id, _tombstone(tx, user_id, digest)),
        ).fetchone()
        is not None
    )


def unbury(tx: Connection, user_id: int, digest: bytes) -> None:
    """Takes the tombstone away: the user wants the fact back."""
    tx.execute(
        "DELETE FROM tombstones WHERE user_id = %s AND hash = %s",
        (user_id, _tombstone(tx, user_id, digest)),
    )


def count_tombstones(connection: Connection, user_id: int) -> int:
    """How many facts were forgotten for good."""
    row = connection.execute(
        "SELECT count(*) FROM tombstones WHERE user_id = %s", (user_id,)
    ).fetchone()
    return int(row[0]) if row else 0
