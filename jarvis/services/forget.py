"""Forgetting that can be proven.

A forgotten fact goes with its vectors, words and pending work, in whatever state it is stored.
The messages that say it are barred: they stay readable in their session, but no search, no
prompt of another turn and no extraction reaches them, and they leave the keys of their
neighbours. Summaries and the worker's titles of those sessions are made anew without them. A
tombstone (a hash under the user's own random key) keeps the fact from being read again.
Afterwards everything that could still find it is asked, and the report says what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from jarvis.errors import JarvisError, UsageError
from jarvis.services import completions, memory
from jarvis.services.compare import same_sense
from jarvis.services.extraction.checks import content_stems, stem
from jarvis.services.extraction.clauses import candidates
from jarvis.services.extraction.cutting import sentences, words_of
from jarvis.store import extraction as unread
from jarvis.store import forgetting, memories, memory_lists, tombstones
from jarvis.types import FORGOTTEN, Memory, MemorySource, Vector

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went.

    ``rows`` counts by table what was deleted, ``barred`` are the messages that say it,
    ``redacted`` those of them whose words are gone too, ``found`` is what still finds it after
    all (empty: proven).
    """

    memories: tuple[Memory, ...]
    rows: dict[str, int] = field(default_factory=dict)
    barred: tuple[int, ...] = ()
    redacted: tuple[int, ...] = ()
    found: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether nothing finds it any more."""
        return not self.found


@dataclass(frozen=True, slots=True)
class _Fact:
    """What is forgotten, as it may be said elsewhere.

    ``telling``: its words are enough to know it by (two weighty ones, or a name). "User has a
    dog" is not: not everything about a dog says it.
    """

    content: str
    stems: frozenset[str]
    telling: bool

    @classmethod
    def of(cls, content: str) -> _Fact:
        stems = frozenset(content_stems(content))
        named = any(word[:1].isupper() for word in words_of(content)[1:])
        return cls(content, stems, len(stems) > 1 or (bool(stems) and named))

    def said_in(self, text: str, *, reply: bool = False) -> bool:
        """Whether ``text`` says it; ``reply``: as an answer to a message that does."""
        if (self.telling or reply) and self.stems:
            if not self.content.isascii() and all(s in text.casefold() for s in self.stems):
                return True
            for sentence, _ in sentences(text):
                if self.stems <= {stem(word) for word in words_of(sentence)}:
                    return True
        folded = self.content.casefold()
        return any(clause.text.casefold() == folded for clause in candidates(text))

    def repeated_by(self, row: Memory) -> bool:
        """Whether another memory says it, and maybe more. What was added by hand stands alone."""
        return (
            row.source is not MemorySource.MANUAL
            and self.telling
            and self.stems <= set(content_stems(row.content))
            and same_sense(self.content, row.content)
        )


def resolve(app: App, words: Sequence[str]) -> list[Memory]:
    """The memories that ids and ranges name.

    Raises:
        NotFound: an id, or every id of a range, names none.
        UsageError: a word is no id.
    """
    single, ranges = memory.parse_ids(words)
    user = app.existing_user()
    with app.database.connection() as connection:
        found = {row.id: row for row in memories.get_many(connection, user.id, single)}
        absent = [number for number in single if number not in found]
        if absent:
            raise memory.missing(absent)
        for part in ranges:
            rows = memories.get_many(connection, user.id, list(part))
            if not rows:
                raise memory.missing([part.start, part.stop - 1])
            found |= {row.id: row for row in rows}
    return [found[number] for number in sorted(found)]


def matching(app: App, query: str) -> list[Memory]:
    """The memories, of any state, that a search by ``--query`` would forget: for a preview.

    Every word of the query has to stand in the memory, in any inflection.
    """
    wanted = {stem(word) for word in words_of(query)}
    if not wanted:
        raise UsageError("there is nothing to look for", "jarvis memory forget --query WORDS")
    return [
        row
        for row in memory.select(app, states=())
        if wanted <= {stem(word) for word in words_of(row.content)}
    ]


def everything(app: App) -> list[Memory]:
    """All memories of the user, in every state."""
    return memory.select(app, states=())


def forget(app: App, rows: Sequence[Memory], *, with_source: bool = False) -> Forgotten:
    """Forgets memories, in one transaction, and looks whether anything still finds them.

    Args:
        with_source: the words of the messages that say it are redacted too.
    """
    user_id = app.user.id
    facts = [_Fact.of(content) for content in dict.fromkeys(row.content for row in rows)]
    digests = [memories.content_hash(fact.content) for fact in facts]
    with app.database.transaction() as tx:
        named = {row.id for row in rows} | set(forgetting.twins(tx, user_id, digests))
        named |= _repeating(tx, user_id, facts)
        gone = memories.get_many(tx, user_id, sorted(named))
        ids = [row.id for row in gone]
        counted = forgetting.count_rows(tx, user_id, ids)
        saying = _messages(tx, user_id, gone, facts)
        barred = _bar(tx, user_id, saying, counted)
        talks = forgetting.sessions_of(tx, user_id, saying)
        counted |= _rebuild(tx, user_id, talks, facts)
        counted["tombstones"] = tombstones.bury(tx, user_id, digests)
        deleted = memories.delete(tx, user_id, ids)
        counted["memories"] = counted.get("memories", 0) + len(deleted)
        redacted = forgetting.redact(tx, user_id, saying, FORGOTTEN) if with_source else []
    completions.purge(app.paths)
    _recount(app)
    return Forgotten(
        memories=tuple(gone),
        rows={name: count for name, count in counted.items() if count},
        barred=tuple(barred),
        redacted=tuple(redacted),
        found=tuple(verify(app, [fact.content for fact in facts])),
    )


def _repeating(tx: Connection, user_id: int, facts: Sequence[_Fact]) -> set[int]:
    """Memories that say a fact in more words ("lives in Vigo, in the old town")."""
    found: set[int] = set()
    for fact in facts:
        for row in memory_lists.with_text(tx, user_id, _needle(fact)):
            if fact.repeated_by(row):
                found.add(row.id)
    return found


def _messages(
    tx: Connection, user_id: int, gone: Sequence[Memory], facts: Sequence[_Fact]
) -> list[int]:
    """The messages that say what is forgotten: its sources, and whatever repeats its words."""
    found = {row.message_id for row in gone if row.message_id is not None}
    found &= set(forgetting.existing_messages(tx, user_id, sorted(found)))
    for fact in facts:
        holding = forgetting.messages_with(tx, user_id, _needle(fact))
        found |= {number for number, text, _ in holding if fact.said_in(text)}
        found |= {
            number
            for number, text, reply_to in holding
            if reply_to in found and fact.said_in(text, reply=True)
        }
    return sorted(found)


def _needle(fact: _Fact) -> str:
    """The part of the fact's longest word that every inflection of it keeps."""
    longest = max(fact.stems, key=lambda s: (len(s), s), default=fact.content.strip())
    return longest[: max(3, len(longest) - 2)] if longest.isascii() else longest[:2]


def _bar(
    tx: Connection, user_id: int, message_ids: Sequence[int], counted: dict[str, int]
) -> list[int]:
    from jarvis.retrieval import index

    if not message_ids:
        return []
    for name, count in forgetting.count_message_rows(tx, user_id, message_ids).items():
        counted[name] = counted.get(name, 0) + count
    index.remove(tx, "turn", user_id, message_ids)
    forgetting.mark_forgotten(tx, user_id, message_ids)
    return unread.bar(tx, user_id, message_ids)


def bar_answers(
    tx: Connection, user_id: int, message_ids: Sequence[int], *, redacted: bool = False
) -> tuple[list[int], dict[str, int]]:
    """Keeps answers out of every search and prompt, as the messages that say a forgotten fact.

    Args:
        redacted: their words go, too.

    Returns:
        The ids that were not barred before, and by table how many rows went.
    """
    counted: dict[str, int] = {}
    barred = _bar(tx, user_id, message_ids, counted)
    talks = forgetting.sessions_of(tx, user_id, message_ids)
    counted |= _rebuild(tx, user_id, talks, ())
    if redacted:
        forgetting.redact(tx, user_id, message_ids, FORGOTTEN)
    return barred, counted


def _rebuild(
    tx: Connection, user_id: int, sessions: Sequence[int], facts: Sequence[_Fact]
) -> dict[str, int]:
    """Has the worker write summaries and titles anew; summaries of closed sessions go."""
    titled = [
        session_id
        for session_id, title in forgetting.worker_titles(tx, user_id)
        if session_id in sessions or any(fact.said_in(title, reply=True) for fact in facts)
    ]
    summarised = forgetting.summary_memories(tx, user_id, sessions)
    memories.delete(tx, user_id, summarised)
    return {
        "session titles": forgetting.clear_titles(tx, user_id, titled),
        "session summaries": forgetting.clear_summaries(tx, user_id, sessions),
        "memories": len(summarised),
    }


def _recount(app: App) -> None:
    """Document frequencies are counted at once, so that no term of it is left in them."""
    from jarvis.retrieval import index

    with app.database.transaction() as tx:
        index.recount(tx, "memory", app.user.id)
        index.recount(tx, "turn", app.user.id)


def verify(app: App, contents: Sequence[str]) -> list[str]:
    """Asks every way to a fact whether it is still there; returns where it is.

    Looks through the rows of every table, and searches memories and past turns with the fact's
    own words, by words and by meaning where the model answers.
    """
    from jarvis.retrieval import Query

    found: list[str] = []
    user_id = app.user.id
    vectors = _vectors(app, contents)
    for number, content in enumerate(contents):
        fact = _Fact.of(content)
        with app.database.connection() as connection:
            if forgetting.twins(connection, user_id, [memories.content_hash(content)]):
                found.append("a memory")
            found += [
                f"memory {row.id}"
                for row in memory_lists.with_text(connection, user_id, _needle(fact))
                if fact.repeated_by(row)
            ]
            found += [
                place
                for place, text in forgetting.texts_with(connection, user_id, _needle(fact))
                if fact.said_in(text)
            ]
        query = Query(content, vectors[number], datetime.now().astimezone())
        model = app.embedding_model() if vectors[number] is not None else None
        hits = app.retriever.memories(user_id, query, model, limit=20, gate=False)
        found += [f"memory {hit.memory.id}" for hit in hits if hit.memory.content == content]
        turns = app.retriever.turns(user_id, query, model, limit=20, gate=False)
        found += [f"message {turn.id}" for turn in turns if fact.said_in(turn.content)]
    return list(dict.fromkeys(found))


def _vectors(app: App, contents: Sequence[str]) -> list[Vector | None]:
    if len(contents) > 50:
        return [None] * len(contents)  # the wipe: its words and its rows are proof enough
    try:
        embedder = app.embedder()
        return [embedder.embed_query(content) for content in contents]
    except JarvisError:
        return [None] * len(contents)
