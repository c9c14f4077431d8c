"""One search for memories, past turns and passages: two arms, fused by rank, then the gate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar, Unpack

from jarvis.errors import UsageError
from jarvis.retrieval import collapse, contents, dates, gate, terms, tuning
from jarvis.retrieval.hits import Scored, chunk_hit, dropped, memory_hit, turn_hit
from jarvis.retrieval.index import check_vector
from jarvis.retrieval.query import Query, Results
from jarvis.retrieval.question import Question, understand
from jarvis.store import search as store
from jarvis.store import vectors
from jarvis.store.search import Candidate
from jarvis.store.vectors import KINDS, Kind
from jarvis.types import (
    ChunkHit,
    EmbeddingModel,
    Filters,
    MemoryHit,
    MemoryType,
    TurnHit,
)

if TYPE_CHECKING:
    from jarvis.config import RetrievalSettings
    from jarvis.store.database import Connection, Database

HitT = TypeVar("HitT")

LANGUAGE_SECONDS = 60.0
"""How long a user's language is remembered before it is read again."""

NO_FILTERS = Filters()


class Options(TypedDict, total=False):
    """How to search; what all three searches take.

    Attributes:
        limit: results, 1 … 1,000.
        filters: applied inside both arms; default: none.
        gate: whether only what passes the gate is a hit (the default); otherwise everything is,
            best first, and the explanation says what the gate would have done.
        explain: whether ``dropped`` is filled; default: no.
        min_similarity: a cosine that every hit must reach; default: none.
        collapse: whether what says the same as a better hit is left out; default: yes.
        beside_question: the hits are read beside the question, so what only says it again is none
            (a turn in which it was asked before brings nothing but an old answer); default: no.
    """

    limit: Required[int]
    filters: Filters
    gate: bool
    explain: bool
    min_similarity: float | None
    collapse: bool
    beside_question: bool


class Retriever:
    """Finds what is stored. Safe to use from several threads.

    Args:
        database: where it is stored.
        settings: weights of importance and recency, a fixed threshold where one is set.
    """

    def __init__(self, database: Database, settings: RetrievalSettings) -> None:
        self.database = database
        self.settings = settings
        self._languages: dict[int, tuple[float, str]] = {}

    def memories(
        self,
        user_id: int,
        query: Query,
        model: EmbeddingModel | None,
        **options: Unpack[Options],
    ) -> Results[MemoryHit]:
        """Facts about the user.

        Args:
            user_id: whose.
            query: the question.
            model: what made its vector; rows of other models are found by words.
            options: see ``Options``.

        Raises:
            UsageError: the limit is out of range.
            ModelUnavailable: the vector is none of the model's.
        """
        return self._search("memory", memory_hit, user_id, query, model, **options)

    def turns(
        self,
        user_id: int,
        query: Query,
        model: EmbeddingModel | None,
        **options: Unpack[Options],
    ) -> Results[TurnHit]:
        """What the user said in the past, each with the answer to it. See ``memories``."""
        return self._search("turn", turn_hit, user_id, query, model, **options)

    def chunks(
        self,
        user_id: int,
        query: Query,
        model: EmbeddingModel | None,
        **options: Unpack[Options],
    ) -> Results[ChunkHit]:
        """Passages of documents. See ``memories``."""
        return self._search("chunk", chunk_hit, user_id, query, model, **options)

    def _search(
        self,
        kind: Kind,
        make_hit: Callable[[Scored, int, Mapping[int, str]], HitT],
        user_id: int,
        query: Query,
        model: EmbeddingModel | None,
        **options: Unpack[Options],
    ) -> Results[HitT]:
        limit, filters = options["limit"], options.get("filters", NO_FILTERS)
        gated, min_similarity = options.get("gate", True), options.get("min_similarity")
        check_limit(limit)
        vector = query.vector if model is not None else None
        if vector is not None and model is not None:
            check_vector(vector, model)
        period = query.period
        with self.database.connection() as connection:
            question = self._question(connection, kind, user_id, query)
            if vector is None and not question.weights:
                return Results(notes=("there is nothing to search for",))
            request = store.Request(
                user_id=user_id,
                vector=vector,
                model=model,
                weights=question.weights,
                selecting=question.selecting,
                filters=_within(kind, filters, period, query.text),
                valid_in=(period.start, period.end) if period is not None else None,
                limit=_candidates_wanted(limit),
                total=question.total,
            )
            found, how = store.candidates(connection, kind, request)
        scored = self._fuse(kind, found, question, query.now, period)
        when = frozenset(terms.question(user_id, period.text, question.language)) if period else ()
        threshold = model.threshold if model is not None else None
        rule = gate.make(
            query.text,
            question.language,
            threshold,
            self.settings.min_similarity,
            question.holding or {},
            passages=kind == "chunk",
        )
        judge = _judge(rule, question, when, gated=gated, min_similarity=min_similarity)
        for entry in scored:
            judge(entry)
        if options.get("collapse", True):
            read = query.text if options.get("beside_question") else ""
            _collapse(scored, question.language, limit, read)
        hits = [entry for entry in scored if not entry.reason]
        for entry in hits[limit:]:
            entry.reason = f"more than {limit} were found"
        words = question.words
        left_out = [entry for entry in scored if entry.reason] if options.get("explain") else []
        return Results(
            hits=tuple(make_hit(entry, rank, words) for rank, entry in enumerate(hits[:limit], 1)),
            dropped=tuple(dropped(entry, words) for entry in left_out),
            notes=_notes(how, period),
            gate=rule.describe(),
        )

    def understand(self, user_id: int, text: str) -> dict[Kind, Question]:
        """Weighs the words of a question for all kinds at once; see ``Query.words``.

        It needs no vector, so that it can be done while one is made.
        """
        with self.database.connection() as connection:
            language = self.language(connection, user_id)
            return understand(connection, user_id, text, language, KINDS)

    def _question(self, connection: Connection, kind: Kind, user_id: int, query: Query) -> Question:
        known = query.words.get(kind)
        if known is not None and known.text == query.text:
            return known
        language = self.language(connection, user_id)
        return understand(connection, user_id, query.text, language, [kind])[kind]

    def language(self, connection: Connection, user_id: int) -> str:
        """The language whose stemmer made the user's terms; believed for a while."""
        known = self._languages.get(user_id)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        language = vectors.language(connection, user_id)
        self._languages[user_id] = (time.monotonic() + LANGUAGE_SECONDS, language)
        return language

    def _fuse(
        self,
        kind: Kind,
        found: Sequence[Candidate],
        question: Question,
        now: datetime,
        period: dates.Period | None,
    ) -> list[Scored]:
        """Reciprocal rank fusion, weighted by importance and recency; best first."""
        k, words_weight = tuning.FUSION[kind]
        best = (1 + words_weight) / (k + 1)
        meaning = _ranks(found, lambda candidate: candidate.meaning)
        words = _ranks(found, lambda candidate: candidate.words or None)
        scored = []
        for candidate in found:
            by_meaning, by_words = meaning.get(candidate.id), words.get(candidate.id)
            parts = words_weight / (k + by_words) if by_words else 0.0
            if by_meaning:
                parts += 1 / (k + by_meaning)
            elif candidate.meaning is None and by_words:
                # Without a vector (not embedded yet) its words speak for its meaning too.
                parts += 1 / (k + by_words)
            fused = parts / best
            factors = self._factors(kind, candidate, now, period)
            score = fused * math.prod(factors.values())
            scored.append(Scored(candidate, by_meaning, by_words, fused, factors, score))
        scored.sort(key=lambda entry: (-entry.score, entry.candidate.id))
        return scored

    def _factors(
        self, kind: Kind, candidate: Candidate, now: datetime, period: dates.Period | None
    ) -> dict[str, float]:
        """What moves a score, each within its bounds around 1."""
        row, factors = candidate.row, {}
        if kind == "memory" and self.settings.importance_weight:
            weight = min(self.settings.importance_weight, tuning.MAX_WEIGHT)
            factors["importance"] = 1 + weight * (2 * row["importance"] - 1)
        if kind != "chunk" and self.settings.recency_weight:
            weight = min(self.settings.recency_weight, tuning.MAX_WEIGHT)
            days = max(0.0, (now - row["created_at"]).total_seconds() / 86_400)
            factors["recency"] = 1 + weight * (2 * 0.5 ** (days / tuning.HALF_LIFE_DAYS) - 1)
        if period is not None and kind != "chunk":
            factors["date"] = _date_factor(row, period)
        if kind == "chunk" and contents.lists(row["content"]):
            factors["contents"] = tuning.CONTENTS
        return factors


def check_limit(limit: int) -> None:
    """Refuses a number of results that cannot be meant.

    Raises:
        UsageError: it is not 1 … 1,000.
    """
    if not 1 <= limit <= tuning.MAX_RESULTS:
        raise UsageError(
            f"the number of results must be 1 to {tuning.MAX_RESULTS:,}, not {limit:,}",
            "give another -k",
        )


def _candidates_wanted(limit: int) -> int:
    return max(
        limit,
        tuning.MIN_CANDIDATES,
        min(tuning.OVERFETCH * limit, tuning.MAX_CANDIDATES),
    )


def _within(kind: Kind, filters: Filters, period: dates.Period | None, text: str) -> Filters:
    """A question about what was said at a time looks at what was said at that time."""
    if kind != "turn" or period is None or filters.since is not None or filters.until is not None:
        return filters
    if not dates.asks_about_talk(text):
        return filters
    return Filters(since=period.start, until=period.end, exclude_session=filters.exclude_session)


def _ranks(
    found: Sequence[Candidate], value: Callable[[Candidate], float | None]
) -> dict[int, int]:
    """Rank of each candidate that has the value, 1 for the largest; equal ones by id."""
    having = [(value(candidate), candidate.id) for candidate in found]
    ordered = sorted((-score, owner) for score, owner in having if score is not None)
    return {owner: rank for rank, (_, owner) in enumerate(ordered, 1)}


def _judge(
    rule: gate.Gate,
    question: Question,
    when: Collection[int],
    *,
    gated: bool,
    min_similarity: float | None,
) -> Callable[[Scored], None]:
    """Notes what the gate says of a candidate, and drops what does not pass where that matters.

    Args:
        when: the terms of a date in the question. A row need not hold them: its time answers.
    """

    def judge(entry: Scored) -> None:
        candidate = entry.candidate
        weights = question.weights
        if when:
            weights = {
                term: weight
                for term, weight in weights.items()
                if term not in when or term in candidate.matched
            }
        entry.share = gate.matched_share(candidate.matched, weights)
        rare = not question.rare.isdisjoint(candidate.matched)
        by_meaning = candidate.similarity is not None and candidate.similarity >= rule.cosine
        # A passage that is, or names, the part that the question names needs no other words of it.
        named = not question.named.isdisjoint(candidate.matched)
        by_words = named or (rare and entry.share >= rule.matched)
        entry.passed = ("meaning",) * by_meaning + ("words",) * by_words
        if min_similarity is not None and (candidate.similarity or -1.0) < min_similarity:
            entry.reason = f"similarity below {min_similarity:g}"
        elif gated and not entry.passed:
            near = "no vector" if candidate.similarity is None else f"{candidate.similarity:.2f}"
            entry.reason = (
                f"gate: cosine {near} under {rule.cosine:.2f} ({rule.reason}), {entry.share:.0%}"
                f" of the question's words{'' if rare else ', none of them rare'}"
            )

    return judge


def _collapse(scored: list[Scored], language: str, limit: int, read: str) -> None:
    """Drops what says the same as a better one, or as the text ``read``, among as many as can
    matter."""
    known = collapse.statement(read, language)
    kept: list[tuple[Scored, collapse.Statement]] = []
    for entry in scored:
        if entry.reason:
            continue
        if len(kept) > limit:
            break
        statement = collapse.statement(entry.candidate.row["content"], language)
        if read and collapse.same(statement, known):
            entry.reason = "is the question itself"
            continue
        for better, other in kept:
            if collapse.same(statement, other):
                entry.reason = f"says the same as {better.candidate.id}"
                break
        else:
            kept.append((entry, statement))


def _date_factor(row: Mapping[str, Any], period: dates.Period) -> float:
    """More for what belongs to the time that the question names, less for what surely does not."""
    start, end = row.get("valid_from_at"), row.get("valid_to_at")
    if start is None and end is None:
        return tuning.DATE if period.contains(row["created_at"]) else 1.0
    if row.get("type") == MemoryType.EVENT and end is None and start is not None:
        touches = period.contains(start)
    else:
        touches = period.overlaps(start or row["created_at"], end)
    return tuning.DATE if touches else 1 / tuning.DATE


def _notes(how: str, period: dates.Period | None) -> tuple[str, ...]:
    notes = []
    if how == "none":
        notes.append("searched by words only")
    elif ": " in how:
        notes.append(f"searched without an index ({how.partition(': ')[2]})")
    if period is not None:
        notes.append(f"preferring {period.describe()}")
    return tuple(notes)
