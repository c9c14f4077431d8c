"""What is relevant to one message: loaded side by side, each source for itself.

The history and the embedding of the query start together; with the vector, memories, past turns
and passages are searched at the same time, each on a thread and a connection of its own. A
source that fails or is late gives nothing and a warning, never a failed turn.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from jarvis.errors import JarvisError, ModelUnavailable
from jarvis.services import prompt
from jarvis.store import sessions
from jarvis.types import ChunkHit, EmbeddingModel, Filters, MemoryHit, TurnHit, Vector

if TYPE_CHECKING:
    from jarvis.retrieval import Query
    from jarvis.retrieval.question import Question
    from jarvis.services.app import App
    from jarvis.store.vectors import Kind

T = TypeVar("T")

EMBED_TIMEOUT = 15.0
"""Seconds for the query's vector: the model may have to be loaded first."""

_CONTENT_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        about all also and any are can could did does for had has have how just know many more
        most much please should some tell than that the then there these they this those very
        was were what when where which who whom whose why will with would you your yours from
        """,
    )
)
_POINTS_BACK = re.compile(
    r"\b(it|its|that|this|these|those|they|them|their|he|him|his|she|her|hers|there|one|ones|"
    r"same|other|another)\b|^(and|or|but|so|what about|how about|why|how come|really)\b",
    re.IGNORECASE,
)
_ABOUT_THE_USER = re.compile(
    r"\b(what|which|who|how much|anything|everything|something|tell|list|remember|know)\b"
    r".{0,40}\b(me|my|myself|i|about me)\b",
    re.IGNORECASE | re.DOTALL,
)
_NAMES_THE_USER = re.compile(r"\b(about me|know me|who am i|remember me)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Context:
    """What was found for one message. Durations are milliseconds.

    ``system`` is the session's own system prompt, empty where it has none.
    """

    memories: tuple[MemoryHit, ...] = ()
    turns: tuple[TurnHit, ...] = ()
    chunks: tuple[ChunkHit, ...] = ()
    history: tuple[prompt.PastTurn, ...] = ()
    summary: str = ""
    system: str = ""
    warnings: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    query: str = ""
    dropped: dict[str, list[dict[str, object]]] = field(default_factory=dict)


def search_text(words: str, previous: str) -> str:
    """What is searched for: a short or pronominal question goes with the one before it."""
    content = [w for w in _CONTENT_WORD.findall(words.lower()) if w not in _FUNCTION_WORDS]
    points_back = _POINTS_BACK.search(words) is not None
    if previous and content and (len(content) <= 1 or (points_back and len(content) <= 4)):
        return f"{previous}\n{words}"
    if previous and not content and points_back:
        return f"{previous}\n{words}"
    return words


def asks_about_user(words: str) -> bool:
    """Whether this is an open question about the user ("what do you know about me?")."""
    return ("?" in words and _ABOUT_THE_USER.search(words) is not None) or (
        re.search(r"\b(about me|know me|who am i|remember me)\b", words, re.IGNORECASE) is not None
    )


class Runner(Protocol):
    """Begins an action: at once, or on a thread."""

    def __call__(self, action: Callable[[], T], /) -> Future[T]: ...


@dataclass(frozen=True, slots=True)
class Begun:
    """A context whose loading has begun. ``asked``: None where the question before is needed."""

    words: str
    search: bool
    run: Runner
    started: float
    history: Future[sessions.Talk]
    asked: Future[dict[Kind, Question]] | None


class ContextLoader:
    """Loads the context of turns, with threads that it keeps.

    Args:
        app: the services.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self._threads = ThreadPoolExecutor(max_workers=5, thread_name_prefix="context")

    def load(
        self,
        words: str,
        *,
        session_id: int | None,
        now: datetime,
        before_message: int | None = None,
        search: bool = True,
        parallel: bool = True,
    ) -> Context:
        """Everything for the message ``words``: ``begin`` and ``finish`` in one."""
        begun = self.begin(words, session_id=session_id, search=search, parallel=parallel)
        return self.finish(begun, session_id=session_id, now=now, before_message=before_message)

    def begin(
        self, words: str, *, session_id: int | None, search: bool = True, parallel: bool = True
    ) -> Begun:
        """Begins with what needs nothing but the database; the message may be stored meanwhile.

        Args:
            session_id: whose history is loaded.
            search: False loads the history alone (``--no-memory``).
            parallel: False does one thing after the other, for comparison in a benchmark.
        """
        run: Runner = self._start if parallel else _now
        started = time.perf_counter()
        history = run(lambda: self._history(session_id))
        # A short question needs the one before it, so the history comes first then.
        alone = search and search_text(words, "x") == words
        asked = run(lambda: self._understand(words)) if alone else None
        return Begun(words, search, run, started, history, asked)

    def finish(
        self,
        begun: Begun,
        *,
        session_id: int | None,
        now: datetime,
        before_message: int | None = None,
    ) -> Context:
        """Embeds the question and searches.

        Args:
            session_id: whose turns are not "past" ones.
            before_message: only messages before this one are history.
        """
        words, run, started = begun.words, begun.run, begun.started
        warnings: list[str] = []
        timings: dict[str, float] = {}
        limit = self.app.config.retrieval.timeout
        embed_started = time.perf_counter()
        vector_arm: Future[tuple[EmbeddingModel, Vector] | None] | None = None
        if begun.asked is not None:
            vector_arm = run(lambda: self._embed(words))
        talk = _wait(begun.history, limit * 5, "the history", warnings) or sessions.Talk()
        history = prompt.past_turns(
            [message for message in talk.messages if before_message is None
             or message.id < before_message]
        )  # fmt: skip
        if not begun.search:
            timings["context_ms"] = _ms(started)
            return Context(
                history=tuple(history),
                summary=talk.summary,
                system=talk.system,
                warnings=tuple(warnings),
                timings=timings,
                query=words,
            )

        from jarvis.retrieval import Query

        query, words_arm = words, begun.asked
        if vector_arm is None or words_arm is None:
            query = search_text(words, history[-1].question if history else "")
            vector_arm = run(lambda: self._embed(query))
            words_arm = run(lambda: self._understand(query))
        embedded = _wait(vector_arm, EMBED_TIMEOUT, "the meaning of the question", warnings)
        timings["embed_ms"] = _ms(embed_started)

        search_started = time.perf_counter()
        known = _wait(words_arm, limit, "the words of the question", warnings) or {}
        model, vector = embedded or (None, None)
        question = Query(text=query, vector=vector, now=now, words=known)
        found = self._search(question, words, model, session_id, run, warnings)
        timings["search_ms"] = _ms(search_started)
        timings["context_ms"] = _ms(started)
        memories, turns, chunks, dropped = found
        return Context(
            tuple(memories),
            tuple(turns),
            tuple(chunks),
            tuple(history),
            talk.summary,
            talk.system,
            tuple(warnings),
            timings,
            query,
            dropped,
        )

    def _search(
        self,
        question: Query,
        words: str,
        model: EmbeddingModel | None,
        session_id: int | None,
        run: Runner,
        warnings: list[str],
    ) -> tuple[list[MemoryHit], list[TurnHit], list[ChunkHit], dict[str, list[dict[str, object]]]]:
        settings = self.app.config.retrieval
        retriever, user_id = self.app.retriever, self.app.user.id
        # All three begin before the first is waited for, the one that takes longest first.
        turn_arm = run(
            lambda: retriever.turns(
                user_id,
                question,
                model,
                filters=Filters(exclude_session=session_id),
                limit=settings.turns,
                beside_question=True,
            )
        )
        memory_arm = run(
            lambda: retriever.memories(
                user_id, question, model, filters=Filters(), limit=settings.facts
            )
        )
        chunk_arm = run(
            lambda: retriever.chunks(
                user_id, question, model, filters=Filters(), limit=settings.chunks
            )
        )
        facts = _wait(memory_arm, settings.timeout, "memories", warnings)
        past = _wait(turn_arm, settings.timeout, "past conversations", warnings)
        passages = _wait(chunk_arm, settings.timeout, "documents", warnings)
        dropped: dict[str, list[dict[str, object]]] = {}
        if facts is not None:
            dropped["memories"] = list(facts.dropped)
        if past is not None:
            dropped["turns"] = list(past.dropped)
        if passages is not None:
            dropped["documents"] = list(passages.dropped)
        memories = list(facts.hits) if facts else []
        if not memories and (question.vector is None or asks_about_user(words)):
            memories = (
                _wait(
                    run(lambda: self._most_important(settings.fallback)),
                    settings.timeout,
                    "memories",
                    warnings,
                )
                or []
            )
        return (
            memories,
            list(past.hits) if past else [],
            list(passages.hits) if passages else [],
            dropped,
        )

    def _most_important(self, limit: int) -> list[MemoryHit]:
        from jarvis.store import memory_lists

        with self.app.database.connection() as connection:
            rows = memory_lists.most_important(connection, self.app.user.id, limit)
        return [
            MemoryHit(row, None, row.importance, rank, {"fallback": "importance"})
            for rank, row in enumerate(rows, 1)
        ]

    def _history(self, session_id: int | None) -> sessions.Talk:
        if session_id is None:
            return sessions.Talk()
        with self.app.database.connection() as connection:
            return sessions.talk(connection, self.app.user.id, session_id)

    def _embed(self, text: str) -> tuple[EmbeddingModel, Vector] | None:
        embedder = self.app.embedder()
        return self.app.embedding_model(), embedder.embed_query(text)

    def _understand(self, text: str) -> dict[Kind, Question]:
        return self.app.retriever.understand(self.app.user.id, text)

    def _start(self, action: Callable[[], T]) -> Future[T]:
        return self._threads.submit(action)


def _now(action: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(action())
    except Exception as error:  # noqa: BLE001 -- handed to who waits, as a thread's would be
        future.set_exception(error)
    return future


def _wait(future: Future[T], seconds: float, what: str, warnings: list[str]) -> T | None:
    """The result, or None and a warning: a source of context never fails a turn."""
    try:
        return future.result(timeout=seconds)
    except Late:
        future.cancel()
        warnings.append(f"{what} took more than {seconds:g} s and were left out")
    except ModelUnavailable as error:
        warnings.append(f"searching by words only: {error.message}")
    except JarvisError as error:
        warnings.append(f"{what} could not be loaded: {error.message}")
    except Exception as error:  # noqa: BLE001 -- a broken arm must not take the turn with it
        from jarvis import log

        log.get("context").exception("loading %s failed", what)
        warnings.append(f"{what} could not be loaded ({type(error).__name__}; see the log)")
    return None


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
