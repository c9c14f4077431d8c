"""The long-term memory as a user works with it: add, list, show, edit, statistics.

Whatever is stored here is found by its words at once; its vector is made at once too when the
embedding model answers, and by the worker otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.security.text import clean_line
from jarvis.store import extraction as unread
from jarvis.store import memories, memory_lists, sessions, tombstones
from jarvis.store.memories import NewMemory
from jarvis.types import (
    Memory,
    MemorySource,
    MemoryState,
    MemoryType,
    Message,
    Session,
    WorkState,
)

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection

MANUAL_IMPORTANCE = 0.6
"""Importance of what is added by hand, unless a rule knows better: somebody took the trouble."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one text. ``created`` False: it was known already, as ``memory``.

    ``closed`` are the memories that the new one took the place of. A new one may be over
    already: its ``superseded_by`` is what took its place.
    """

    memory: Memory
    created: bool
    closed: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """A memory with where it comes from."""

    memory: Memory
    session: Session | None = None
    message: Message | None = None


@dataclass(slots=True)
class Report:
    """What was added, and what a person should be told about it."""

    added: list[Added] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def describe(
    content: str,
    *,
    type: MemoryType | None = None,
    category: str | None = None,
    importance: float | None = None,
    at: datetime | None = None,
    source: MemorySource = MemorySource.MANUAL,
) -> NewMemory:
    """A memory with the kind that its words suggest where none is given.

    Raises:
        UsageError: there are no words, or a number is out of range.
    """
    content = clean_line(content)
    if not content:
        raise UsageError("a memory needs words", 'jarvis memory add "I live in …"')
    for name, value in (("importance", importance),):
        if value is not None and not 0 <= value <= 1:
            raise UsageError(f"{name} must be between 0 and 1, not {value:g}")
    # Imported here: the rules cost more than listing what is stored.
    from jarvis.services.compare import canonical
    from jarvis.services.extraction import lasting
    from jarvis.services.extraction.clauses import subject_of

    said = canonical(content)
    guess = lasting.judge(said)
    return NewMemory(
        content=content,
        type=type or guess.type,
        category=clean_line(category) if category is not None else guess.category,
        subject=subject_of(said),
        importance=importance
        if importance is not None
        else max(guess.importance, MANUAL_IMPORTANCE),
        source=source,
        valid_from_at=at,
    )


def hold(new: NewMemory, reason: str) -> NewMemory:
    """The memory as one that waits for the user's decision; no search and no prompt sees it."""
    return replace(new, state=MemoryState.HELD, held_reason=reason, check_state=WorkState.SKIPPED)


def store(tx: Connection, user_id: int, new: NewMemory) -> Added:
    """Stores one memory with its words, in the caller's transaction."""
    from jarvis.retrieval import index

    memory, created = memories.add(tx, user_id, new)
    if created and memory.state is MemoryState.ACTIVE:
        index.write_terms(tx, "memory", user_id, memory.id, memory.content)
    return Added(memory, created)


def add(app: App, new: Sequence[NewMemory]) -> Report:
    """Stores what a user says by hand; embeds it at once where that is possible.

    A tombstone of the same words is cleared: the user wants the fact back. Everything is stored,
    or nothing.
    """
    report = Report()
    user_id = app.user.id
    with app.database.transaction() as tx:
        for item in new:
            tombstones.unbury(tx, user_id, memories.content_hash(item.content))
            report.added.append(store(tx, user_id, item))
    fresh = [
        entry.memory
        for entry in report.added
        if entry.created and entry.memory.state is MemoryState.ACTIVE
    ]
    if not fresh:
        return report
    problem = embed(app, fresh)
    if problem:
        report.notes.append(f"stored; the vector follows when the model answers ({problem})")
        wake(app)
        return report
    _settle(app, report)
    return report


def _settle(app: App, report: Report) -> None:
    """Looks for near duplicates and contradictions of what was just added."""
    from jarvis.services import changes

    undecided = False
    for position, entry in enumerate(report.added):
        if not entry.created:
            continue
        outcome = changes.settle(app, entry.memory.id)
        undecided = undecided or outcome.open
        closed = {row.id: row for row in outcome.closed}
        if outcome.same_as is not None:
            report.added[position] = Added(outcome.same_as, False)
        elif closed:
            memory = closed.pop(entry.memory.id, entry.memory)
            report.added[position] = Added(memory, True, tuple(closed.values()))
    if undecided:
        wake(app)


def embed(app: App, rows: Sequence[Memory]) -> str:
    """Makes and stores the vectors of ``rows``; returns why that failed, or ""."""
    from jarvis.retrieval import index

    try:
        embedder = app.embedder()
        vectors = embedder.embed_documents([row.content for row in rows])
        model = app.embedding_model()
        with app.database.transaction() as tx:
            index.write_vectors(
                tx,
                "memory",
                app.user.id,
                model.id,
                {row.id: vector for row, vector in zip(rows, vectors, strict=True)},
            )
    except JarvisError as error:
        return error.message
    return ""


def wake(app: App) -> None:
    """Starts the worker where it can be started."""
    try:
        app.wake_worker()
    except (JarvisError, OSError):
        return  # the next command that has work starts it


def show(app: App, memory_id: int) -> Origin:
    """One memory with the session and the message it came from.

    Raises:
        NotFound: there is none of that id.
    """
    user = app.existing_user()
    with app.database.connection() as connection:
        memory = memories.get(connection, user.id, memory_id)
        if memory is None:
            raise missing([memory_id])
        session = (
            sessions.get(connection, user.id, memory.session_id)
            if memory.session_id is not None
            else None
        )
        message = (
            sessions.message(connection, user.id, memory.message_id)
            if memory.message_id is not None
            else None
        )
    return Origin(memory, session, message)


def missing(ids: Sequence[int]) -> NotFound:
    """The error for ids that nobody has."""
    names = ", ".join(map(str, ids))
    return NotFound(
        f"there is no memory {names}" if len(ids) == 1 else f"there are no memories {names}",
        "jarvis memory list",
    )


def history(app: App, memory_id: int) -> list[Memory]:
    """A memory with what it took the place of and what took its place, oldest first.

    Raises:
        NotFound: there is none of that id.
    """
    user = app.existing_user()
    with app.database.connection() as connection:
        found = memories.history(connection, user.id, memory_id)
    if not found:
        raise missing([memory_id])
    return found


def select(app: App, **filters: Any) -> list[Memory]:
    """Memories that pass the filters; see ``jarvis.store.memory_lists.select``.

    Raises:
        UsageError: they cannot be sorted by that.
    """
    sort = filters.get("sort", "id")
    if sort not in memory_lists.SORTS:
        raise UsageError(f"cannot sort by {sort!r}", "one of: " + ", ".join(memory_lists.SORTS))
    user = app.existing_user()
    with app.database.connection() as connection:
        return memory_lists.select(connection, user.id, **filters)


def edit(
    app: App,
    memory_id: int,
    *,
    content: str | None = None,
    type: MemoryType | None = None,
    category: str | None = None,
    importance: float | None = None,
    valid_from_at: datetime | None = None,
    valid_to_at: datetime | None = None,
) -> tuple[Memory, str]:
    """Changes a memory in place; its words and vector follow.

    Returns:
        The memory as it is now, and what a person should be told.

    Raises:
        NotFound: there is none of that id.
        UsageError: another memory says the same, or a value cannot be.
    """
    from jarvis.retrieval import index

    if content is not None:
        content = clean_line(content)
        if not content:
            raise UsageError("a memory needs words", f"jarvis memory forget {memory_id} removes it")
    if importance is not None and not 0 <= importance <= 1:
        raise UsageError(f"importance must be between 0 and 1, not {importance:g}")
    user_id = app.user.id
    try:
        with app.database.transaction() as tx:
            changed = memories.update(
                tx,
                user_id,
                memory_id,
                content=content,
                type=type,
                category=clean_line(category) if category is not None else None,
                importance=importance,
                valid_from_at=valid_from_at,
                valid_to_at=valid_to_at,
            )
            if changed is None:
                raise missing([memory_id])
            if content is not None:
                tombstones.unbury(tx, user_id, memories.content_hash(content))
                index.remove(tx, "memory", user_id, [memory_id])
                if changed.state in {MemoryState.ACTIVE, MemoryState.SUPERSEDED}:
                    index.write_terms(tx, "memory", user_id, memory_id, content)
    except memories.SameContent:
        raise UsageError(
            "another memory says exactly that already", "jarvis memory list shows it"
        ) from None
    note = ""
    if content is not None and changed.state in {MemoryState.ACTIVE, MemoryState.SUPERSEDED}:
        problem = embed(app, [changed])
        if problem:
            note = f"changed; the vector follows when the model answers ({problem})"
            wake(app)
    return changed, note


# --- statistics --------------------------------------------------------------------------------


def stats(app: App) -> dict[str, Any]:
    """Counts of memories, of what was forgotten, and of messages by how far they are read."""
    user = app.existing_user()
    with app.database.connection() as connection:
        found: dict[str, Any] = dict(memory_lists.counts(connection, user.id))
        found["forgotten"] = tombstones.count_tombstones(connection, user.id)
        found["messages"] = unread.states(connection, user.id)
        found["failures"] = [
            {"message_id": message_id, "error": error}
            for message_id, error in unread.failures(connection, user.id)
        ]
    return found


def extract_now(app: App, *, again: bool = False) -> int:
    """Puts messages to the front that failed or wait (``again``: all of them); how many."""
    with app.database.transaction() as tx:
        count = unread.retry_failed(tx, app.user.id)
        if again:
            count += unread.ask_again(tx, app.user.id)
    return count


# --- ids ---------------------------------------------------------------------------------------

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_LARGEST_RANGE = 100_000


def parse_ids(words: Iterable[str]) -> tuple[list[int], list[range]]:
    """Reads ids and ranges: ``3``, ``5-9``, ``3,5-9``.

    Returns:
        Single ids, each of which has to exist, and ranges, which may have gaps.

    Raises:
        UsageError: something is neither.
    """
    single: list[int] = []
    ranges: list[range] = []
    for word in words:
        for part in filter(None, re.split(r"[,\s]+", word)):
            match = _RANGE.fullmatch(part)
            if match is None:
                raise UsageError(f"{part!r} is no id", "ids are numbers: 3, 5-9")
            first, last = int(match[1]), int(match[2] or match[1])
            if match[2] is None:
                single.append(first)
            elif last < first or last - first > _LARGEST_RANGE:
                raise UsageError(f"{part} is no range of ids", "write the smaller one first: 5-9")
            else:
                ranges.append(range(first, last + 1))
    return list(dict.fromkeys(single)), ranges


def has_secret(texts: Iterable[str]) -> str:
    """The kind of the first secret in ``texts``, or ""."""
    from jarvis.security import secrets

    for text in texts:
        for secret in secrets.find(text):
            return secret.kind
    return ""


def unread_messages(app: App) -> int:
    """How many messages were not read for facts yet."""
    user = app.existing_user()
    with app.database.connection() as connection:
        return unread.states(connection, user.id).get("pending", 0)
