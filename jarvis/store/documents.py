"""Documents, the paths they were found under, and their passages.

A document is known by the SHA-256 of its bytes; several paths may lead to it. Vectors and terms
hang on its passages by cascading keys and are written through ``jarvis.retrieval.index``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from jarvis.store.database import Connection
from jarvis.store.rows import rows_by
from jarvis.types import Document

MAX_ATTEMPTS = 5
"""Failures to embed a passage after which it is left alone until asked for."""

_COLUMNS = sql.SQL(
    """
    d.id, d.name, d.sha256, d.media_type, d.title, d.pages, d.empty_pages, d.size_bytes,
    d.created_at, d.updated_at,
    ARRAY(SELECT p.path FROM document_paths p
          WHERE p.user_id = d.user_id AND p.document_id = d.id ORDER BY p.path) AS paths,
    (SELECT count(*) FROM chunks c
     WHERE c.user_id = d.user_id AND c.document_id = d.id) AS chunks
    """
)


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What is stored of a file besides its passages. ``details`` holds the places of its pages
    (``pages``: start, end and printed label of each) and ``warnings``."""

    name: str
    sha256: str
    media_type: str
    title: str
    pages: int
    empty_pages: Sequence[int]
    size_bytes: int
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A passage that has no id yet. ``start`` and ``end`` are characters of the text."""

    ordinal: int
    page: int | None
    page_end: int | None
    page_label: str
    heading: str
    start: int
    end: int
    tokens: int
    content: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored passage."""

    id: int
    document_id: int
    ordinal: int
    page: int | None
    page_end: int | None
    page_label: str
    heading: str
    start: int
    end: int
    tokens: int
    content: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A passage that has no vector yet."""

    id: int
    heading: str
    content: str


def _document_of(row: dict[str, Any]) -> Document:
    row["sha256"] = bytes(row["sha256"]).hex()
    row["paths"] = tuple(row["paths"])
    row["empty_pages"] = tuple(row["empty_pages"])
    return Document(**row)


_document_row = rows_by(_document_of)


def get(connection: Connection, user_id: int, document_id: int) -> Document | None:
    """One document, or None."""
    with connection.cursor(row_factory=_document_row) as cursor:
        return cursor.execute(
            sql.SQL("SELECT {} FROM documents d WHERE d.user_id = %s AND d.id = %s").format(
                _COLUMNS
            ),
            (user_id, document_id),
        ).fetchone()


def find_by_content(connection: Connection, user_id: int, sha256: str) -> Document | None:
    """The document with these bytes, or None."""
    with connection.cursor(row_factory=_document_row) as cursor:
        return cursor.execute(
            sql.SQL("SELECT {} FROM documents d WHERE d.user_id = %s AND d.sha256 = %s").format(
                _COLUMNS
            ),
            (user_id, bytes.fromhex(sha256)),
        ).fetchone()


def find_by_path(connection: Connection, user_id: int, path: str) -> Document | None:
    """The document that was last found under ``path``, or None."""
    with connection.cursor(row_factory=_document_row) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM documents d JOIN document_paths q"
                " ON q.user_id = d.user_id AND q.document_id = d.id"
                " WHERE d.user_id = %s AND q.path = %s"
            ).format(_COLUMNS),
            (user_id, path),
        ).fetchone()


def find_by_name(connection: Connection, user_id: int, name: str) -> list[Document]:
    """Documents of that name, whatever the case."""
    with connection.cursor(row_factory=_document_row) as cursor:
        return cursor.execute(
            sql.SQL(
                "SELECT {} FROM documents d WHERE d.user_id = %s AND lower(d.name) = lower(%s)"
                " ORDER BY d.id"
            ).format(_COLUMNS),
            (user_id, name),
        ).fetchall()


def everything(connection: Connection, user_id: int) -> list[Document]:
    """All documents, in the order of their ids."""
    with connection.cursor(row_factory=_document_row) as cursor:
        return cursor.execute(
            sql.SQL("SELECT {} FROM documents d WHERE d.user_id = %s ORDER BY d.id").format(
                _COLUMNS
            ),
            (user_id,),
        ).fetchall()


def lock(tx: Connection, user_id: int) -> None:
    """Lets one transaction at a time change a user's documents; held until it ends."""
    tx.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK, user_id % 2**31))


_LOCK = 0x646F6373  # "docs"


def add(tx: Connection, user_id: int, new: NewDocument) -> int:
    """Stores a document without passages and paths; returns its id."""
    row = tx.execute(
        "INSERT INTO documents (user_id, id, name, sha256, media_type, title, pages, empty_pages,"
        " size_bytes, details)"
        " VALUES (%(user)s, next_id(%(user)s, 'document'), %(name)s, %(sha256)s, %(media_type)s,"
        " %(title)s, %(pages)s, %(empty)s, %(size)s, %(details)s) RETURNING id",
        {"user": user_id, **_values(new)},
    ).fetchone()
    assert row is not None  # noqa: S101 -- RETURNING gives the inserted row
    return int(row[0])


def replace(tx: Connection, user_id: int, document_id: int, new: NewDocument) -> None:
    """Gives a document new contents: its old passages go, with their vectors and terms."""
    tx.execute("DELETE FROM chunks WHERE user_id = %s AND document_id = %s", (user_id, document_id))
    tx.execute(
        "UPDATE documents SET name = %(name)s, sha256 = %(sha256)s, media_type = %(media_type)s,"
        " title = %(title)s, pages = %(pages)s, empty_pages = %(empty)s, size_bytes = %(size)s,"
        " details = %(details)s, updated_at = now() WHERE user_id = %(user)s AND id = %(id)s",
        {"user": user_id, "id": document_id, **_values(new)},
    )


def _values(new: NewDocument) -> dict[str, Any]:
    return {
        "name": new.name,
        "sha256": bytes.fromhex(new.sha256),
        "media_type": new.media_type,
        "title": new.title,
        "pages": new.pages,
        "empty": list(new.empty_pages),
        "size": new.size_bytes,
        "details": Jsonb(dict(new.details)),
    }


def rename(tx: Connection, user_id: int, document_id: int, name: str) -> None:
    """Changes what a document is called."""
    tx.execute(
        "UPDATE documents SET name = %s, updated_at = now() WHERE user_id = %s AND id = %s",
        (name, user_id, document_id),
    )


def put_path(
    tx: Connection, user_id: int, path: str, document_id: int, modified_ns: int, size: int
) -> None:
    """Makes ``path`` lead to a document, wherever it led before."""
    tx.execute(
        "INSERT INTO document_paths (user_id, path, document_id, modified_ns, size_bytes)"
        " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (user_id, path) DO UPDATE"
        " SET document_id = excluded.document_id, modified_ns = excluded.modified_ns,"
        " size_bytes = excluded.size_bytes",
        (user_id, path, document_id, modified_ns, size),
    )


def remove_paths(tx: Connection, user_id: int, paths: Sequence[str]) -> None:
    """Forgets that these paths led anywhere."""
    tx.execute(
        "DELETE FROM document_paths WHERE user_id = %s AND path = ANY(%s)", (user_id, list(paths))
    )


def add_chunks(
    tx: Connection, user_id: int, document_id: int, chunks: Sequence[NewChunk]
) -> list[int]:
    """Stores passages; returns their ids, in their order."""
    if not chunks:
        return []
    # One step for all: the counter's row stays locked until the end of the transaction.
    row = tx.execute(
        "INSERT INTO counters AS c (user_id, kind, last_id) VALUES (%(user)s, 'chunk', %(n)s)"
        " ON CONFLICT (user_id, kind) DO UPDATE SET last_id = c.last_id + %(n)s"
        " RETURNING last_id",
        {"user": user_id, "n": len(chunks)},
    ).fetchone()
    assert row is not None  # noqa: S101 -- RETURNING gives the row
    ids = list(range(int(row[0]) - len(chunks) + 1, int(row[0]) + 1))
    tx.execute(
        """
        INSERT INTO chunks (user_id, document_id, id, ordinal, page, page_end, page_label, heading,
                            start_char, end_char, tokens, content)
        SELECT %(user)s, %(document)s, * FROM unnest(
            %(ids)s::bigint[], %(ordinals)s::int[], %(pages)s::int[], %(ends)s::int[],
            %(labels)s::text[], %(headings)s::text[], %(starts)s::int[], %(stops)s::int[],
            %(tokens)s::int[], %(contents)b::text[])
        """,
        {
            "user": user_id,
            "document": document_id,
            "ids": ids,
            "ordinals": [chunk.ordinal for chunk in chunks],
            "pages": [chunk.page for chunk in chunks],
            "ends": [chunk.page_end for chunk in chunks],
            "labels": [chunk.page_label for chunk in chunks],
            "headings": [chunk.heading for chunk in chunks],
            "starts": [chunk.start for chunk in chunks],
            "stops": [chunk.end for chunk in chunks],
            "tokens": [chunk.tokens for chunk in chunks],
            "contents": [chunk.content for chunk in chunks],
        },
    )
    return ids


def chunks(
    connection: Connection, user_id: int, document_id: int, page: int | None = None
) -> list[Chunk]:
    """The passages of a document in order; with ``page`` those that touch that page."""
    with connection.cursor(row_factory=class_row(Chunk)) as cursor:
        return cursor.execute(
            "SELECT id, document_id, ordinal, page, page_end, page_label, heading,"
            ' start_char AS start, end_char AS "end", tokens, content FROM chunks'
            " WHERE user_id = %(user)s AND document_id = %(id)s"
            " AND (%(page)s::int IS NULL OR %(page)s BETWEEN page AND page_end) ORDER BY ordinal",
            {"user": user_id, "id": document_id, "page": page},
        ).fetchall()


def details(connection: Connection, user_id: int, document_id: int) -> dict[str, Any]:
    """The ``details`` of a document; empty when there is no such document."""
    row = connection.execute(
        "SELECT details FROM documents WHERE user_id = %s AND id = %s", (user_id, document_id)
    ).fetchone()
    return dict(row[0]) if row else {}


def delete(tx: Connection, user_id: int, document_ids: Sequence[int]) -> dict[str, int]:
    """Removes documents with everything that hangs on them; returns the rows per table."""
    found = rows(tx, user_id, document_ids)
    tx.execute(
        "DELETE FROM documents WHERE user_id = %s AND id = ANY(%s)", (user_id, list(document_ids))
    )
    return found


def rows(connection: Connection, user_id: int, document_ids: Sequence[int]) -> dict[str, int]:
    """How many rows each table holds of these documents."""
    found = connection.execute(
        """
        WITH mine AS (
            SELECT id FROM chunks WHERE user_id = %(user)s AND document_id = ANY(%(ids)s)
        )
        SELECT
            (SELECT count(*) FROM documents WHERE user_id = %(user)s AND id = ANY(%(ids)s)),
            (SELECT count(*) FROM document_paths
             WHERE user_id = %(user)s AND document_id = ANY(%(ids)s)),
            (SELECT count(*) FROM mine),
            (SELECT count(*) FROM chunk_vectors v JOIN mine m ON m.id = v.chunk_id
             WHERE v.user_id = %(user)s),
            (SELECT count(*) FROM chunk_terms t JOIN mine m ON m.id = t.chunk_id
             WHERE t.user_id = %(user)s)
        """,
        {"user": user_id, "ids": list(document_ids)},
    ).fetchone()
    assert found is not None  # noqa: S101 -- a query without FROM has one row
    names = ("documents", "document_paths", "chunks", "chunk_vectors", "chunk_terms")
    return dict(zip(names, map(int, found), strict=True))


def remains(connection: Connection, user_id: int, chunk_ids: Sequence[int]) -> int:
    """Rows of any table that still belong to these passages."""
    row = connection.execute(
        """
        SELECT (SELECT count(*) FROM chunks WHERE user_id = %(user)s AND id = ANY(%(ids)s))
             + (SELECT count(*) FROM chunk_vectors
                WHERE user_id = %(user)s AND chunk_id = ANY(%(ids)s))
             + (SELECT count(*) FROM chunk_terms
                WHERE user_id = %(user)s AND chunk_id = ANY(%(ids)s))
        """,
        {"user": user_id, "ids": list(chunk_ids)},
    ).fetchone()
    return int(row[0]) if row else 0


def without_vector(
    connection: Connection,
    user_id: int,
    model_id: int,
    limit: int,
    document_id: int | None = None,
) -> list[Waiting]:
    """Passages that this model has not embedded yet and that may be tried now."""
    with connection.cursor(row_factory=class_row(Waiting)) as cursor:
        return cursor.execute(
            """
            SELECT c.id, c.heading, c.content FROM chunks c
            LEFT JOIN chunk_vectors v
              ON v.user_id = c.user_id AND v.chunk_id = c.id AND v.model_id = %(model)s
            WHERE c.user_id = %(user)s AND v.embedding IS NULL
              AND coalesce(v.attempts, 0) < %(most)s
              AND (v.retry_at IS NULL OR v.retry_at <= now())
              AND (%(document)s::bigint IS NULL OR c.document_id = %(document)s)
            ORDER BY c.id LIMIT %(limit)s
            """,
            {
                "user": user_id,
                "model": model_id,
                "most": MAX_ATTEMPTS,
                "document": document_id,
                "limit": limit,
            },
        ).fetchall()
