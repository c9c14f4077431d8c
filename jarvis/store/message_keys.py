"""The keys of past turns: a message with its neighbours, and with the facts taken from it.

Neighbours are the messages up to two places away in the session; barred ones and tools' results
are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jarvis.store.database import Connection
from jarvis.store.vectors import parse_sparse, sparse_text

_LOCK = 0x6B657973  # "keys"


def lock(tx: Connection, user_id: int) -> None:
    """Lets one transaction at a time change a user's keys with neighbours; held until it ends.

    A key is read from several messages and then written: without this, one that is made while a
    message is barred would bring its words back. Take it before any message is locked.
    """
    tx.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK, user_id % 2**31))


def put_windows(
    connection: Connection,
    user_id: int,
    model_id: int,
    message_ids: Sequence[int],
    weights: Mapping[int, float],
) -> None:
    """Makes the key "with its neighbours" of these users' messages anew, from stored vectors.

    It is the weighted mean of the messages up to two places away in the session, each at unit
    length; barred messages and tools' results are left out.
    """
    connection.execute(
        """
        WITH asked AS (
            SELECT m.id, m.session_id FROM messages m
            WHERE m.user_id = %(user)s AND m.id = ANY(%(ids)s) AND m.role = 'user'
              AND NOT m.barred
        ), around AS (
            SELECT a.id, n.id AS neighbour, n.distance
            FROM asked a CROSS JOIN LATERAL (
                SELECT a.id, 0 AS distance
                UNION ALL
                (SELECT b.id, row_number() OVER (ORDER BY b.id DESC) FROM messages b
                 WHERE b.user_id = %(user)s AND b.session_id = a.session_id AND b.id < a.id
                   AND b.role <> 'tool' ORDER BY b.id DESC LIMIT 2)
                UNION ALL
                (SELECT b.id, row_number() OVER (ORDER BY b.id) FROM messages b
                 WHERE b.user_id = %(user)s AND b.session_id = a.session_id AND b.id > a.id
                   AND b.role <> 'tool' ORDER BY b.id LIMIT 2)
            ) n
        ), windows AS (
            SELECT r.id, l2_normalize(sum(
                l2_normalize(v.embedding) * array_fill(
                    CASE r.distance WHEN 0 THEN %(w0)s WHEN 1 THEN %(w1)s ELSE %(w2)s END::real,
                    ARRAY[vector_dims(v.embedding)])::vector)) AS embedding,
                bool_or(r.distance = 0) AS complete
            FROM around r JOIN message_vectors v
              ON v.user_id = %(user)s AND v.message_id = r.neighbour
             AND v.model_id = %(model)s AND v.key = 0 AND v.embedding IS NOT NULL
            GROUP BY r.id
        )
        INSERT INTO message_vectors (user_id, message_id, model_id, key, embedding)
        SELECT %(user)s, id, %(model)s, 1, embedding FROM windows WHERE complete ORDER BY id
        ON CONFLICT (user_id, message_id, model_id, key) DO UPDATE
        SET embedding = excluded.embedding
        """,
        {
            "user": user_id,
            "model": model_id,
            "ids": list(message_ids),
            "w0": weights[0],
            "w1": weights[1],
            "w2": weights[2],
        },
    )


def put_fact_keys(
    connection: Connection,
    user_id: int,
    model_id: int,
    message_ids: Sequence[int] | None,
    fact_weight: float,
) -> None:
    """Makes the key "with the facts extracted from it" of users' messages anew.

    It is the weighted mean of the message's own vector and those of its facts, each at unit
    length; a message without facts has none.

    Args:
        message_ids: None: of all the user's messages.
    """
    connection.execute(
        """
        INSERT INTO message_vectors (user_id, message_id, model_id, key, embedding)
        SELECT %(user)s, o.id, %(model)s, 2, l2_normalize(
            l2_normalize(avg(v.embedding)) + sum(l2_normalize(f.embedding) * array_fill(
                %(weight)s::real, ARRAY[vector_dims(f.embedding)])::vector))
        FROM messages o
        JOIN message_vectors v ON v.user_id = o.user_id AND v.message_id = o.id
         AND v.model_id = %(model)s AND v.key = 0 AND v.embedding IS NOT NULL
        JOIN memories m ON m.user_id = o.user_id AND m.message_id = o.id AND m.state <> 'held'
        JOIN memory_vectors f ON f.user_id = m.user_id AND f.memory_id = m.id
         AND f.model_id = %(model)s AND f.embedding IS NOT NULL
        WHERE o.user_id = %(user)s AND (%(ids)s::bigint[] IS NULL OR o.id = ANY(%(ids)s))
          AND o.role = 'user' AND NOT o.barred
        GROUP BY o.id ORDER BY o.id
        ON CONFLICT (user_id, message_id, model_id, key) DO UPDATE
        SET embedding = excluded.embedding
        """,
        {
            "user": user_id,
            "model": model_id,
            "ids": None if message_ids is None else list(message_ids),
            "weight": fact_weight,
        },
    )


def sources(connection: Connection, user_id: int, memory_ids: Iterable[int]) -> list[int]:
    """The messages that these memories were taken from."""
    rows = connection.execute(
        "SELECT DISTINCT message_id FROM memories WHERE user_id = %s AND id = ANY(%s)"
        " AND message_id IS NOT NULL ORDER BY 1",
        (user_id, list(memory_ids)),
    )
    return [row[0] for row in rows]


def messages_around(connection: Connection, user_id: int, message_ids: Iterable[int]) -> list[int]:
    """The users' messages whose key with neighbours one of these messages takes part in."""
    rows = connection.execute(
        """
        SELECT DISTINCT n.id
        FROM messages a CROSS JOIN LATERAL (
            SELECT a.id, a.role
            UNION ALL
            (SELECT b.id, b.role FROM messages b
             WHERE b.user_id = a.user_id AND b.session_id = a.session_id AND b.id < a.id
               AND b.role <> 'tool' ORDER BY b.id DESC LIMIT 2)
            UNION ALL
            (SELECT b.id, b.role FROM messages b
             WHERE b.user_id = a.user_id AND b.session_id = a.session_id AND b.id > a.id
               AND b.role <> 'tool' ORDER BY b.id LIMIT 2)
        ) n
        WHERE a.user_id = %s AND a.id = ANY(%s) AND n.role = 'user' ORDER BY n.id
        """,
        (user_id, list(message_ids)),
    )
    return [row[0] for row in rows]


def put_counts(
    connection: Connection, user_id: int, language: str, rows: Mapping[int, Mapping[int, float]]
) -> None:
    """Writes messages' own frequencies. The keys with neighbours come with ``put_keys``."""
    connection.cursor().executemany(
        """
        INSERT INTO message_terms (user_id, message_id, language, counts)
        VALUES (%s, %s, %s, %s::sparsevec)
        ON CONFLICT (user_id, message_id) DO UPDATE
        SET language = excluded.language, counts = excluded.counts
        """,
        [(user_id, owner, language, sparse_text(rows[owner])) for owner in sorted(rows)],
    )


@dataclass(frozen=True, slots=True)
class MessageTerms:
    """The words of a new message, written with it; its keys with neighbours are marked as old.

    Attributes:
        language: the stemmer's.
        counts: the message's own frequencies, by term.
        key: the weights by which it is found; None for an answer, which is found with its question.
    """

    language: str
    counts: Mapping[int, float]
    key: Mapping[int, float] | None

    def parameters(self) -> dict[str, Any]:
        """The values of the columns."""
        return {
            "language": self.language,
            "counts": sparse_text(self.counts),
            "terms": sorted(self.key or ()),
            "weights": None if self.key is None else sparse_text(self.key),
        }


def stale_messages(connection: Connection, user_id: int, limit: int) -> list[int]:
    """Messages whose words are not in the keys of their neighbours yet, oldest first."""
    rows = connection.execute(
        "SELECT message_id FROM message_terms WHERE user_id = %s AND stale"
        " ORDER BY message_id LIMIT %s",
        (user_id, limit),
    )
    return [row[0] for row in rows]


def mark_renewed(connection: Connection, user_id: int, message_ids: Sequence[int]) -> None:
    """Notes that the words of these messages are in all keys that they belong in."""
    connection.execute(
        "UPDATE message_terms SET stale = false WHERE user_id = %s AND message_id = ANY(%s)",
        (user_id, list(message_ids)),
    )


def put_keys(connection: Connection, user_id: int, rows: Mapping[int, Mapping[int, float]]) -> None:
    """Writes the weights of users' messages with their neighbours."""
    connection.cursor().executemany(
        "UPDATE message_terms SET terms = %s::int[], weights = %s::sparsevec"
        " WHERE user_id = %s AND message_id = %s",
        [(sorted(rows[owner]), sparse_text(rows[owner]), user_id, owner) for owner in sorted(rows)],
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A message within two places of another one; ``counts`` are its own frequencies."""

    centre: int
    distance: int
    counts: dict[int, float]


def neighbours(connection: Connection, user_id: int, message_ids: Sequence[int]) -> list[Neighbour]:
    """For each of these messages, itself and the ones around it that have words."""
    rows = connection.execute(
        """
        SELECT a.id, n.distance, t.counts::text
        FROM messages a CROSS JOIN LATERAL (
            SELECT a.id, 0 AS distance
            UNION ALL
            (SELECT b.id, row_number() OVER (ORDER BY b.id DESC) FROM messages b
             WHERE b.user_id = a.user_id AND b.session_id = a.session_id AND b.id < a.id
               AND b.role <> 'tool' ORDER BY b.id DESC LIMIT 2)
            UNION ALL
            (SELECT b.id, row_number() OVER (ORDER BY b.id) FROM messages b
             WHERE b.user_id = a.user_id AND b.session_id = a.session_id AND b.id > a.id
               AND b.role <> 'tool' ORDER BY b.id LIMIT 2)
        ) n JOIN message_terms t ON t.user_id = a.user_id AND t.message_id = n.id
        WHERE a.user_id = %s AND a.id = ANY(%s) AND a.role = 'user' AND NOT a.barred
        """,
        (user_id, list(message_ids)),
    )
    return [Neighbour(row[0], row[1], parse_sparse(row[2])) for row in rows]


def searchable_messages(
    connection: Connection, user_id: int, message_ids: Sequence[int]
) -> list[int]:
    """Those of these messages that a search may reach."""
    rows = connection.execute(
        "SELECT id FROM messages WHERE user_id = %s AND id = ANY(%s)"
        " AND role <> 'tool' AND NOT barred",
        (user_id, list(message_ids)),
    )
    return [row[0] for row in rows]
