"""The values that the layers hand to each other.

Rows of the database, hits of a search, and the events of a turn. Names are those of the JSON
output; times are aware ``datetime`` values, durations are milliseconds and end in ``_ms``.
This module imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

Vector = Sequence[float]
"""One embedding: ``dimensions`` finite numbers. Not necessarily of unit length."""


class MemoryType(StrEnum):
    """What kind of thing a memory says."""

    FACT = "FACT"
    GOAL = "GOAL"
    PREFERENCE = "PREFERENCE"
    CONTEXT = "CONTEXT"
    EVENT = "EVENT"
    SUMMARY = "SUMMARY"


class MemoryState(StrEnum):
    """Whether a memory may be used. Only ``ACTIVE`` ones are searched by default."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    HELD = "held"


class MemorySource(StrEnum):
    """Where a memory came from."""

    MANUAL = "manual"
    CHAT = "chat"
    IMPORT = "import"


class Role(StrEnum):
    """Who speaks in a stored message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageStatus(StrEnum):
    """How a stored message ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class WorkState(StrEnum):
    """What the worker still has to do with a row.

    ``FAILED`` means: tried as often as allowed; shown in ``memory stats``, retried on demand.
    ``BARRED`` means: never again (a secret, or the source of something forgotten).
    """

    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    BARRED = "barred"


@dataclass(frozen=True, slots=True)
class User:
    """A person with rows of their own."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Memory:
    """One fact about the user, in one row."""

    id: int
    type: MemoryType
    category: str
    subject: str
    content: str
    importance: float
    confidence: float
    state: MemoryState
    source: MemorySource
    session_id: int | None
    message_id: int | None
    superseded_by: int | None
    valid_from_at: datetime | None
    valid_to_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime | None
    access_count: int
    held_reason: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation."""

    id: int
    title: str
    summary: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    turns: int = 0


FORGOTTEN = "[forgotten]"
"""What stands for the words of a message that were forgotten."""


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message of a session."""

    id: int
    session_id: int
    role: Role
    content: str
    status: MessageStatus
    created_at: datetime
    model: str = ""
    tokens: dict[str, int] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    barred: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was ingested."""

    id: int
    name: str
    paths: tuple[str, ...]
    sha256: str
    media_type: str
    title: str
    pages: int
    empty_pages: tuple[int, ...]
    chunks: int
    size_bytes: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that a search found.

    ``similarity`` is the cosine with the query (None when only words found it), ``score`` the
    fused and weighted score, ``rank`` counts from 1. ``explanation`` holds every term.
    """

    memory: Memory
    similarity: float | None
    score: float
    rank: int
    explanation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A past turn that a search found; ``reply`` is the assistant's answer that goes with it."""

    id: int
    session_id: int
    role: Role
    content: str
    created_at: datetime
    similarity: float | None
    score: float
    rank: int
    reply: str = ""
    explanation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A passage of a document that a search found. ``start`` and ``end`` are character offsets."""

    id: int
    document_id: int
    document: str
    page: int | None
    page_label: str
    start: int
    end: int
    content: str
    similarity: float | None
    score: float
    rank: int
    page_end: int | None = None
    heading: str = ""
    explanation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search may return; applied before the vectors are compared. None: no limit.

    ``at`` asks for what was true at that time (superseded memories included).
    """

    types: tuple[MemoryType, ...] = ()
    category: str | None = None
    min_importance: float | None = None
    min_confidence: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    states: tuple[MemoryState, ...] = (MemoryState.ACTIVE,)
    exclude_session: int | None = None
    document_id: int | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """What makes two vectors comparable: all of it. ``id`` is the row in ``embedding_models``."""

    id: int
    name: str
    digest: str
    dimensions: int
    query_prefix: str
    document_prefix: str
    threshold: float | None = None
