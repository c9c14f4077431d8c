"""How well past turns and facts are found, measured on LoCoMo through the services themselves.

Each conversation is a user of its own, deleted afterwards; each turn is a user's message, embedded
by the worker's job and searched as in a turn of the chat. Gate, collapsing, recency and importance
are off, as in the published figures. Beside it stand the vectors alone, words alone (a textbook
BM25 over the turns by themselves), and in a row of its own the search with the data set's own
facts as keys, which no real conversation has.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import statistics
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.errors import UsageError
from jarvis.retrieval import Query, index, terms, words
from jarvis.retrieval.search import Retriever
from jarvis.services import indexing
from jarvis.services.bench_locomo import KS, Fact, Locomo, Question, Recall, Turn, load
from jarvis.store import bench, samples, users
from jarvis.store.vectors import Kind
from jarvis.types import EmbeddingModel, User, Vector

if TYPE_CHECKING:
    from jarvis.services.app import App

DEPTH = max(KS)

Ranked = list[frozenset[str]]
"""The evidence names that each hit stands for, best hit first."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: recall in percent at each rank, or shares of questions for the gate."""

    search: str
    group: str
    questions: int
    recall: dict[str, float]
    ms: float | None = None
    bar: str = ""
    met: bool | None = None


@dataclass(slots=True)
class _Conversation:
    user: User
    turns: Sequence[Turn]
    facts: Sequence[Fact]
    words: _Bm25
    fact_words: _Bm25


@dataclass(slots=True)
class _Bench:
    app: App
    model: EmbeddingModel
    retriever: Retriever
    conversations: dict[str, _Conversation]
    vectors: Mapping[str, Vector] = field(default_factory=dict)


def run(
    app: App,
    folder: Path,
    *,
    sample: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Figure]:
    """Measures everything on the data in ``folder``; its rows are gone afterwards.

    Raises:
        UsageError: the data is not there.
        ModelUnavailable: there is no embedding model.
    """
    data = load(folder, sample)
    with _stored(app, data, progress) as bench_:
        progress("embedding the questions")
        embedder = app.embedder()
        bench_.vectors = {q.text: embedder.embed_query(q.text) for q in data.questions}
        progress("searching turns")
        figures = _compare(
            data,
            {
                "vectors alone": lambda q: _dense(bench_, q, "turn"),
                "words alone (BM25)": lambda q: _bm25(bench_, q, "turn"),
                "jarvis": lambda q: _turns(bench_, q),
            },
            "turns",
            "jarvis",
            (("R@5", 66.0), ("R@10", 76.0)),
        )
        progress("searching facts")
        facts = _compare(
            data,
            {
                "vectors alone": lambda q: _dense(bench_, q, "memory"),
                "words alone (BM25)": lambda q: _bm25(bench_, q, "memory"),
                "jarvis": lambda q: _memories(bench_, q),
            },
            "facts",
            "jarvis",
            (),
        )
        progress("trying the gate")
        gates = list(_gate(bench_, data))
        progress("searching turns with the given facts as keys")
        with app.database.transaction() as tx:
            for conversation in bench_.conversations.values():
                bench.link_facts(tx, conversation.user.id, _sources(conversation))
                index.write_fact_keys(tx, conversation.user.id, bench_.model.id)
        gold = _compare(
            data,
            {"jarvis, given facts as keys": lambda q: _turns(bench_, q)},
            "turns",
            "",
            (),
        )
    return [*figures, *gold, *_with_bar(facts), *gates]


@contextlib.contextmanager
def _stored(app: App, data: Locomo, progress: Callable[[str], None]) -> Iterator[_Bench]:
    """The conversations in the database, embedded; removed at the end."""
    settings = replace(app.config.retrieval, importance_weight=0.0, recency_weight=0.0)
    bench_ = _Bench(app, app.embedding_model(), Retriever(app.database, settings), {})
    wanted = {question.conversation for question in data.questions}
    try:
        for number, name in enumerate(sorted(wanted), 1):
            progress(f"storing conversation {number} of {len(wanted)}")
            turns, facts = data.turns[name], data.facts[name]
            with app.database.transaction() as tx:
                user = users.ensure(tx, f"bench-{uuid.uuid4().hex[:8]}")
                bench_.conversations[name] = _Conversation(
                    user,
                    turns,
                    facts,
                    _Bm25([t.text for t in turns]),
                    _Bm25([f.text for f in facts]),
                )
                bench.add_conversation(
                    tx, user.id, [(turn.session, turn.text, turn.at) for turn in turns]
                )
                # The data set repeats some facts; a store of memories holds each once.
                samples.add_memories(tx, user.id, _distinct([fact.text for fact in facts]))
                index.write_many_terms(
                    tx, "turn", user.id, {i: turn.text for i, turn in enumerate(turns, 1)}
                )
                index.write_many_terms(
                    tx, "memory", user.id, {i: fact.text for i, fact in enumerate(facts, 1)}
                )
            own = app.for_user(user)
            for job in (indexing.embed_memories_job(), indexing.embed_turns_job()):
                while job.run_once(own, lambda: False):
                    progress(f"embedding conversation {number} of {len(wanted)}")
        yield bench_
    finally:
        progress("removing the sample rows")
        for conversation in bench_.conversations.values():
            with app.database.transaction() as tx:
                samples.remove_user(tx, conversation.user.id)


def _distinct(texts: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    distinct = []
    for text in texts:
        seen[text] += 1
        distinct.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return distinct


def _compare(
    data: Locomo,
    searches: Mapping[str, Callable[[Question], Ranked]],
    what: str,
    ours: str,
    bars: Sequence[tuple[str, float]],
) -> list[Figure]:
    figures = []
    for name, search in searches.items():
        recall, started = Recall.empty(), time.perf_counter()
        for question in data.questions:
            recall.add(question, search(question))
        ms = 1000 * (time.perf_counter() - started) / max(1, len(data.questions))
        for group in sorted(recall.counts):
            at = dict(zip((f"R@{k}" for k in KS), recall.percent(group), strict=True))
            barred = name == ours and group == "all" and bool(bars)
            figures.append(
                Figure(
                    f"{what}: {name}",
                    group,
                    recall.counts[group],
                    at,
                    round(ms, 2),
                    ", ".join(f"{k} >= {bar:g}" for k, bar in bars) if barred else "",
                    all(at[k] >= bar for k, bar in bars) if barred else None,
                )
            )
    return figures


def _with_bar(figures: Sequence[Figure]) -> Iterator[Figure]:
    """The search over facts must beat the vectors alone by six points."""
    alone = next(f for f in figures if "vectors" in f.search and f.group == "all")
    for figure in figures:
        if figure.search.endswith("jarvis") and figure.group == "all":
            wanted = round(alone.recall["R@5"] + 6, 1)
            yield replace(figure, bar=f"R@5 >= {wanted}", met=figure.recall["R@5"] >= wanted)
        else:
            yield figure


# --- the searches -------------------------------------------------------------------------------


def _query(bench_: _Bench, conversation: _Conversation, question: Question) -> Query:
    now = conversation.turns[-1].at + timedelta(days=1)
    return Query(question.text, bench_.vectors[question.text], now)


def _turns(bench_: _Bench, question: Question) -> Ranked:
    conversation = bench_.conversations[question.conversation]
    found = bench_.retriever.turns(
        conversation.user.id,
        _query(bench_, conversation, question),
        bench_.model,
        limit=DEPTH,
        gate=False,
        collapse=False,
    )
    return [frozenset({conversation.turns[hit.id - 1].name}) for hit in found]


def _memories(bench_: _Bench, question: Question) -> Ranked:
    conversation = bench_.conversations[question.conversation]
    found = bench_.retriever.memories(
        conversation.user.id,
        _query(bench_, conversation, question),
        bench_.model,
        limit=DEPTH,
        gate=False,
        collapse=False,
    )
    return [frozenset(conversation.facts[hit.memory.id - 1].turns) for hit in found]


def _dense(bench_: _Bench, question: Question, kind: Kind) -> Ranked:
    conversation = bench_.conversations[question.conversation]
    with bench_.app.database.connection() as connection:
        ids = bench.nearest(
            connection,
            kind,
            conversation.user.id,
            bench_.model.id,
            bench_.vectors[question.text],
            DEPTH,
        )
    return _names(conversation, kind, ids)


def _bm25(bench_: _Bench, question: Question, kind: Kind) -> Ranked:
    conversation = bench_.conversations[question.conversation]
    ranking = conversation.words if kind == "turn" else conversation.fact_words
    return _names(conversation, kind, ranking.search(question.text, DEPTH))


def _names(conversation: _Conversation, kind: Kind, ids: Sequence[int]) -> Ranked:
    if kind == "turn":
        return [frozenset({conversation.turns[owner - 1].name}) for owner in ids]
    return [frozenset(conversation.facts[owner - 1].turns) for owner in ids]


def _sources(conversation: _Conversation) -> dict[int, int]:
    """Memory id to the id of the message that it was taken from."""
    numbers = {turn.name: number for number, turn in enumerate(conversation.turns, 1)}
    return {
        memory: numbers[fact.turns[0]]
        for memory, fact in enumerate(conversation.facts, 1)
        if fact.turns and fact.turns[0] in numbers
    }


class _Bm25:
    """Textbook BM25 (k1 = 1.2, b = 0.75) over stemmed words, for comparison."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.rows = [Counter(words.words(text)) for text in texts]
        self.holding = Counter(word for row in self.rows for word in row)
        self.lengths = [row.total() for row in self.rows]
        self.mean = sum(self.lengths) / max(1, len(self.lengths))

    def search(self, text: str, limit: int) -> list[int]:
        """Numbers of the best rows, from 1."""
        asked = {w: terms.idf(len(self.rows), self.holding[w]) for w in words.content_words(text)}
        scores = [
            sum(
                idf * row[w] * 2.2 / (row[w] + 1.2 * (0.25 + 0.75 * length / self.mean))
                for w, idf in asked.items()
                if w in row
            )
            for row, length in zip(self.rows, self.lengths, strict=True)
        ]
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [i + 1 for i in order[:limit] if scores[i] > 0]


def similarity(app: App, file: Path, *, progress: Callable[[str], None] = lambda _: None) -> Figure:
    """Spearman's correlation of cosine and score on pairs of sentences (STS, as CSV).

    A wrong prefix or a model that is wired wrongly shows here.

    Raises:
        UsageError: the file holds something else.
    """
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = [(left, right, float(score)) for left, right, score in csv.reader(stream)]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} does not hold pairs of sentences with a score: {error}", "--stsb FILE"
        ) from error
    progress("embedding pairs of sentences")
    embedder = app.embedder()
    left = embedder.embed_documents([row[0] for row in rows])
    right = embedder.embed_documents([row[1] for row in rows])
    cosines = [_cosine(a, b) for a, b in zip(left, right, strict=True)]
    found = statistics.correlation(_ranks(cosines), _ranks([row[2] for row in rows]))
    return Figure(
        "sentence pairs",
        file.stem,
        len(rows),
        {"spearman": round(found, 4)},
        bar="spearman >= 0.86",
        met=found >= 0.86,
    )


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value; equal ones share the mean of their ranks (as Spearman has it)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for _, group in itertools.groupby(enumerate(order), key=lambda pair: values[pair[1]]):
        places = list(group)
        shared = statistics.mean(rank for rank, _ in places)
        for _, position in places:
            ranks[position] = shared
    return ranks


def _cosine(a: Vector, b: Vector) -> float:
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


# --- the gate -----------------------------------------------------------------------------------


def _gate(bench_: _Bench, data: Locomo) -> Iterator[Figure]:
    """Shares of questions that inject anything: asked of their own store, and of each other.

    A store holds facts and turns; ``either`` is what a chat would have put before the model.
    """
    limits = {"memories": 5, "turns": 3}
    groups = ("own store", "another's store")
    shares: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for question in data.questions:
        for name, conversation in bench_.conversations.items():
            group = groups[name != question.conversation]
            query = _query(bench_, conversation, question)
            passed = []
            for what, limit in limits.items():
                search: Callable[..., Any] = getattr(bench_.retriever, what)
                found = search(conversation.user.id, query, bench_.model, limit=limit)
                passed.append(bool(found.hits))
                shares[what, group].append(passed[-1])
            shares["either", group].append(any(passed))
    for what, group in itertools.product((*limits, "either"), groups):
        answers = shares[what, group]
        if answers:
            share = round(100 * sum(answers) / len(answers), 1)
            own = group == groups[0]
            yield Figure(
                f"gate, {what}",
                group,
                len(answers),
                {"injected": share},
                bar="injected >= 85" if own else "injected <= 10",
                met=share >= 85 if own else share <= 10,
            )
