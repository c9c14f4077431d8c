"""What keeps the search good: rows without vectors, statistics, indexes, the SQL function.

The worker calls this, and ``jarvis reindex``. Nothing here takes a lock that a reader feels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors, sql

from jarvis.store.database import Connection
from jarvis.store.search import index_name
from jarvis.store.vectors import MAX_INDEXED_DIMENSIONS, Kind, compose
from jarvis.types import EmbeddingModel

INDEX_FROM = 2_000
"""Vectors of a model from which on an index pays: fewer are compared one by one in a moment."""

COUNT_FROM = 1_000
"""Rows of a user from which on term frequencies are counted ahead; fewer are counted when asked."""

RECOUNT_SHARE = 0.02
"""Change of a user's rows after which the statistics are counted again."""

FREQUENT = 20
"""Rows that hold a term from which on its count is kept; a rarer one is counted when asked."""

MAX_ATTEMPTS = 5
"""Attempts at embedding one row before the worker leaves it to ``jarvis reindex``."""

BUILD_MEMORY = 256 * 2**20
"""Bytes for building an index, at least: 100,000 vectors of 384 dimensions fit."""

BUILD_SHARE = 0.25
"""Share of this machine's memory that building an index may take at most."""

GRAPH_BYTES = 1_000
"""What pgvector holds of one row while it builds, besides its numbers (m = 16)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row that something is to be made of. ``heading`` stands above a passage's content."""

    id: int
    content: str
    heading: str

    @property
    def text(self) -> str:
        """What is embedded and indexed, as ``jarvis.ingest.chunker.embedding_text`` makes it."""
        return f"{self.heading}\n{self.content}" if self.heading else self.content


_HEADING: dict[Kind, sql.SQL] = {
    "memory": sql.SQL("''"),
    "turn": sql.SQL("''"),
    "chunk": sql.SQL("o.heading"),
}

_EMBEDDABLE: dict[Kind, sql.SQL] = {
    "memory": sql.SQL("o.state <> 'held'"),
    "turn": sql.SQL("o.role <> 'tool' AND NOT o.barred"),
    "chunk": sql.SQL("true"),
}


def waiting(
    connection: Connection,
    kind: Kind,
    user_id: int,
    model_id: int,
    limit: int,
    *,
    after: int = 0,
    again: bool = False,
) -> list[Waiting]:
    """Rows that the model has not embedded yet, by id.

    Args:
        after: only rows with a larger id.
        again: also those that failed before and whose time to retry has not come.
    """
    rows = connection.execute(
        compose(
            kind,
            """
            SELECT o.id, o.content, {heading} FROM {owners} o
            WHERE o.user_id = %(user)s AND o.id > %(after)s AND {embeddable} AND NOT EXISTS (
                SELECT FROM {vectors} v
                WHERE v.user_id = %(user)s AND v.{owner_id} = o.id AND v.model_id = %(model)s
                  {own} AND (v.embedding IS NOT NULL
                       OR (NOT %(again)s AND (v.attempts >= %(most)s OR v.retry_at > now()))))
            ORDER BY o.id LIMIT %(limit)s
            """,
            heading=_HEADING[kind],
            embeddable=_EMBEDDABLE[kind],
            own=sql.SQL("AND v.key = 0" if kind == "turn" else ""),
        ),
        {
            "user": user_id,
            "after": after,
            "model": model_id,
            "again": again,
            "most": MAX_ATTEMPTS,
            "limit": limit,
        },
    )
    return [Waiting(*row) for row in rows]


def texts(
    connection: Connection, kind: Kind, user_id: int, *, after: int, limit: int
) -> list[Waiting]:
    """Rows that a search may reach, with their text, by id, from ``after`` on."""
    rows = connection.execute(
        compose(
            kind,
            "SELECT o.id, o.content, {heading} FROM {owners} o WHERE o.user_id = %s AND o.id > %s"
            " AND {embeddable} ORDER BY o.id LIMIT %s",
            heading=_HEADING[kind],
            embeddable=_EMBEDDABLE[kind],
        ),
        (user_id, after, limit),
    )
    return [Waiting(*row) for row in rows]


def count_waiting(
    connection: Connection, kind: Kind, user_id: int, model_id: int, *, again: bool = False
) -> int:
    """How many rows ``waiting`` would give."""
    row = connection.execute(
        compose(
            kind,
            """
            SELECT count(*) FROM {owners} o
            WHERE o.user_id = %(user)s AND {embeddable} AND NOT EXISTS (
                SELECT FROM {vectors} v
                WHERE v.user_id = %(user)s AND v.{owner_id} = o.id AND v.model_id = %(model)s
                  {own} AND (v.embedding IS NOT NULL
                       OR (NOT %(again)s AND (v.attempts >= %(most)s OR v.retry_at > now()))))
            """,
            embeddable=_EMBEDDABLE[kind],
            own=sql.SQL("AND v.key = 0" if kind == "turn" else ""),
        ),
        {"user": user_id, "model": model_id, "again": again, "most": MAX_ATTEMPTS},
    ).fetchone()
    return int(row[0]) if row else 0


def unchanged(
    connection: Connection, kind: Kind, user_id: int, rows: Sequence[Waiting]
) -> set[int]:
    """Those rows whose text is still the one that was read, locked until the transaction ends."""
    found = connection.execute(
        compose(
            kind,
            """
            SELECT o.id FROM {owners} o
            JOIN unnest(%(ids)s::bigint[], %(contents)s::text[]) AS given (id, content)
              ON given.id = o.id AND given.content = o.content
            WHERE o.user_id = %(user)s ORDER BY o.id FOR SHARE OF o
            """,
        ),
        {
            "user": user_id,
            "ids": [row.id for row in rows],
            "contents": [row.content for row in rows],
        },
    )
    return {row[0] for row in found}


def failures(connection: Connection, kind: Kind, user_id: int, model_id: int) -> int:
    """Rows that the worker has given up embedding."""
    row = connection.execute(
        compose(
            kind,
            "SELECT count(*) FROM {vectors} WHERE user_id = %s AND model_id = %s"
            " AND embedding IS NULL AND attempts >= %s",
        ),
        (user_id, model_id, MAX_ATTEMPTS),
    ).fetchone()
    return int(row[0]) if row else 0


def forget_other_models(connection: Connection, kind: Kind, user_id: int, model_id: int) -> int:
    """Deletes the user's vectors of every other model; returns how many."""
    return connection.execute(
        compose(kind, "DELETE FROM {vectors} WHERE user_id = %s AND model_id <> %s"),
        (user_id, model_id),
    ).rowcount


# --- statistics -------------------------------------------------------------------------------


def changed_share(connection: Connection, kind: Kind, user_id: int) -> tuple[int, float]:
    """The user's rows, and the share that came or went since they were counted (1: never)."""
    row = connection.execute(
        compose(
            kind,
            """
            SELECT count(*), count(*) FILTER (WHERE t.{owner_id} > s.last_id), max(s.total)
            FROM {terms} t LEFT JOIN term_statistics s
              ON s.user_id = t.user_id AND s.kind = %(kind)s
            WHERE t.user_id = %(user)s {keyed}
            """,
            keyed=sql.SQL("AND t.weights IS NOT NULL" if kind == "turn" else ""),
        ),
        {"user": user_id, "kind": kind},
    ).fetchone()
    total, new, counted = row or (0, 0, None)
    if counted is None:
        return total, 1.0
    gone = counted - (total - new)
    return total, (new + max(0, gone)) / max(1, counted)


def has_statistics(connection: Connection, kind: Kind, user_id: int) -> bool:
    """Whether the user's terms were counted ahead."""
    row = connection.execute(
        "SELECT FROM term_statistics WHERE user_id = %s AND kind = %s", (user_id, kind)
    ).fetchone()
    return row is not None


def recount(connection: Connection, kind: Kind, user_id: int) -> None:
    """Counts the user's rows and frequent terms. Call it in a transaction."""
    connection.execute(
        compose(
            kind,
            """
            INSERT INTO term_statistics AS s (user_id, kind, total, last_id, counted_at)
            SELECT %(user)s, %(kind)s, count(*), coalesce(max({owner_id}), 0), now()
            FROM {terms} WHERE user_id = %(user)s {keyed}
            ON CONFLICT (user_id, kind) DO UPDATE
            SET total = excluded.total, last_id = excluded.last_id, counted_at = now()
            """,
            keyed=sql.SQL("AND weights IS NOT NULL" if kind == "turn" else ""),
        ),
        {"user": user_id, "kind": kind},
    )
    connection.execute(
        "DELETE FROM term_frequencies WHERE user_id = %s AND kind = %s", (user_id, kind)
    )
    connection.execute(
        compose(
            kind,
            """
            INSERT INTO term_frequencies (user_id, kind, term, total)
            SELECT %(user)s, %(kind)s, term, count(*)
            FROM {terms} t, unnest(t.terms) AS term
            WHERE t.user_id = %(user)s GROUP BY term HAVING count(*) >= %(frequent)s
            ORDER BY term
            """,
        ),
        {"user": user_id, "kind": kind, "frequent": FREQUENT},
    )


def forget_statistics(connection: Connection, kind: Kind, user_id: int) -> None:
    """Removes the counts of a store that has become small."""
    connection.execute(
        "DELETE FROM term_statistics WHERE user_id = %s AND kind = %s", (user_id, kind)
    )


def set_language(connection: Connection, user_id: int, language: str) -> None:
    """Notes which stemmer makes the user's terms from now on."""
    connection.execute(
        "INSERT INTO term_languages (user_id, language) VALUES (%s, %s)"
        " ON CONFLICT (user_id) DO UPDATE SET language = excluded.language",
        (user_id, language),
    )


def in_other_language(
    connection: Connection, kind: Kind, user_id: int, language: str, limit: int
) -> list[Waiting]:
    """Rows whose terms another stemmer made, or none although they should have some."""
    rows = connection.execute(
        compose(
            kind,
            """
            SELECT o.id, o.content, {heading} FROM {owners} o LEFT JOIN {terms} t
              ON t.user_id = o.user_id AND t.{owner_id} = o.id
            WHERE o.user_id = %(user)s AND {embeddable}
              AND t.language IS DISTINCT FROM %(language)s
            ORDER BY o.id LIMIT %(limit)s
            """,
            heading=_HEADING[kind],
            embeddable=_EMBEDDABLE[kind],
        ),
        {"user": user_id, "language": language, "limit": limit},
    )
    return [Waiting(*row) for row in rows]


# --- indexes ----------------------------------------------------------------------------------


def wants_index(connection: Connection, kind: Kind, model: EmbeddingModel) -> bool:
    """Whether there are enough vectors for an index that is not there, or is not complete."""
    if model.dimensions > MAX_INDEXED_DIMENSIONS:
        return False
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
        (index_name(kind, model.id),),
    ).fetchone()
    if row is not None:
        return not row[0]
    row = connection.execute(
        compose(
            kind,
            "SELECT count(*) FROM (SELECT FROM {vectors}"
            " WHERE model_id = %s AND embedding IS NOT NULL LIMIT %s) AS first_rows",
        ),
        (model.id, INDEX_FROM),
    ).fetchone()
    return row is not None and row[0] >= INDEX_FROM


def build_index(connection: Connection, kind: Kind, model: EmbeddingModel) -> None:
    """Builds the HNSW index of one model without blocking writers.

    Args:
        connection: of the tables' owner, outside any transaction.

    A half-built one, left by a process that died, is dropped first.
    """
    name = sql.Identifier(index_name(kind, model.id))
    memory = f"{_build_memory(connection, kind, model) // 2**20}MB"
    connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", (memory,))
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
    build = compose(
        kind,
        "CREATE INDEX CONCURRENTLY {name} ON {vectors} USING hnsw"
        " ((embedding::halfvec({dimensions})) halfvec_cosine_ops)"
        " WITH (m = 16, ef_construction = 64) WHERE model_id = {model} {keys}",
        name=name,
        dimensions=sql.Literal(model.dimensions),
        model=sql.Literal(model.id),
        keys=sql.SQL("AND key > 0" if kind == "turn" else ""),
    )
    try:
        connection.execute(build)
    except (errors.DiskFull, errors.InsufficientResources):
        # Parallel workers share memory that a container may not have (/dev/shm of 64 MB).
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
        connection.execute("SET max_parallel_maintenance_workers = 0")
        connection.execute(build)
    connection.execute(compose(kind, "ANALYZE {vectors}"))


def _build_memory(connection: Connection, kind: Kind, model: EmbeddingModel) -> int:
    """Bytes in which the whole graph fits: what does not fit is inserted row by row, many times
    slower. A server on another machine is asked for no more than the least."""
    if not connection.info.host.startswith("/"):
        return BUILD_MEMORY
    row = connection.execute(
        compose(kind, "SELECT count(*) FROM {vectors} WHERE model_id = %s"), (model.id,)
    ).fetchone()
    wanted = (row[0] if row else 0) * (2 * model.dimensions + GRAPH_BYTES)
    most = int(BUILD_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return max(BUILD_MEMORY, min(wanted, most))


def drop_index(connection: Connection, kind: Kind, model_id: int) -> None:
    """Drops the index of a model that nobody uses any more."""
    connection.execute(
        sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(
            sql.Identifier(index_name(kind, model_id))
        )
    )


def index_sizes(connection: Connection) -> dict[str, int]:
    """Bytes of every index of vectors and terms, by name."""
    rows = connection.execute(
        "SELECT c.relname, pg_relation_size(c.oid) FROM pg_class c"
        " WHERE c.relkind = 'i' AND (c.relname ~ '_vectors_of_model_' OR c.relname ~ '_by_term$')"
        " ORDER BY 1"
    )
    return {row[0]: row[1] for row in rows}
