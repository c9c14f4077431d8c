"""The queries of the search: statistics of a question's words, and candidates of both arms.

One statement finds the candidates of both arms, joins them, and gives for each its exact cosine
and its BM25 score, so that ranks can be made on the client. Filters stand inside both arms.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import dict_row

from jarvis.store.database import Connection
from jarvis.store.search_filters import is_selective, parameters, where
from jarvis.store.vectors import (
    MAX_INDEXED_DIMENSIONS,
    TERM_SPACE,
    Kind,
    compose,
    sparse_text,
    vector_text,
)
from jarvis.types import EmbeddingModel, Filters, Vector

EXACT_ROWS = 5_000
"""When a filter leaves at most so many rows, comparing each is faster than an index that has to
skip the others, and misses nothing."""

FEW_ROWS = 1_000
"""Rows of a user up to which an index that others fill is not asked."""

INDEX_SECONDS = 60.0
"""How long it is believed that an index is there."""

EXACT_SHARE = 0.02
"""The same as a share of the user's rows, where that is more: of a million rows the index with a
filter that keeps one in a hundred missed every ninth, and took as long (measured)."""

EF_SEARCH: Sequence[tuple[float, int]] = ((30_000, 64), (200_000, 100), (math.inf, 300))
"""Candidates that the HNSW index keeps while it searches, by the rows that a user has at most
(pgvector's default is 40): what it costs is in proportion. Measured recall@10 of 10,000 rows with
64: 0.998, as with 100; of 100,000 with 64: 0.970, with 100: 0.993; of 1,000,000 with 100: 0.883."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of a question's terms: rows of the user, and rows that hold each term."""

    total: int
    holding: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Request:
    """What both arms need.

    Attributes:
        weights: idf of each of the question's terms.
        selecting: the terms that make a row a candidate.
        limit: candidates per arm.
        total: the user's rows, where they are known; 0: not known.
        valid_in: a time that the question names: superseded memories that held then are
            searched too, where active ones are.
    """

    user_id: int
    vector: Vector | None
    model: EmbeddingModel | None
    weights: Mapping[int, float]
    selecting: Sequence[int]
    filters: Filters
    limit: int
    total: int = 0
    valid_in: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that an arm found.

    ``meaning`` is the cosine that ranks it (a turn's best key), ``similarity`` the cosine of the
    text itself; both None without a vector. ``words`` is its BM25 score, ``matched`` the terms
    of the question that it holds. ``row`` holds the columns that a hit needs.
    """

    id: int
    meaning: float | None
    similarity: float | None
    words: float
    matched: frozenset[int]
    row: dict[str, Any] = field(default_factory=dict)


def statistics(
    connection: Connection, user_id: int, terms: Mapping[Kind, Sequence[int]]
) -> dict[Kind, Statistics]:
    """Counts for BM25: what the worker counted, and for the rest the rows as they are now.

    Args:
        terms: a question's terms, for each kind that is searched.
    """
    kinds = tuple(terms)
    values: dict[str, object] = {"user": user_id}
    values |= {f"{kind}_terms": list(terms[kind]) for kind in kinds}
    rows = connection.execute(_counting(kinds), values).fetchall()
    counts: dict[Kind, dict[int, int]] = {kind: {} for kind in kinds}
    for kind, term, number in rows:
        counts[kind][term] = number
    return {kind: Statistics(found.pop(0, 0), found) for kind, found in counts.items()}


@functools.cache
def _counting(kinds: tuple[Kind, ...]) -> bytes:
    return sql.SQL(" UNION ALL ").join(map(_counting_one, kinds)).as_bytes(None)


def _counting_one(kind: Kind) -> sql.Composed:
    """The number of rows, as the term 0, and the rows of each term of one kind."""
    return compose(
        kind,
        """
        SELECT {name}, 0, coalesce(
            (SELECT total FROM term_statistics WHERE user_id = %(user)s AND kind = {name}),
            (SELECT count(*) FROM {terms} WHERE user_id = %(user)s {keyed}))
        UNION ALL
        SELECT {name}, q.term, coalesce(
            (SELECT f.total FROM term_frequencies f
             WHERE f.user_id = %(user)s AND f.kind = {name} AND f.term = q.term),
            (SELECT count(*) FROM {terms} t
             WHERE t.user_id = %(user)s AND t.terms @> ARRAY[q.term]))
        FROM unnest({asked}::int[]) AS q (term)
        """,
        name=sql.Literal(kind),
        asked=sql.Placeholder(f"{kind}_terms"),
        keyed=sql.SQL("AND weights IS NOT NULL") if kind == "turn" else sql.SQL(""),
    )


# --- the dense arm ----------------------------------------------------------------------------


def index_name(kind: Kind, model_id: int) -> str:
    """The name of the HNSW index over one kind's vectors of one model."""
    return f"{kind}_vectors_of_model_{model_id}"


_known_indexes: dict[tuple[str, str], float] = {}


def has_index(connection: Connection, kind: Kind, model_id: int) -> bool:
    """Whether the index is there and complete. Yes is believed for a minute."""
    name = index_name(kind, model_id)
    key = (f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}", name)
    if time.monotonic() < _known_indexes.get(key, 0.0):
        return True
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (name,)
    ).fetchone()
    if not (row and row[0]):
        return False
    _known_indexes[key] = time.monotonic() + INDEX_SECONDS
    return True


def few_rows(connection: Connection, kind: Kind, user_id: int, filters: Filters, most: int) -> bool:
    """Whether at most ``most`` rows of the user pass the filters."""
    row = connection.execute(
        compose(
            kind,
            "SELECT count(*) FROM (SELECT FROM {owners} o WHERE o.user_id = %(user)s"
            " AND {filter} LIMIT %(most)s) AS first_rows",
            filter=sql.SQL(where(kind, filters)),
        ),
        parameters(filters) | {"user": user_id, "most": most + 1},
    ).fetchone()
    return row is not None and row[0] <= most


@dataclass(frozen=True, slots=True)
class _Shape:
    """All of a search that stands in its statement and not in its parameters.

    ``indexed`` None: there is no vector.
    """

    kind: Kind
    where: LiteralString
    limit: int
    model_id: int
    dimensions: int
    indexed: bool | None


def _dense(shape: _Shape) -> sql.Composable:
    """The nearest rows by vector, as (id)."""
    if shape.indexed is None:
        return _NO_DENSE
    order: sql.Composable
    if shape.indexed:
        halfvec = sql.SQL("halfvec({})").format(sql.Literal(shape.dimensions))
        order = sql.SQL("v.embedding::{0} <=> %(vector)s::{0}").format(halfvec)
    else:
        order = sql.SQL("v.embedding <=> %(vector)s::vector")
    # A turn has up to two keys here: fetch as many more, then keep the better.
    limit = shape.limit * (2 if shape.kind == "turn" else 1)
    return compose(
        shape.kind,
        """
        SELECT v.{owner_id} AS id
        FROM {vectors} v JOIN {owners} o ON o.user_id = v.user_id AND o.id = v.{owner_id}
        WHERE v.user_id = %(user)s AND v.model_id = {model} AND v.embedding IS NOT NULL
          {keys} AND {filter}
        ORDER BY {order} LIMIT {limit}
        """,
        model=sql.Literal(shape.model_id),
        keys=sql.SQL("AND v.key > 0" if shape.kind == "turn" else ""),
        filter=sql.SQL(shape.where),
        order=order,
        limit=sql.Literal(limit),
    )


_NO_DENSE = sql.SQL("SELECT NULL::bigint AS id WHERE false")


# --- both arms --------------------------------------------------------------------------------

_ROW: Mapping[Kind, sql.SQL] = {
    "memory": sql.SQL(
        "o.type, o.category, o.subject, o.content, o.importance, o.confidence, o.state,"
        " o.source, o.session_id, o.message_id, o.superseded_by, o.valid_from AS valid_from_at,"
        " o.valid_to AS valid_to_at, o.created_at, o.updated_at, o.last_accessed_at,"
        " o.access_count, o.held_reason"
    ),
    "turn": sql.SQL(
        "o.session_id, o.role, o.content, o.created_at, coalesce((SELECT r.content FROM messages r"
        " WHERE r.user_id = o.user_id AND r.session_id = o.session_id"
        # An answer follows soon: where there is none, the session is not read to its end.
        " AND r.id > o.id AND r.id < o.id + 200"
        " AND r.reply_to = o.id AND r.role = 'assistant' AND NOT r.barred"
        " ORDER BY r.id LIMIT 1), '') AS reply"
    ),
    "chunk": sql.SQL(
        "o.document_id, o.ordinal, d.name AS document, o.page, o.page_end, o.page_label,"
        " o.heading, o.start_char, o.end_char, o.content, d.created_at"
    ),
}

_MORE_TABLES: Mapping[Kind, sql.SQL] = {
    "memory": sql.SQL(""),
    "turn": sql.SQL(""),
    "chunk": sql.SQL("JOIN documents d ON d.user_id = o.user_id AND d.id = o.document_id"),
}


def _cosines(shape: _Shape) -> sql.Composed:
    """The columns ``similarity`` and ``meaning``, exact, of a row found by either arm."""
    if shape.indexed is None:
        return sql.Composed([sql.SQL("NULL::float8 AS similarity, NULL::float8 AS meaning")])
    turn = shape.kind == "turn"
    own, best = (
        compose(
            shape.kind,
            "(SELECT 1 - min(v.embedding <=> %(vector)s::vector) FROM {vectors} v"
            " WHERE v.user_id = %(user)s AND v.{owner_id} = o.id AND v.model_id = {model} {key})",
            model=sql.Literal(shape.model_id),
            key=sql.SQL(key),
        )
        for key in (("AND v.key = 0", "AND v.key > 0") if turn else ("", "AND false"))
    )
    return sql.SQL("{} AS similarity, {} AS meaning").format(own, best)


@functools.lru_cache(maxsize=256)
def _statement(shape: _Shape) -> bytes:
    """The statement of one shape; making it costs as much as running it in a small store."""
    kind = shape.kind
    composed = compose(
        kind,
        """
        WITH dense AS MATERIALIZED ({dense}),
        worded AS MATERIALIZED (
            -- Sorted before it is joined: then only the best rows are looked up.
            SELECT s.id FROM (
                SELECT t.{owner_id} AS id, t.weights <#> %(question)s::sparsevec AS score
                FROM {terms} t
                WHERE t.user_id = %(user)s AND t.terms && %(selecting)s::int[]
                ORDER BY score, id OFFSET 0
            ) AS s JOIN {owners} o ON o.user_id = %(user)s AND o.id = s.id
            WHERE {filter} ORDER BY s.score, s.id LIMIT {limit}
        )
        SELECT o.id, {cosines},
               coalesce(-(t.weights <#> %(question)s::sparsevec), 0) AS words,
               ARRAY(SELECT a FROM unnest(%(asked)s::int[]) AS a WHERE a = ANY(t.terms)) AS matched,
               {row}
        FROM (SELECT id FROM dense UNION SELECT id FROM worded) AS found
        JOIN {owners} o ON o.user_id = %(user)s AND o.id = found.id {more}
        LEFT JOIN {terms} t ON t.user_id = %(user)s AND t.{owner_id} = found.id
        """,
        dense=_dense(shape),
        filter=sql.SQL(shape.where),
        limit=sql.Literal(shape.limit),
        cosines=_cosines(shape),
        row=_ROW[kind],
        more=_MORE_TABLES[kind],
    )
    return composed.as_bytes(None)


# The arms of one turn ask with the same vector.
_question_text = functools.lru_cache(maxsize=4)(vector_text)


def candidates(connection: Connection, kind: Kind, request: Request) -> tuple[list[Candidate], str]:
    """The rows that either arm found, each with both scores, in no order.

    Returns:
        The candidates, and how the dense arm searched: ``index``, ``exact``, ``exact: …`` with a
        reason a user should hear, or ``none`` without a vector.
    """
    values = parameters(request.filters, request.valid_in) | {
        "user": request.user_id,
        "selecting": sorted(request.selecting),
        "asked": sorted(request.weights),
        "question": sparse_text(request.weights) if request.weights else f"{{}}/{TERM_SPACE}",
        "vector": _question_text(tuple(request.vector)) if request.vector is not None else None,
    }
    model = request.model if request.vector is not None else None
    how = "none" if model is None else _choose(connection, kind, request, model)
    shape = _Shape(
        kind=kind,
        where=where(kind, request.filters),
        limit=request.limit,
        model_id=model.id if model else 0,
        dimensions=model.dimensions if model else 0,
        indexed=None if model is None else how == "index",
    )
    if how != "index":
        return _fetch(connection, shape, values), how
    with _index_settings(connection, ef_search(request.total)):
        found = _fetch(connection, shape, values)
    if sum(candidate.similarity is not None for candidate in found) < request.limit:
        # The index stopped early, or there are no more rows: only an exact search knows.
        return _fetch(connection, replace(shape, indexed=False), values), "exact"
    return found, how


def _choose(connection: Connection, kind: Kind, request: Request, model: EmbeddingModel) -> str:
    if model.dimensions > MAX_INDEXED_DIMENSIONS:
        return f"exact: {model.dimensions} dimensions are more than an index can hold"
    if 0 < request.total <= FEW_ROWS or not has_index(connection, kind, model.id):
        return "exact"
    most = max(EXACT_ROWS, int(EXACT_SHARE * request.total))
    if is_selective(kind, request.filters) and few_rows(
        connection, kind, request.user_id, request.filters, most
    ):
        return "exact"
    return "index"


def ef_search(rows: int) -> int:
    """``EF_SEARCH`` for a user with so many rows; 0: nobody counted them, they may be many."""
    return next(ef for most, ef in EF_SEARCH if (rows or 100_000) <= most)


_prepared: weakref.WeakKeyDictionary[Connection, int] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def _index_settings(connection: Connection, ef_search: int) -> Iterator[None]:
    """Sets how the index is read: once a connection, or for one transaction where the server's
    connections are pooled and another client may have the next."""
    pooled = connection.prepare_threshold is None
    if not pooled and _prepared.get(connection) == ef_search:
        yield
        return
    with connection.transaction() if pooled else contextlib.nullcontext():
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, %s),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', %s)",
            (str(ef_search), pooled, pooled),
        )
        if not pooled:
            _prepared[connection] = ef_search
        yield


def _fetch(connection: Connection, shape: _Shape, parameters: Mapping[str, Any]) -> list[Candidate]:
    with connection.cursor(row_factory=dict_row) as cursor:
        # After a few uses psycopg prepares it; the planner then weighs a plan for these values
        # against one for all, so that a filter or a user with few rows keeps a plan of its own.
        rows = cursor.execute(_statement(shape), parameters).fetchall()
    found = []
    for row in rows:
        similarity, meaning = row.pop("similarity"), row.pop("meaning")
        found.append(
            Candidate(
                id=row.pop("id"),
                meaning=similarity if meaning is None else meaning,
                similarity=similarity,
                words=row.pop("words"),
                matched=frozenset(row.pop("matched")),
                row=row,
            )
        )
    return found
