"""The search in large stores: recall, time and memory, against plain pgvector queries.

``python -m tests.bench.scale`` fills a database of its own with 10,000 and another with 100,000
memories (``--rows`` for other sizes, ``--million`` for 1,000,000), vectors of 384 dimensions and
words in the proportions of natural text, and prints a line a figure. The servers and their data
are removed at the end. With ``--keep DIR`` they stay there and are not filled again: ``--fill``
fills only, so that the times can be taken later, when the machine has nothing else to do;
``--remove`` takes them away.

The vectors have about 32 directions of their own, as embeddings of text do: independent numbers
in 384 dimensions would have no neighbours worth finding. "Raw" is the bare pgvector query on the
same index with the same ``hnsw.ef_search``, without joins, words or scores.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from jarvis import postgres
from jarvis.config import DatabaseSettings, RetrievalSettings
from jarvis.paths import Paths
from jarvis.retrieval import Query, terms, tuning
from jarvis.retrieval.search import Retriever
from jarvis.store import memories, search, upkeep, users, vectors
from jarvis.store.database import Connection, Database
from jarvis.types import EmbeddingModel, Filters, User

DIMENSIONS = 384
DIRECTIONS = 32
QUESTIONS = 100
VOCABULARY = 30_000
BATCH = 5_000
NOW = datetime(2026, 6, 1, tzinfo=UTC)

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """A vector near a stored one, and words of which some are that row's."""

    vector: list[float]
    text: str


class Sample:
    """Made-up facts: a vector and words each, the same for every run."""

    def __init__(self, seed: int = 5) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.directions = self.numbers.normal(size=(DIRECTIONS, DIMENSIONS)).astype(np.float32)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or")]
        self.words = [
            "".join(self.chance.choices(syllables, k=self.chance.randint(2, 4)))
            for _ in range(VOCABULARY)
        ]
        # Zipf's law as Mandelbrot corrected it, for the words of a language.
        self.weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))

    def vectors(self, count: int) -> Array:
        """Unit vectors, one a row."""
        return self.unit(
            self.numbers.normal(size=(count, DIRECTIONS)).astype(np.float32) @ self.directions
            + self.numbers.normal(size=(count, DIMENSIONS)).astype(np.float32)
        )

    def sentences(self, count: int) -> list[str]:
        """Facts of about twelve words."""
        return [" ".join(self.choose(self.chance.randint(8, 16))) for _ in range(count)]

    def choose(self, count: int) -> list[str]:
        """So many words, as often as a language has them."""
        return self.chance.choices(self.words, cum_weights=self.weights, k=count)

    def question(self, vector: Array, text: str) -> Question:
        """Asks for one row: four of its words, two others, a vector near it."""
        words = text.split()
        asked = self.chance.sample(words, 4) + self.choose(2)
        noise = self.numbers.normal(size=DIMENSIONS).astype(np.float32) / np.sqrt(DIMENSIONS)
        return Question(self.unit((vector + 0.6 * noise)[None])[0].tolist(), " ".join(asked))

    @staticmethod
    def unit(rows: Array) -> Array:
        """The rows at length 1."""
        scaled: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return scaled


def fill(admin: Connection, user: User, model: EmbeddingModel, sample: Sample, rows: int) -> None:
    """Writes memories with vectors and terms; every hundredth is of the category ``few``.

    As the superuser: row-level security admits no COPY.
    """
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        texts, made = sample.sentences(count), sample.vectors(count)
        with admin.transaction(), admin.cursor() as cursor:
            with cursor.copy(
                "COPY memories (user_id, id, type, category, content, content_hash, importance,"
                " confidence, source, check_state) FROM STDIN"
            ) as copy:
                for place, text in enumerate(texts):
                    number = start + place + 1
                    category = "few" if number % 100 == 0 else f"c{number % 7}"
                    content = f"{text} {number}"
                    copy.write_row(
                        (user.id, number, "FACT", category, content,
                         memories.content_hash(content), 0.5, 1.0, "manual", "skipped")
                    )  # fmt: skip
            with cursor.copy(
                "COPY memory_vectors (user_id, memory_id, model_id, embedding) FROM STDIN"
            ) as copy:
                for place, row in enumerate(made):
                    text = "[" + ",".join(f"{x:.6f}" for x in row) + "]"
                    copy.write_row((user.id, start + place + 1, model.id, text))
            with cursor.copy(
                "COPY memory_terms (user_id, memory_id, language, terms, weights) FROM STDIN"
            ) as copy:
                for place, text in enumerate(texts):
                    weighed = terms.weigh("memory", terms.count(user.id, text, "english"))
                    copy.write_row(
                        (user.id, start + place + 1, "english", sorted(weighed),
                         vectors.sparse_text(weighed))
                    )  # fmt: skip


def administrator(database: Database) -> Connection:
    """A connection as the embedded server's superuser."""
    address = postgres.address(database.paths)
    return psycopg.connect(
        host=address.host,
        port=address.port,
        user=postgres.ADMIN_ROLE,
        dbname=address.dbname,
        autocommit=True,
    )


def questions(connection: Connection, user: User, sample: Sample, rows: int) -> list[Question]:
    """Questions about rows spread over the store."""
    found = []
    for number in sample.chance.sample(range(1, rows + 1), QUESTIONS):
        row = connection.execute(
            "SELECT m.content, v.embedding::text FROM memories m JOIN memory_vectors v"
            " ON v.user_id = m.user_id AND v.memory_id = m.id WHERE m.user_id = %s AND m.id = %s",
            (user.id, number),
        ).fetchone()
        assert row is not None
        vector = np.array([float(x) for x in row[1][1:-1].split(",")], np.float32)
        found.append(sample.question(vector, row[0].rsplit(" ", 1)[0]))
    return found


def timed(
    asked: Sequence[Question], run: Callable[[Question], list[int]]
) -> tuple[float, list[list[int]]]:
    """Median milliseconds a question, and what was found; each is run twice, the second counts."""
    times, found = [], []
    for question in asked:
        run(question)
        started = time.perf_counter()
        found.append(run(question))
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), found


def overlap(found: Sequence[Sequence[int]], truth: Sequence[Sequence[int]]) -> float:
    """Share of the true rows that were found."""
    return statistics.mean(
        len(set(ours) & set(theirs)) / len(theirs)
        for ours, theirs in zip(found, truth, strict=True)
        if theirs
    )


class Bench:
    """The searches to compare, on one filled database."""

    def __init__(self, database: Database, user: User, model: EmbeddingModel, rows: int) -> None:
        self.database, self.user, self.model = database, user, model
        plain = RetrievalSettings(importance_weight=0.0, recency_weight=0.0)
        self.retriever = Retriever(database, plain)
        self.connection = database.connect()
        self.connection.execute(
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', false),"
            " set_config('hnsw.ef_search', %s, false)",
            (str(search.ef_search(rows)),),
        )

    def raw(self, question: Question, *, few: bool = False, exact: bool = False) -> list[int]:
        """Plain SQL: ten nearest rows, by the index or one by one, with or without a filter."""
        distance = "v.embedding <=> %(v)s::vector" if exact else (
            f"v.embedding::halfvec({DIMENSIONS}) <=> %(v)s::halfvec({DIMENSIONS})"
        )  # fmt: skip
        join = (
            "JOIN memories m ON m.user_id = v.user_id AND m.id = v.memory_id AND m.category = 'few'"
            if few
            else ""
        )
        statement = (
            f"SELECT v.memory_id FROM memory_vectors v {join}"  # noqa: S608 -- constants
            f" WHERE v.user_id = %(u)s AND v.model_id = {self.model.id}"
            f" ORDER BY {distance} LIMIT 10"
        )
        rows = self.connection.execute(
            statement.encode(),
            {"u": self.user.id, "v": vectors.vector_text(question.vector)},
            prepare=False,
        )
        return [row[0] for row in rows]

    def dense(self, question: Question, *, few: bool = False) -> list[int]:
        """Jarvis, by meaning alone."""
        return self._search(Query("", question.vector, NOW), few)

    def words(self, question: Question) -> list[int]:
        """Jarvis, by words alone."""
        return self._search(Query(question.text, None, NOW), few=False)

    def both(self, question: Question) -> list[int]:
        """Jarvis, as ``memory search`` does it."""
        return self._search(Query(question.text, question.vector, NOW), few=False)

    def _search(self, query: Query, few: bool) -> list[int]:
        results = self.retriever.memories(
            self.user.id,
            query,
            self.model,
            filters=Filters(category="few") if few else Filters(),
            limit=10,
            gate=False,
            collapse=False,
        )
        return [hit.memory.id for hit in results]


@contextmanager
def all_candidates() -> Iterator[None]:
    """Every row that holds any word of the question is scored."""
    kept = tuning.CANDIDATE_ROWS
    tuning.CANDIDATE_ROWS = 10**12  # type: ignore[misc]
    try:
        yield
    finally:
        tuning.CANDIDATE_ROWS = kept  # type: ignore[misc]


def measure(bench: Bench, asked: Sequence[Question], rows: int) -> None:
    """Prints every figure of one size."""

    def say(name: str, value: str, bar: str = "") -> None:
        print(f"{rows:>9,}  {name:<46}  {value:>14}  {bar}", flush=True)

    exact_ms, exact = timed(asked[:30], lambda q: bench.raw(q, exact=True))
    raw_ms, raw = timed(asked, bench.raw)
    dense_ms, dense = timed(asked, bench.dense)
    say("exact scan, raw", f"{exact_ms:.2f} ms")
    say("index, raw", f"{raw_ms:.2f} ms")
    say("index, raw: recall@10", f"{overlap(raw[:30], exact):.3f}")
    say("by meaning", f"{dense_ms:.2f} ms")
    say("by meaning / raw", f"{dense_ms / raw_ms:.2f}", "<= 2")
    say("by meaning: recall@10", f"{overlap(dense[:30], exact):.3f}", ">= 0.97")

    few_exact_ms, few_exact = timed(asked[:30], lambda q: bench.raw(q, few=True, exact=True))
    few_raw_ms, few_raw = timed(asked, lambda q: bench.raw(q, few=True))
    few_ms, few = timed(asked, lambda q: bench.dense(q, few=True))
    say("filter that keeps 1 %: exact, raw", f"{few_exact_ms:.2f} ms")
    say("filter that keeps 1 %: raw", f"{few_raw_ms:.2f} ms")
    say("filter that keeps 1 %: raw, recall@10", f"{overlap(few_raw[:30], few_exact):.3f}")
    say("filter that keeps 1 %: by meaning", f"{few_ms:.2f} ms")
    say("filter that keeps 1 %: by meaning / raw", f"{few_ms / few_raw_ms:.2f}", "<= 2")
    say("filter that keeps 1 %: recall@10", f"{overlap(few[:30], few_exact):.3f}", ">= 0.97")

    words_ms, words = timed(asked, bench.words)
    with all_candidates():
        whole_ms, whole = timed(asked[:50], bench.words)
    say("by words", f"{words_ms:.2f} ms")
    say("by words / raw", f"{words_ms / raw_ms:.2f}", "<= 10")
    say("by words, every row scored", f"{whole_ms:.2f} ms")
    say("by words: share of that one's top ten", f"{overlap(words[:50], whole):.3f}", ">= 0.94")
    both_ms, _ = timed(asked, bench.both)
    say("by both, as memory search does", f"{both_ms:.2f} ms")
    for name, size in upkeep.index_sizes(bench.connection).items():
        if size > 2**20:
            say(f"memory of {name}", f"{size / 2**20:.0f} MiB")


def main() -> None:
    """Fills and measures each size in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--million", action="store_true", help="1,000,000 rows, too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the databases there")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--fill", action="store_true", help="with --keep: measure nothing yet")
    only.add_argument("--remove", action="store_true", help="remove the databases in --keep DIR")
    arguments = parser.parse_args()
    if (arguments.fill or arguments.remove) and arguments.keep is None:
        parser.error("--fill and --remove need --keep DIR")
    sizes = sorted({*arguments.rows, *([1_000_000] if arguments.million else [])})
    with tempfile.TemporaryDirectory(prefix="jb", ignore_cleanup_errors=True) as scratch:
        home = arguments.keep or Path(scratch)
        for rows in sizes:
            # A database each, so that indexes and counts hold one size only.
            paths = Paths.from_environment({"JARVIS_HOME": str(home.absolute() / str(rows))})
            if arguments.remove:
                postgres.remove(paths)
                continue
            database = Database(DatabaseSettings(), paths)
            try:
                run(database, rows, measuring=not arguments.fill)
            finally:
                database.close()
                if arguments.keep is None:
                    postgres.remove(paths)
                else:
                    postgres.stop(paths)


def run(database: Database, rows: int, *, measuring: bool) -> None:
    """Fills the database with so many rows, unless it was, and measures."""
    name, sample = f"made-up-{rows}", Sample()
    with database.transaction() as tx:
        user = users.ensure(tx, f"scale-{rows}")
        vectors.add_model(tx, name, "", DIMENSIONS, "", "")
        model = vectors.find_model(tx, name, "", DIMENSIONS, "", "")
    assert model is not None
    owner = database.connect_as_owner()
    if not upkeep.has_statistics(owner, "memory", user.id):
        started = time.perf_counter()
        with administrator(database) as admin:
            admin.execute("DELETE FROM memories")  # of a run that was stopped
            fill(admin, user, model, sample, rows)
        print(f"{rows:>9,}  filled in {time.perf_counter() - started:.0f} s", flush=True)
        started = time.perf_counter()
        upkeep.build_index(owner, "memory", model)
        print(f"{rows:>9,}  index built in {time.perf_counter() - started:.0f} s", flush=True)
        owner.execute("VACUUM ANALYZE memories, memory_vectors, memory_terms")
        with database.transaction() as tx:
            upkeep.recount(tx, "memory", user.id)
    owner.close()
    if not measuring:
        return
    bench = Bench(database, user, model, rows)
    with database.connection() as connection:
        asked = questions(connection, user, sample, rows)
    measure(bench, asked, rows)
    bench.connection.close()


if __name__ == "__main__":
    main()
