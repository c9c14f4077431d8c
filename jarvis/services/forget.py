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
from jarvis.services.extraction.checks import content_stems, stem
from jarvis.services.extraction.clauses import words_of
from jarvis.store import extraction as unread
from jarvis.store import forgetting, memories
from jarvis.types import Memory

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection

REDACTION = "[forgotten]"
"""What stands in a message whose words were redacted with ``--with-source``."""


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
    contents = list(dict.fromkeys(row.content for row in rows))
    digests = [memories.content_hash(content) for content in contents]
    with app.database.transaction() as tx:
        ids = sorted({row.id for row in rows} | set(forgetting.twins(tx, user_id, digests)))
        gone = memories.get_many(tx, user_id, ids)
        counted = forgetting.count_rows(tx, user_id, ids)
        saying = _messages(tx, user_id, gone, contents)
        barred = _bar(tx, user_id, saying, counted)
        sessions = forgetting.sessions_of(tx, user_id, saying)
        counted |= _rebuild(tx, user_id, sessions, contents)
        counted["tombstones"] = memories.bury(tx, user_id, digests)
        deleted = memories.delete(tx, user_id, ids)
        counted["memories"] = counted.get("memories", 0) + len(deleted)
        redacted = forgetting.redact(tx, user_id, saying, REDACTION) if with_source else []
    completions.purge(app.paths)
    _recount(app)
    return Forgotten(
        memories=tuple(gone),
        rows={name: count for name, count in counted.items() if count},
        barred=tuple(barred),
        redacted=tuple(redacted),
        found=tuple(verify(app, contents)),
    )


def _messages(
    tx: Connection, user_id: int, gone: Sequence[Memory], contents: Sequence[str]
) -> list[int]:
    """The messages that say what is forgotten: its sources, and whatever repeats its words."""
    found = {row.message_id for row in gone if row.message_id is not None}
    found &= set(forgetting.existing_messages(tx, user_id, sorted(found)))
    for content in contents:
        stems = content_stems(content)
        for message_id, text in forgetting.messages_with(tx, user_id, _needle(content)):
            if says(text, stems):
                found.add(message_id)
    return sorted(found)


def _needle(content: str) -> str:
    """The part of the fact's longest word that every inflection of it keeps."""
    stems = content_stems(content) or [word.casefold() for word in words_of(content)]
    longest = max(stems, key=len, default=content.strip())
    return longest[: max(3, len(longest) - 2)] if longest.isascii() else longest[:2]


def says(text: str, stems: Sequence[str]) -> bool:
    """Whether a text has every weighty word of a fact."""
    if not stems:
        return False
    if any(not s.isascii() for s in stems) and all(s in text.casefold() for s in stems):
        return True
    return set(stems) <= {stem(word) for word in words_of(text)}


def _bar(
    tx: Connection, user_id: int, message_ids: Sequence[int], counted: dict[str, int]
) -> list[int]:
    from jarvis.retrieval import index

    if not message_ids:
        return []
    for name, count in forgetting.count_message_rows(tx, user_id, message_ids).items():
        counted[name] = counted.get(name, 0) + count
    index.remove(tx, "turn", user_id, message_ids)
    return unread.bar(tx, user_id, message_ids)


def _rebuild(
    tx: Connection, user_id: int, sessions: Sequence[int], contents: Sequence[str]
) -> dict[str, int]:
    """Has the worker write summaries and titles anew; summaries of closed sessions go."""
    stems = [content_stems(content) for content in contents]
    titled = [
        session_id
        for session_id, title in forgetting.worker_titles(tx, user_id)
        if session_id in sessions or any(says(title, wanted) for wanted in stems)
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
        stems = content_stems(content)
        with app.database.connection() as connection:
            digest = memories.content_hash(content)
            if forgetting.twins(connection, user_id, [digest]):
                found.append("a memory")
            for place, text in forgetting.texts_with(connection, user_id, _needle(content)):
                if says(text, stems):
                    found.append(place)
        query = Query(content, vectors[number], datetime.now().astimezone())
        model = app.embedding_model() if vectors[number] is not None else None
        hits = app.retriever.memories(user_id, query, model, limit=20, gate=False)
        found += [f"memory {hit.memory.id}" for hit in hits if hit.memory.content == content]
        turns = app.retriever.turns(user_id, query, model, limit=20, gate=False)
        found += [
            f"message {turn.id}"
            for turn in turns
            if says(turn.content, stems) or says(turn.reply, stems)
        ]
    return list(dict.fromkeys(found))


def _vectors(app: App, contents: Sequence[str]) -> list[Sequence[float] | None]:
    if len(contents) > 50:
        return [None] * len(contents)  # the wipe: its words and its rows are proof enough
    try:
        embedder = app.embedder()
        return [embedder.embed_query(content) for content in contents]
    except JarvisError:
        return [None] * len(contents)
