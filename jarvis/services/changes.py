"""Keeps memories true: near duplicates are merged, what is over is closed with its date.

The vectors of a new memory propose what it may repeat or end; ``compare`` decides. Only what
that leaves open goes to the chat model, which answers with small numbers under a schema and has
to answer the same when the two sentences change places. In doubt both memories stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jarvis import log
from jarvis.errors import JarvisError
from jarvis.services.compare import Relation, compare, may_end, says_no_more
from jarvis.services.extraction import bounded
from jarvis.store import comparing, memories, memory_lists
from jarvis.types import Memory, MemorySource, MemoryState, MemoryType, WorkState

if TYPE_CHECKING:
    from jarvis.llm.protocols import ChatModel
    from jarvis.services.app import App

SLOT_ROWS = 2000
"""Latest memories that are looked through by grammar for what a change of address, job … ends."""

PROPOSED = 12
"""Neighbours that are compared with a new memory."""

MIN_COSINE = 0.35
"""Less alike than that, two memories are not compared at all. A pair that has to merge has 0.646;
"moved to Oslo" and "lives in Bergen" have about 0.4 with all-minilm."""

ASK_COSINE = 0.75
"""Less alike than that, what the rules leave open stays open."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a new memory.

    ``same_as``: it was merged into that one and is gone. ``closed`` are the memories that it
    ended, or itself where a later one had ended it already. ``open``: the rules did not settle
    it, and nobody was asked; the worker asks the model.
    """

    same_as: Memory | None = None
    closed: tuple[Memory, ...] = ()
    open: bool = False


Judge = Callable[[str, str], Relation]
"""Decides what the rules left open, for the newer and the older fact."""


def settle(app: App, memory_id: int, judge: Judge | None = None) -> Outcome:
    """Compares a memory with its neighbours, once; does nothing when that was done already.

    Args:
        judge: asked about what the rules leave open; None: the memory goes on waiting for one.
    """
    user_id = app.user.id
    model = app.embedding_model()
    with app.database.connection() as connection:
        memory = memories.get(connection, user_id, memory_id)
        if memory is None or memory.state is not MemoryState.ACTIVE:
            return Outcome()
        near = comparing.neighbours(
            connection, user_id, memory_id, model.id, limit=PROPOSED, min_cosine=MIN_COSINE
        )
        if may_end(memory.content):
            known = {memory_id, *(other.id for other, _ in near)}
            rest = memory_lists.select(connection, user_id, sort="created", limit=SLOT_ROWS)
            near += [(other, 0.0) for other in rest if other.id not in known]
    same: list[int] = []
    ended: list[int] = []
    later: list[int] = []
    undecided = False
    for other, cosine in near:
        newer = _is_newer(memory, other)
        pair = (memory, other) if newer else (other, memory)
        if MemoryType.SUMMARY in {memory.type, other.type}:
            continue
        relation = compare(pair[0].content, pair[1].content)
        if relation is Relation.OPEN and cosine >= ASK_COSINE:
            undecided = undecided or judge is None
            if judge is not None:
                relation = _judged(judge, *pair)
        if relation is Relation.SAME:
            same.append(other.id)
        elif relation is Relation.ENDS:
            (ended if newer else later).append(other.id)
    return _apply(app, memory_id, same, ended, later, undecided=undecided)


def _judged(judge: Judge, new: Memory, old: Memory) -> Relation:
    """What the model says, but for a merger that would lose something: "likes" is not "owns"."""
    relation = judge(new.content, old.content)
    alike = (new.type, new.category) == (old.type, old.category)
    if relation is Relation.SAME and not (alike and says_no_more(new.content, old.content)):
        return Relation.DIFFERENT
    return relation


def _is_newer(memory: Memory, other: Memory) -> bool:
    """By the date from which it holds, else by when it was said."""
    if memory.valid_from_at is not None and other.valid_from_at is not None:
        return memory.valid_from_at >= other.valid_from_at
    return (memory.created_at, memory.id) >= (other.created_at, other.id)


def _apply(
    app: App,
    memory_id: int,
    same: list[int],
    ended: list[int],
    later: list[int],
    *,
    undecided: bool,
) -> Outcome:
    """Merges and closes in one transaction, on rows as they are then."""
    user_id = app.user.id
    everyone = [memory_id, *same, *ended, *later]
    with app.database.transaction() as tx:
        locked = {row.id: row for row in comparing.lock(tx, user_id, everyone)}
        memory = locked.get(memory_id)
        if memory is None or memory.state is not MemoryState.ACTIVE:
            return Outcome()
        twins = [locked[i] for i in same if i in locked and locked[i].state is MemoryState.ACTIVE]
        older = [row for row in twins if not _is_newer(row, memory)]
        if older:
            kept = min(older, key=lambda row: row.id)
            comparing.merge(tx, user_id, into=kept.id, other=memory)
            memories.delete(tx, user_id, [memory_id])
            return Outcome(same_as=memories.get(tx, user_id, kept.id))
        # A newer one that still waits will find this one; one that was compared before this
        # one had its vector will not.
        waiting = comparing.unchecked(tx, user_id, [row.id for row in twins])
        for twin in twins:
            if twin.id not in waiting:
                comparing.merge(tx, user_id, into=memory_id, other=twin)
                memories.delete(tx, user_id, [twin.id])
        closed = []
        at = memory.valid_from_at or memory.created_at
        for old_id in ended:
            row = memories.supersede(tx, user_id, old_id, memory_id, at)
            if row is not None:
                closed.append(row)
        # Told afterwards, and over by then: the first of the later ones took its place.
        after = [locked[i] for i in later if i in locked and _dated_later(locked[i], memory)]
        if after:
            next_one = min(after, key=lambda row: (row.valid_from_at or row.created_at, row.id))
            at = next_one.valid_from_at or next_one.created_at
            row = memories.supersede(tx, user_id, memory_id, next_one.id, at)
            closed += [row] if row is not None else []
        if not undecided:
            comparing.checked(tx, user_id, memory_id, WorkState.DONE)
    return Outcome(closed=tuple(closed), open=undecided)


def _dated_later(other: Memory, memory: Memory) -> bool:
    """Whether ``other`` is there and holds from a later date on, and both dates were given.

    Not for what is said in a chat: who lives in Bergen "since 2020" there corrects what was
    known of 2024, and in doubt both stay.
    """
    return (
        memory.source is not MemorySource.CHAT
        and other.state is MemoryState.ACTIVE
        and other.valid_from_at is not None
        and memory.valid_from_at is not None
        and memory.valid_from_at < other.valid_from_at
    )


# --- what the rules leave open -----------------------------------------------------------------

_ASK = (
    "Two notes about one person. Compare them. Answer 1 if both say the same thing in other"
    " words. Answer 2 if both can be true together and say different things. Answer 3 if the"
    " first makes the second untrue."
)
_EXAMPLES = (
    ("User shears alpacas", "User shears woolly alpacas", 1),
    ("User umpires cricket matches", "User umpires cricket matches and teaches fencing", 2),
    ("User takes size 45 shoes now", "User takes size 44 shoes", 3),
)
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "enum": [1, 2, 3]}},
    "required": ["answer"],
}
_RELATIONS = {1: Relation.SAME, 2: Relation.DIFFERENT, 3: Relation.ENDS}


def by_model(
    model: ChatModel, *, timeout: float = 15.0, stop: Callable[[], bool] = lambda: False
) -> Judge:
    """A judge that asks the chat model, both ways round; what does not agree stays open.

    Args:
        timeout: seconds for an answer from its first token on.
        stop: looked at while waiting.

    The judge raises ``bounded.Interrupted`` when ``stop`` became true.
    """

    def ask(first: str, second: str) -> int:
        return _ask(model, first, second, timeout, stop)

    def judge(new: str, old: str) -> Relation:
        relation = _RELATIONS.get(ask(new, old), Relation.OPEN)
        if relation is Relation.SAME and ask(old, new) != 1:
            return Relation.OPEN
        if relation is Relation.ENDS and ask(old, new) != 3:
            return Relation.OPEN
        return relation

    return judge


def _ask(
    model: ChatModel, first: str, second: str, timeout: float, stop: Callable[[], bool]
) -> int:
    from jarvis.llm.protocols import ChatMessage

    asked = [ChatMessage("system", _ASK)]
    for one, two, answer in _EXAMPLES:
        asked.append(ChatMessage("user", f"First: {one}\nSecond: {two}"))
        asked.append(ChatMessage("assistant", json.dumps({"answer": answer})))
    asked.append(ChatMessage("user", f"First: {first}\nSecond: {second}"))
    stream = model.stream(
        asked,
        schema=_SCHEMA,
        options={"temperature": 0, "num_predict": 12},
        think=False,
        background=True,
    )
    reply = "".join(chunk.text for chunk in bounded.chunks(stream, timeout=timeout, stop=stop))
    try:
        return int(json.loads(reply)["answer"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0


# --- the worker's job --------------------------------------------------------------------------


class ChangesJob:
    """Compares memories that got their vector with the others, oldest first."""

    name = "compare memories"

    def pending(self, app: App) -> int:
        """How many memories have a vector and were not compared yet."""
        with app.database.connection() as connection:
            return comparing.count_unchecked(connection, app.user.id)

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Compares one memory; returns 1, or 0 when none waits."""
        with app.database.connection() as connection:
            waiting = comparing.next_unchecked(connection, app.user.id, 1)
        if not waiting or stop():
            return 0
        judge: Judge | None = None
        try:
            judge = by_model(app.chat_model(), timeout=app.config.memory.extract_timeout, stop=stop)
        except JarvisError as error:
            log.get("changes").info("compared by rules alone: %s", error.message)
        try:
            settle(app, waiting[0], judge)
        except bounded.Interrupted:
            return 0
        with app.database.transaction() as tx:
            comparing.checked(tx, app.user.id, waiting[0], WorkState.DONE)
        return 1


def job() -> ChangesJob:
    """The worker's job."""
    return ChangesJob()
