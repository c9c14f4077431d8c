"""The tables of vectors and terms: what is written beside a memory, a message, a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString

from psycopg import sql
from psycopg.rows import class_row

from jarvis.store.database import Connection
from jarvis.types import EmbeddingModel, Vector

Kind = Literal["memory", "turn", "chunk"]
"""What a search looks through."""

KINDS: tuple[Kind, ...] = ("memory", "turn", "chunk")

TERM_SPACE = 999_999_999
"""Largest number of a term: one less than pgvector's largest sparsevec."""

MAX_INDEXED_DIMENSIONS = 4_000
"""pgvector indexes a halfvec up to this length; longer vectors are searched exactly."""

OWN, AROUND, FACTS = 0, 1, 2
"""Keys of a message's vectors: itself, with its neighbours, with the facts taken from it."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The names that one kind has in the database."""

    owners: sql.Identifier
    vectors: sql.Identifier
    terms: sql.Identifier
    owner_id: sql.Identifier
    has_keys: bool

    def names(self) -> dict[str, sql.Composable]:
        """For ``SQL(…).format(**names)``."""
        return {
            "owners": self.owners,
            "vectors": self.vectors,
            "terms": self.terms,
            "owner_id": self.owner_id,
            "conflict": sql.SQL(", key") if self.has_keys else sql.SQL(""),
        }


def _tables(owners: str, prefix: str, has_keys: bool = False) -> Tables:
    return Tables(
        owners=sql.Identifier(owners),
        vectors=sql.Identifier(f"{prefix}_vectors"),
        terms=sql.Identifier(f"{prefix}_terms"),
        owner_id=sql.Identifier(f"{prefix}_id"),
        has_keys=has_keys,
    )


TABLES: Mapping[Kind, Tables] = {
    "memory": _tables("memories", "memory"),
    "turn": _tables("messages", "message", has_keys=True),
    "chunk": _tables("chunks", "chunk"),
}


def compose(kind: Kind, text: LiteralString, **more: sql.Composable) -> sql.Composed:
    """``text`` with the names of the kind's tables put in."""
    return sql.SQL(text).format(**TABLES[kind].names(), **more)


def vector_text(vector: Vector) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(map(repr, map(float, vector))) + "]"


def sparse_text(weights: Mapping[int, float]) -> str:
    """A sparse vector over the space of terms as pgvector reads it."""
    entries = ",".join(f"{term}:{weights[term]:.5g}" for term in sorted(weights))
    return f"{{{entries}}}/{TERM_SPACE}"


def parse_sparse(text: str) -> dict[int, float]:
    """The opposite of ``sparse_text``."""
    inner = text[1 : text.rindex("}")]
    pairs = (entry.split(":") for entry in inner.split(",") if entry)
    return {int(term): float(value) for term, value in pairs}


# --- models -----------------------------------------------------------------------------------

_MODEL_COLUMNS = sql.SQL("id, name, digest, dimensions, query_prefix, document_prefix, threshold")


def find_model(
    connection: Connection,
    name: str,
    digest: str,
    dimensions: int,
    query_prefix: str,
    document_prefix: str,
) -> EmbeddingModel | None:
    """The model whose vectors are comparable with those of these properties, or None."""
    with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM embedding_models WHERE name = %s AND digest = %s"
                " AND dimensions = %s AND query_prefix = %s AND document_prefix = %s"
            ).format(_MODEL_COLUMNS),
            (name, digest, dimensions, query_prefix, document_prefix),
        ).fetchone()


def add_model(
    connection: Connection,
    name: str,
    digest: str,
    dimensions: int,
    query_prefix: str,
    document_prefix: str,
) -> None:
    """Adds a model; another process may have done so already."""
    connection.execute(
        "INSERT INTO embedding_models (name, digest, dimensions, query_prefix, document_prefix)"
        " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (name, digest, dimensions, query_prefix, document_prefix),
    )


def models(connection: Connection) -> list[EmbeddingModel]:
    """All models, in the order in which they were first used."""
    with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(
            sql.SQL("SELECT {} FROM embedding_models ORDER BY id").format(_MODEL_COLUMNS)
        ).fetchall()


def model(connection: Connection, model_id: int) -> EmbeddingModel | None:
    """One model."""
    with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(
            sql.SQL("SELECT {} FROM embedding_models WHERE id = %s").format(_MODEL_COLUMNS),
            (model_id,),
        ).fetchone()


def save_calibration(
    connection: Connection, model_id: int, threshold: float, details: Mapping[str, Any]
) -> None:
    """Keeps what the calibration of a model found."""
    from psycopg.types.json import Jsonb

    connection.execute(
        "UPDATE embedding_models SET threshold = %s, calibration = %s WHERE id = %s",
        (threshold, Jsonb(details), model_id),
    )


# --- vectors ----------------------------------------------------------------------------------


def put_vectors(
    connection: Connection, kind: Kind, user_id: int, model_id: int, vectors: Mapping[int, Vector]
) -> list[int]:
    """Writes vectors of rows that still exist; returns the ids of those.

    The owners are locked against removal until the transaction ends.
    """
    ids = sorted(vectors)
    key = sql.SQL("key, ") if TABLES[kind].has_keys else sql.SQL("")
    own = sql.SQL("0, ") if TABLES[kind].has_keys else sql.SQL("")
    alive = sql.SQL("AND NOT o.barred") if kind == "turn" else sql.SQL("")
    rows = connection.execute(
        compose(
            kind,
            """
            WITH given AS (
                SELECT id, value::vector AS embedding
                FROM unnest(%(ids)s::bigint[], %(values)s::text[]) AS g (id, value)
            ), alive AS (
                SELECT o.id FROM {owners} o
                WHERE o.user_id = %(user)s AND o.id = ANY(%(ids)s) {alive}
                ORDER BY o.id FOR KEY SHARE
            )
            INSERT INTO {vectors} AS v (user_id, {owner_id}, model_id, {key} embedding)
            SELECT %(user)s, id, %(model)s, {own} embedding FROM given JOIN alive USING (id)
            ORDER BY id
            ON CONFLICT (user_id, {owner_id}, model_id {conflict}) DO UPDATE
            SET embedding = excluded.embedding, attempts = 0, error = '', retry_at = NULL
            RETURNING {owner_id}
            """,
            key=key,
            own=own,
            alive=alive,
        ),
        {
            "ids": ids,
            "values": [vector_text(vectors[owner]) for owner in ids],
            "user": user_id,
            "model": model_id,
        },
    )
    return [row[0] for row in rows]


def put_failures(
    connection: Connection,
    kind: Kind,
    user_id: int,
    model_id: int,
    ids: Sequence[int],
    error: str,
    wait_seconds: float,
) -> None:
    """Notes that these rows could not be embedded; they are tried again after the wait,
    which doubles with each attempt."""
    key = sql.SQL("key, ") if TABLES[kind].has_keys else sql.SQL("")
    own = sql.SQL("0, ") if TABLES[kind].has_keys else sql.SQL("")
    connection.execute(
        compose(
            kind,
            """
            INSERT INTO {vectors} AS v
                   (user_id, {owner_id}, model_id, {key} attempts, error, retry_at)
            SELECT %(user)s, o.id, %(model)s, {own} 1, %(error)s,
                   now() + make_interval(secs => %(wait)s)
            FROM {owners} o WHERE o.user_id = %(user)s AND o.id = ANY(%(ids)s)
            ORDER BY o.id
            ON CONFLICT (user_id, {owner_id}, model_id {conflict}) DO UPDATE
            SET attempts = v.attempts + 1, error = excluded.error,
                retry_at = now() + make_interval(secs => %(wait)s * 2 ^ least(v.attempts, 10))
            WHERE v.embedding IS NULL
            """,
            key=key,
            own=own,
        ),
        {
            "user": user_id,
            "model": model_id,
            "ids": list(ids),
            "error": error,
            "wait": wait_seconds,
        },
    )


def remove_vectors(connection: Connection, kind: Kind, user_id: int, ids: Sequence[int]) -> None:
    """Removes all vectors of these rows, of every model."""
    connection.execute(
        compose(kind, "DELETE FROM {vectors} WHERE user_id = %s AND {owner_id} = ANY(%s)"),
        (user_id, list(ids)),
    )


# --- terms ------------------------------------------------------------------------------------


def language(connection: Connection, user_id: int) -> str:
    """The language whose stemmer made the user's terms."""
    row = connection.execute(
        "SELECT language FROM term_languages WHERE user_id = %s", (user_id,)
    ).fetchone()
    return str(row[0]) if row else "english"


def put_terms(
    connection: Connection,
    kind: Kind,
    user_id: int,
    language: str,
    rows: Mapping[int, Mapping[int, float]],
) -> None:
    """Writes the weights of memories or passages, each with its terms in sorted order."""
    ids = sorted(rows)
    connection.cursor().executemany(
        compose(
            kind,
            """
            INSERT INTO {terms} (user_id, {owner_id}, language, terms, weights)
            VALUES (%s, %s, %s, %b::int[], %s::sparsevec)
            ON CONFLICT (user_id, {owner_id}) DO UPDATE
            SET language = excluded.language, terms = excluded.terms, weights = excluded.weights
            """,
        ),
        [
            (user_id, owner, language, sorted(rows[owner]), sparse_text(rows[owner]))
            for owner in ids
        ],
    )


def remove_terms(connection: Connection, kind: Kind, user_id: int, ids: Sequence[int]) -> None:
    """Removes the terms of these rows."""
    connection.execute(
        compose(kind, "DELETE FROM {terms} WHERE user_id = %s AND {owner_id} = ANY(%s)"),
        (user_id, list(ids)),
    )
