"""``search_memories``, the SQL function for psql, made for the embedding model in use."""

from __future__ import annotations

from psycopg import sql

from jarvis.store.database import Connection
from jarvis.store.vectors import MAX_INDEXED_DIMENSIONS
from jarvis.types import EmbeddingModel

_FUNCTION_LOCK = 0x6A61_7266_756E  # "jarfun"

_RESULT = sql.SQL(
    "TABLE (id bigint, type text, category text, content text, importance real,"
    " confidence real, similarity float8, created_at timestamptz)"
)


def function_model(connection: Connection) -> int | None:
    """The model that ``search_memories`` compares with, or None where there is no function."""
    row = connection.execute(
        "SELECT substring(d.description FROM 'model ([0-9]+)')::bigint"
        " FROM pg_proc p JOIN pg_description d ON d.objoid = p.oid"
        " WHERE p.proname = 'search_memories' AND p.pronamespace = current_schema()::regnamespace"
        " AND d.classoid = 'pg_proc'::regclass LIMIT 1"
    ).fetchone()
    return row[0] if row else None


def make_function(connection: Connection, model: EmbeddingModel) -> None:
    """Makes ``search_memories`` for one model: plain SQL, so that the planner inlines it and
    uses that model's index.

    Args:
        connection: of the tables' owner.
    """
    indexed = model.dimensions <= MAX_INDEXED_DIMENSIONS
    cast = sql.SQL("halfvec({})" if indexed else "vector({})").format(sql.Literal(model.dimensions))
    names = {
        "result": _RESULT,
        "cast": cast,
        "model": sql.Literal(model.id),
        "note": sql.Literal(
            f"Active memories nearest to a vector of {model.name} (model {model.id})."
        ),
    }
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FUNCTION_LOCK,))
        connection.execute(_FUNCTION.format(**names))


_FUNCTION = sql.SQL("""
CREATE OR REPLACE FUNCTION search_memories(
    p_user text, p_embedding vector, p_limit int DEFAULT 5, p_min_similarity float8 DEFAULT 0.5,
    p_type text DEFAULT NULL, p_category text DEFAULT NULL,
    p_min_importance float8 DEFAULT 0, p_min_confidence float8 DEFAULT 0
) RETURNS {result} LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT near.* FROM (
        SELECT m.id, m.type, m.category, m.content, m.importance, m.confidence,
               1 - (v.embedding::{cast} <=> p_embedding::{cast}) AS similarity, m.created_at
        FROM memory_vectors v
        JOIN memories m ON m.user_id = v.user_id AND m.id = v.memory_id
        WHERE v.model_id = {model}
          AND v.user_id = (SELECT u.user_id FROM users u WHERE u.name = p_user)
          AND m.state = 'active'
          AND (p_type IS NULL OR m.type = p_type)
          AND (p_category IS NULL OR m.category = p_category)
          AND m.importance >= p_min_importance AND m.confidence >= p_min_confidence
        ORDER BY v.embedding::{cast} <=> p_embedding::{cast}
        LIMIT p_limit
    ) AS near WHERE near.similarity >= p_min_similarity
$$;

CREATE OR REPLACE FUNCTION search_memories(
    p_user text, p_memory bigint, p_limit int DEFAULT 5, p_min_similarity float8 DEFAULT 0.5
) RETURNS {result} LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT near.* FROM (
        SELECT m.id, m.type, m.category, m.content, m.importance, m.confidence,
               1 - (v.embedding::{cast} <=> (
                   SELECT a.embedding FROM memory_vectors a
                   WHERE a.model_id = {model} AND a.memory_id = p_memory AND a.user_id =
                         (SELECT u.user_id FROM users u WHERE u.name = p_user))::{cast}
               ) AS similarity, m.created_at
        FROM memory_vectors v
        JOIN memories m ON m.user_id = v.user_id AND m.id = v.memory_id
        WHERE v.model_id = {model}
          AND v.user_id = (SELECT u.user_id FROM users u WHERE u.name = p_user)
          AND m.state = 'active' AND m.id <> p_memory
        ORDER BY v.embedding::{cast} <=> (
            SELECT a.embedding FROM memory_vectors a
            WHERE a.model_id = {model} AND a.memory_id = p_memory AND a.user_id =
                  (SELECT u.user_id FROM users u WHERE u.name = p_user))::{cast}
        LIMIT p_limit
    ) AS near WHERE near.similarity >= p_min_similarity
$$;

-- A vector that is typed without a cast would fit both of the above, and so neither.
CREATE OR REPLACE FUNCTION search_memories(
    p_user text, p_embedding text, p_limit int DEFAULT 5, p_min_similarity float8 DEFAULT 0.5
) RETURNS {result} LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM search_memories(p_user, p_embedding::vector, p_limit, p_min_similarity)
$$;

COMMENT ON FUNCTION search_memories(text, vector, int, float8, text, text, float8, float8)
IS {note};
COMMENT ON FUNCTION search_memories(text, text, int, float8) IS {note};
COMMENT ON FUNCTION search_memories(text, bigint, int, float8) IS {note};
""")
