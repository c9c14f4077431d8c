"""What a search may return, as conditions inside both of its arms."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, LiteralString

from jarvis.store.vectors import Kind
from jarvis.types import Filters, MemoryState

HOLDS_FROM: LiteralString = (
    "coalesce(o.valid_from, CASE WHEN o.valid_to <= o.created_at THEN '-infinity'"
    " ELSE o.created_at END)"
)
"""Since when a memory ``o`` holds: what was told when it was over already held ever before."""


def _memory_filter(filters: Filters) -> Iterator[LiteralString]:
    if filters.states:
        yield (
            "(o.state = ANY(%(states)s) OR (%(then)s::timestamptz IS NOT NULL"
            " AND o.state = 'superseded' AND " + HOLDS_FROM + " < %(then_end)s"
            " AND o.valid_to > %(then)s))"
        )
    if filters.types:
        yield "o.type = ANY(%(types)s)"
    if filters.category is not None:
        yield "lower(o.category) = lower(%(category)s)"
    if filters.min_importance is not None:
        yield "o.importance >= %(min_importance)s"
    if filters.min_confidence is not None:
        yield "o.confidence >= %(min_confidence)s"
    if filters.since is not None:
        yield "o.created_at >= %(since)s"
    if filters.until is not None:
        yield "o.created_at < %(until)s"
    if filters.at is not None:
        yield HOLDS_FROM + " <= %(at)s"
        yield "(o.valid_to IS NULL OR o.valid_to > %(at)s)"


def _turn_filter(filters: Filters) -> Iterator[LiteralString]:
    yield "o.role = 'user'"
    yield "NOT o.barred"
    if filters.exclude_session is not None:
        yield "o.session_id <> %(exclude_session)s"
    if filters.since is not None:
        yield "o.created_at >= %(since)s"
    if filters.until is not None:
        yield "o.created_at < %(until)s"


def _chunk_filter(filters: Filters) -> Iterator[LiteralString]:
    if filters.document_id is not None:
        yield "o.document_id = %(document_id)s"
    if filters.since is not None or filters.until is not None:
        yield (
            "EXISTS (SELECT FROM documents d WHERE d.user_id = o.user_id AND d.id = o.document_id"
            " AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)"
            " AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s))"
        )


def where(kind: Kind, filters: Filters) -> LiteralString:
    """The condition on a row ``o`` of the kind; its values are ``parameters``."""
    make = {"memory": _memory_filter, "turn": _turn_filter, "chunk": _chunk_filter}[kind]
    parts = list(make(filters))
    return " AND ".join(parts) or "true"


def is_selective(kind: Kind, filters: Filters) -> bool:
    """Whether the filters may leave few rows."""
    if filters.since is not None or filters.until is not None:
        return True
    if kind == "chunk":
        return filters.document_id is not None
    if kind == "turn":
        return False
    return bool(
        filters.types
        or filters.category is not None
        or filters.min_importance is not None
        or filters.min_confidence is not None
        or filters.at is not None
        or MemoryState.ACTIVE not in filters.states
    )


def parameters(
    filters: Filters, valid_in: tuple[datetime, datetime] | None = None
) -> dict[str, Any]:
    """Values for ``where``. ``valid_in``: see ``jarvis.store.search.Request``."""
    states = list(filters.states)
    if filters.at is not None and states == [MemoryState.ACTIVE]:
        states.append(MemoryState.SUPERSEDED)
    if MemoryState.ACTIVE not in states or filters.at is not None:
        valid_in = None
    then, then_end = valid_in or (None, None)
    return {
        "then": then,
        "then_end": then_end,
        "states": [state.value for state in states],
        "types": [type_.value for type_ in filters.types],
        "category": filters.category,
        "min_importance": filters.min_importance,
        "min_confidence": filters.min_confidence,
        "since": filters.since,
        "until": filters.until,
        "at": filters.at,
        "exclude_session": filters.exclude_session,
        "document_id": filters.document_id,
    }
