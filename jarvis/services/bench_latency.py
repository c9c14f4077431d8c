"""What a turn costs, part by part, on this machine.

Measured with a user of its own, filled with made-up memories, turns and passages and deleted
afterwards. "Added" is everything Jarvis does in a turn besides embedding and answering: the same
code as every turn, with an embedder and a model that answer at once.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jarvis.errors import DatabaseUnavailable
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatUsage, ModelInfo
from jarvis.services.app import App
from jarvis.services.context import ContextLoader
from jarvis.services.turns import Finished, TurnRequest
from jarvis.types import EmbeddingModel, Filters, User, Vector

if TYPE_CHECKING:
    from jarvis.llm.chat import OllamaChatModel
    from jarvis.llm.embedding import OllamaEmbedder

ADDED_BAR_MS = 15.0
"""What Jarvis may add to a turn, median (section 11 of the design)."""
DELAY_S = 0.1
"""Added to each search, to see whether they really run side by side."""
PARALLEL_BAR = 1.1

_BATCH = 500
_DIRECTIONS = 32
"""Directions in which made-up vectors differ, about as many as embeddings of text have of their
own: independent numbers in hundreds of dimensions would have no neighbours to find."""
_SEED = 7
_QUESTIONS = (
    "What should I bring to the meeting on Thursday?",
    "Which colour did I choose for the kitchen?",
    "When does the train to the coast leave?",
    "Who recommended that book about glaciers?",
    "How many chairs do we need for the party?",
)
_SYLLABLES = ("ba", "cor", "del", "fin", "gar", "hol", "jum", "kel", "lo", "mar", "nes", "pi", "ro",
              "sul", "tan", "ver", "wil", "zem")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured line. ``bar`` is empty where the design sets none; ``met`` then is None."""

    name: str
    unit: str
    median: float
    p95: float
    samples: int
    bar: str = ""
    met: bool | None = None


@dataclass(slots=True)
class Settings:
    """How to measure. ``rows`` of each kind; ``turns`` with the real model, 0 for none."""

    rows: int = 10_000
    rounds: int = 20
    turns: int = 5
    progress: Callable[[str], None] = field(default=lambda _: None)


def run(app: App, settings: Settings) -> list[Figure]:
    """Measures everything; the rows that it needs are gone afterwards.

    Raises:
        ModelUnavailable: there is no embedding model, or no chat model for the real turns.
        DatabaseUnavailable: the database cannot be used.
    """
    with sample_user(app, settings) as bench:
        settings.progress("measuring the searches")
        figures = [*_parts(bench, settings), *_side_by_side(bench, settings)]
        settings.progress("measuring what a turn adds")
        figures += _added(bench, settings)
        if settings.turns:
            figures += _real_turns(bench, settings)
    return figures


# --- rows ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def sample_user(app: App, settings: Settings) -> Iterator[App]:
    """The services for a user with ``settings.rows`` rows of each kind, deleted at the end."""
    from jarvis.store import samples, users

    model = app.embedding_model()
    with app.database.transaction() as tx:
        user = users.ensure(tx, f"bench-{uuid.uuid4().hex[:8]}")
    try:
        bench = _Quiet(app, user)
        fill(bench, model, settings)
        yield bench
    finally:
        settings.progress("removing the sample rows")
        with app.database.transaction() as tx:
            samples.remove_user(tx, user.id)


def fill(app: App, model: EmbeddingModel, settings: Settings) -> None:
    """Writes the sample rows with their words and (random) vectors, counts and indexes."""
    from jarvis.services import indexing
    from jarvis.store import samples

    chance = random.Random(_SEED)  # noqa: S311 -- made-up text
    words = _vocabulary(chance)
    user_id, rows = app.user.id, settings.rows
    facts = [_sentence(chance, words, 8) + f" {number}" for number in range(rows)]
    talk = [_sentence(chance, words, 15) for _ in range(rows * 2)]
    passages = [" ".join(_sentence(chance, words, 20) for _ in range(8)) for _ in range(rows)]
    settings.progress(f"writing {rows:,} memories, turns and passages")
    with app.database.transaction() as tx:
        samples.add_memories(tx, user_id, facts)
        samples.add_turns(tx, user_id, talk, 40, datetime.now().astimezone())
        samples.add_chunks(tx, user_id, passages, 100)
        samples.set_counters(tx, user_id)
    for kind, texts in (("memory", facts), ("turn", talk), ("chunk", passages)):
        settings.progress(f"indexing {len(texts):,} rows of the kind {kind}")
        _index(app, model, kind, texts)
    settings.progress("counting terms and building indexes")
    for job in (indexing.statistics_job(), indexing.indexes_job()):
        while job.run_once(app, lambda: False):
            pass
    with (
        contextlib.suppress(DatabaseUnavailable),
        contextlib.closing(app.database.connect_as_owner()) as owner,
    ):
        samples.settle(owner)


def _index(app: App, model: EmbeddingModel, kind: Any, texts: Sequence[str]) -> None:
    import numpy

    from jarvis.retrieval import index

    noise = numpy.random.default_rng(_SEED)
    basis = noise.standard_normal((_DIRECTIONS, model.dimensions), dtype=numpy.float32)
    for start in range(0, len(texts), _BATCH):
        part = {start + at + 1: text for at, text in enumerate(texts[start : start + _BATCH])}
        made = noise.standard_normal((len(part), _DIRECTIONS), dtype=numpy.float32) @ basis
        vectors: dict[int, Vector] = dict(zip(part, made.tolist(), strict=True))
        with app.database.transaction() as tx:
            index.write_many_terms(tx, kind, app.user.id, part)
            index.write_vectors(tx, kind, app.user.id, model.id, vectors)


def _vocabulary(chance: random.Random) -> list[str]:
    return sorted(
        {"".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(9000)}
    )


def _sentence(chance: random.Random, words: Sequence[str], length: int) -> str:
    # Frequent words are much more frequent than others, as in real text.
    picked = [words[int(len(words) * chance.random() ** 3)] for _ in range(length)]
    common = chance.choice(("meeting", "kitchen", "train", "book", "party", "garden", "boat"))
    return f"{' '.join(picked)} {common}"


# --- services that answer at once -------------------------------------------------------------


class _Quiet(App):
    """The services of another user, without a worker behind them."""

    def __init__(self, source: App, user: User) -> None:
        self.__dict__.update(source.for_user(user).__dict__)

    def wake_worker(self) -> None:
        """No background work beside a measurement."""


class _Instant(_Quiet):
    """Services whose model and embedder answer at once."""

    def __init__(self, source: App, vector: Vector) -> None:
        super().__init__(source, source.user)
        self._vector = vector
        self._row = source.embedding_model()

    def chat_model(self, name: str = "") -> OllamaChatModel:
        """A model that says one word."""
        return _OneWord()  # type: ignore[return-value]

    def embedder(self) -> OllamaEmbedder:
        """An embedder that knows one vector."""
        return _OneVector(self._vector)  # type: ignore[return-value]

    def embedding_model(self) -> EmbeddingModel:
        """The model whose vectors are stored."""
        return self._row


class _OneWord:
    name = "instant"
    num_ctx = 8192

    def info(self) -> ModelInfo:
        return ModelInfo(self.name, "", self.num_ctx, frozenset({"completion", "tools"}))

    def stream(self, messages: Sequence[ChatMessage], **_options: Any) -> Iterator[ChatChunk]:
        yield ChatChunk(text="Yes.")
        yield ChatChunk(usage=ChatUsage(answer_tokens=1))


@dataclass(frozen=True, slots=True)
class _OneVector:
    vector: Vector

    def embed_query(self, text: str) -> Vector:
        return self.vector


# --- measurements ---------------------------------------------------------------------------------


def _parts(app: App, settings: Settings) -> list[Figure]:
    """The embedding and each search by itself."""
    from jarvis.retrieval import Query

    embedder, model = app.embedder(), app.embedding_model()
    embedder.embed_query("warm up")
    times: dict[str, list[float]] = {}
    for number in range(settings.rounds + 2):
        text = _question(number)
        with _timed(times, "embedding", number):
            vector = embedder.embed_query(text)
        query = Query(text=text, vector=vector, now=datetime.now().astimezone())
        for name, search, limit in _searches(app):
            with _timed(times, name, number):
                search(app.user.id, query, model, filters=Filters(), limit=limit)
    return [figure(name, "ms", values) for name, values in times.items()]


def _searches(app: App) -> list[tuple[str, Callable[..., Any], int]]:
    settings, retriever = app.config.retrieval, app.retriever
    return [
        ("search: memories", retriever.memories, settings.facts),
        ("search: turns", retriever.turns, settings.turns),
        ("search: documents", retriever.chunks, settings.chunks),
    ]


def _side_by_side(app: App, settings: Settings) -> list[Figure]:
    """The whole context, side by side and one after the other, and with slowed searches."""
    loader = ContextLoader(app)
    times: dict[str, list[float]] = {}
    for number in range(settings.rounds + 2):
        # In turn, so that neither gains from what the other has warmed up.
        order = (True, False) if number % 2 else (False, True)
        for parallel in order:
            name = "context, side by side" if parallel else "context, one after the other"
            with _timed(times, name, number):
                _load(loader, number, parallel=parallel)
    both = [statistics.median(times[name]) for name in times]
    names = list(times)
    beside = both[names.index("context, side by side")]
    after = both[names.index("context, one after the other")]
    figures = [
        figure(
            "context, side by side", "ms", times["context, side by side"],
            bar="≤ one after the other", met=beside <= after,
        ),
        figure("context, one after the other", "ms", times["context, one after the other"]),
    ]  # fmt: skip
    ratios = _slowed(app, settings)
    return [
        *figures,
        figure(
            f"searches with {DELAY_S * 1000:.0f} ms added, against the slowest", "×", ratios,
            bar=f"≤ {PARALLEL_BAR}", met=statistics.median(ratios) <= PARALLEL_BAR,
        ),
    ]  # fmt: skip


def _slowed(app: App, settings: Settings) -> list[float]:
    slow = _Slow(app.retriever)
    slowed = _Quiet(app, app.user)
    slowed.__dict__["retriever"] = slow
    loader = ContextLoader(slowed)
    ratios = []
    for number in range(max(settings.rounds // 2, 3)):
        slow.took.clear()
        search_ms = _load(loader, number, parallel=True)["search_ms"]
        ratios.append(search_ms / max(slow.took))
    return ratios


class _Slow:
    """A retriever with ``DELAY_S`` added to each search, which notes what each took (ms)."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.took: list[float] = []

    def __getattr__(self, name: str) -> Any:
        search = getattr(self._real, name)
        if name not in ("memories", "turns", "chunks"):
            return search

        def slowed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            time.sleep(DELAY_S)
            found = search(*arguments, **options)
            self.took.append((time.perf_counter() - started) * 1000)
            return found

        return slowed


def _load(loader: ContextLoader, number: int, *, parallel: bool) -> Mapping[str, float]:
    return loader.load(
        _question(number), session_id=1, now=datetime.now().astimezone(), parallel=parallel
    ).timings


def _added(app: App, settings: Settings) -> list[Figure]:
    """Whole turns with an embedder and a model that answer at once."""
    vector = app.embedder().embed_query(_QUESTIONS[0])
    instant = _Instant(app, vector)
    times: dict[str, list[float]] = {}
    session_id: int | None = None
    for number in range(settings.rounds + 2):
        request = TurnRequest(_question(number), session_id=session_id)
        with _timed(times, "added to a turn", number):
            for event in instant.assistant.turn(request):
                if isinstance(event, Finished):
                    session_id = event.result.session_id
    values = times["added to a turn"]
    met = statistics.median(values) <= ADDED_BAR_MS
    return [figure("added to a turn", "ms", values, bar=f"≤ {ADDED_BAR_MS:g} ms", met=met)]


def _real_turns(app: App, settings: Settings) -> list[Figure]:
    """A conversation with the real model."""
    columns: dict[str, list[float]] = {
        "prompt": [], "evaluated": [], "answer": [], "first token": [], "writing": [],
    }  # fmt: skip
    session_id: int | None = None
    for number in range(settings.turns):
        settings.progress(f"turn {number + 1} of {settings.turns} with {app.chat_model().name}")
        request = TurnRequest(_question(number), session_id=session_id, tools=False)
        for event in app.assistant.turn(request):
            if isinstance(event, Finished):
                result = event.result
        session_id = result.session_id
        columns["prompt"].append(result.tokens["prompt"])
        columns["evaluated"].append(result.tokens["evaluated"])
        columns["answer"].append(result.tokens["answer"])
        columns["first token"].append(result.timings.get("first_token_ms", 0.0))
        writing = result.timings["total_ms"] - result.timings.get("context_ms", 0.0)
        writing -= result.timings.get("first_token_ms", 0.0)
        if writing > 0:
            columns["writing"].append(result.tokens["answer"] / writing * 1000)
    units = {"prompt": "tokens", "evaluated": "tokens", "answer": "tokens", "first token": "ms"}
    names = {"prompt": "prompt", "evaluated": "evaluated of the prompt", "answer": "answer",
             "first token": "time to first token", "writing": "writing"}  # fmt: skip
    return [
        figure(names[name], units.get(name, "tokens/s"), values)
        for name, values in columns.items()
        if values
    ]


def figure(
    name: str, unit: str, values: Sequence[float], *, bar: str = "", met: bool | None = None
) -> Figure:
    """Median and 95th percentile (nearest rank) of what was measured."""
    ordered = sorted(values)
    rank = max(-(-len(ordered) * 95 // 100) - 1, 0)
    return Figure(
        name, unit, round(statistics.median(ordered), 2), round(ordered[rank], 2), len(ordered),
        bar, met,
    )  # fmt: skip


@contextlib.contextmanager
def _timed(times: dict[str, list[float]], name: str, number: int) -> Iterator[None]:
    """Notes how long the block took, but for the first two rounds, which warm up."""
    started = time.perf_counter()
    yield
    took = (time.perf_counter() - started) * 1000
    if number >= 2:
        times.setdefault(name, []).append(took)


def _question(number: int) -> str:
    return f"{_QUESTIONS[number % len(_QUESTIONS)]} ({number})"
