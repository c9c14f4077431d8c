"""What waits for the user's decision: facts that read like secrets or like orders."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jarvis.errors import NotFound, UsageError
from jarvis.security.text import clean_line
from jarvis.services import memory
from jarvis.services.memory import Added
from jarvis.store import memories, tombstones
from jarvis.types import Memory, MemoryState

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection


def held(app: App) -> list[Memory]:
    """What waits for the user's decision."""
    return memory.select(app, states=(MemoryState.HELD,))


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of held memories: those that are believed now, and the ids of the others."""

    kept: tuple[Memory, ...]
    dropped: tuple[int, ...]


def decide(
    app: App,
    *,
    accepted: Sequence[str] = (),
    dropped: Sequence[str] = (),
    edited: int | None = None,
    words: str = "",
) -> Decided:
    """Decides on several at once. Everything is looked up before: a wrong id decides nothing.

    Args:
        accepted, dropped: ids and ranges; a range may have gaps.
        edited: one to keep in other ``words``.

    Raises:
        NotFound: an id is not held, or a range holds nothing that is.
        UsageError: a word is no id, one is named twice, or the words are missing.
    """
    if edited is None and words:
        first, _, rest = words.partition(" ")
        if first in ("accept", "drop", "edit"):
            way = f"jarvis memory review --{first} {rest or 'ID'}"
            raise UsageError(f"{first} is an option", way)
        raise UsageError("words are for --edit ID", "jarvis memory review --edit 3 “…”")
    if edited is not None and not clean_line(words):
        raise UsageError("there are no words", f"jarvis memory review --edit {edited} “…”")
    there = {row.id for row in held(app)}
    keep, throw = _waiting(app, accepted, there), _waiting(app, dropped, there)
    changed = _waiting(app, [str(edited)] if edited is not None else [], there)
    if len({*keep, *throw, *changed}) < len(keep) + len(throw) + len(changed):
        raise UsageError("one memory is decided on twice", "name each id once")
    kept = [accept(app, number).memory for number in keep]
    kept += [accept(app, number, words).memory for number in changed]
    return Decided(tuple(kept), tuple(drop(app, number).id for number in throw))


def _waiting(app: App, words: Sequence[str], there: Set[int]) -> list[int]:
    """The held memories (``there``) that ids and ranges name."""
    single, ranges = memory.parse_ids(words)
    for number in single:
        if number not in there:
            memory.show(app, number)  # one that is not there at all is said to be so
            raise _not_held_error(number)
    found = set(single)
    for part in ranges:
        here = there & set(part)
        if not here:
            raise NotFound(
                f"nothing from {part.start} to {part.stop - 1} is held",
                "jarvis memory review lists what is",
            )
        found |= here
    return sorted(found)


def accept(app: App, memory_id: int, content: str | None = None) -> Added:
    """Makes a held memory active, in the user's own words where they are given.

    Raises:
        NotFound: nothing of that id is held.
    """
    user_id = app.user.id
    with app.database.transaction() as tx:
        entry = _held(tx, user_id, memory_id)
        text = clean_line(content) if content is not None else entry.content
        if not text:
            raise UsageError("a memory needs words", f"jarvis memory review --drop {memory_id}")
        digest = memories.content_hash(text)
        twin = memories.find_by_hash(tx, user_id, digest)
        tombstones.unbury(tx, user_id, digest)
        if twin is not None:
            memories.delete(tx, user_id, [memory_id])
            return Added(twin, False)
        from jarvis.retrieval import index

        # The words are given even where they stay: it was never compared with the others.
        changed = memories.update(
            tx, user_id, memory_id, content=text, state=MemoryState.ACTIVE, held_reason=""
        )
        assert changed is not None  # noqa: S101 -- found in this transaction
        index.write_terms(tx, "memory", user_id, memory_id, text)
    if memory.embed(app, [changed]):
        memory.wake(app)
    return Added(changed, True)


def drop(app: App, memory_id: int) -> Memory:
    """Throws a held memory away, for good: it is not held again.

    Raises:
        NotFound: nothing of that id is held.
    """
    user_id = app.user.id
    with app.database.transaction() as tx:
        entry = _held(tx, user_id, memory_id)
        tombstones.bury(tx, user_id, [memories.content_hash(entry.content)])
        memories.delete(tx, user_id, [memory_id])
    return entry


def _held(tx: Connection, user_id: int, memory_id: int) -> Memory:
    entry = memories.get(tx, user_id, memory_id)
    if entry is None:
        raise memory.missing([memory_id])
    if entry.state is not MemoryState.HELD:
        raise _not_held_error(memory_id)
    return entry


def _not_held_error(memory_id: int) -> NotFound:
    return NotFound(f"memory {memory_id} is not held", "jarvis memory review lists what is")
