"""The background jobs of the search, and the switch of the embedding model."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from jarvis.errors import ModelUnavailable, ProviderUnavailable, UsageError
from jarvis.services import indexing, memory, reindex, search, toolbox
from jarvis.services.app import App
from jarvis.store import search_function, upkeep, vectors
from jarvis.types import Vector
from tests.integration.stored import say


class MadeUp:
    """An embedding model whose vectors depend on the words alone: no two models can be had
    without a network, and none that fails on purpose."""

    def __init__(self, dimensions: int, bad: str = "", down: bool = False) -> None:
        self.name, self.digest, self.dimensions = f"made-up-{dimensions}", "d", dimensions
        self.query_prefix = self.document_prefix = ""
        self.max_tokens = 100
        self.bad, self.down, self.calls = bad, down, 0

    def embed_query(self, text: str) -> Vector:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        if self.down:
            raise ProviderUnavailable("the model server does not answer")
        for text in texts:
            if self.bad and self.bad in text:
                raise ModelUnavailable(f"{self.name} gave zeros only")
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        total = [0.0] * self.dimensions
        for word in text.lower().split():
            chance = random.Random(hashlib.sha256(word.encode()).digest())
            total = [old + chance.gauss(0, 1) for old in total]
        return total


def use(app: App, embedder: MadeUp) -> None:
    """As ``jarvis model use`` and a new process would."""
    app.forget_models()
    app._models.embedder = embedder  # type: ignore[assignment]


def drain(app: App, job: indexing.EmbedJob | indexing.StatisticsJob | indexing.IndexesJob) -> int:
    """Runs a job until it has nothing left."""
    done = 0
    for _ in range(1_000):
        got = job.run_once(app, lambda: False)
        done += got
        if not got:
            return done
    raise AssertionError(f"{job.name} never ends")


def test_messages_are_embedded_in_batches_and_go_on_where_they_were(app: App) -> None:
    job = indexing.embed_turns_job()
    ids = say(app.database, app.user, [f"line number {i}" for i in range(70)])
    use(app, MadeUp(64))
    assert job.pending(app) == 70
    assert job.run_once(app, lambda: True) == 0
    assert job.run_once(app, lambda: False) == indexing.BATCH
    assert job.pending(app) == 70 - indexing.BATCH
    assert drain(app, job) == 70 - indexing.BATCH
    assert job.pending(app) == 0
    embedder = app.embedder()
    calls = getattr(embedder, "calls", None)
    assert job.run_once(app, lambda: False) == 0
    assert getattr(embedder, "calls", None) == calls, "nothing is asked without work"
    with app.database.connection() as connection:
        keys = connection.execute(
            "SELECT key, count(*) FROM message_vectors WHERE embedding IS NOT NULL GROUP BY 1"
            " ORDER BY 1"
        ).fetchall()
    assert keys == [(0, 70), (1, 35)]
    assert ids


def test_one_text_that_cannot_be_embedded_holds_up_no_other(app: App) -> None:
    say(app.database, app.user, ["one", "two", "poison", "four"])
    use(app, MadeUp(64, bad="poison"))
    job = indexing.embed_turns_job()
    assert drain(app, job) == 4
    with app.database.connection() as connection:
        rows = connection.execute(
            "SELECT m.content, v.error FROM message_vectors v JOIN messages m ON m.user_id ="
            " v.user_id AND m.id = v.message_id WHERE v.embedding IS NULL"
        ).fetchall()
    assert rows == [("poison", "made-up-64 gave zeros only")]
    found = search.search(app, "poison", kinds=("turns",))
    assert any("by words" in note for note in found.notes)
    assert [hit.content for hit in found.turns][:1] == ["poison"]
    use(app, MadeUp(64))
    assert reindex.reindex(app).embedded["turns"] == 1


def test_a_server_that_is_down_is_not_held_against_the_rows(app: App) -> None:
    use(app, MadeUp(64))
    app.embedding_model()
    say(app.database, app.user, ["one", "two"])
    use(app, MadeUp(64, down=True))
    with pytest.raises(ProviderUnavailable):
        indexing.embed_turns_job().run_once(app, lambda: False)
    with app.database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM message_vectors").fetchone() == (0,)
    found = search.search(app, "two", kinds=("turns",))
    assert [hit.content for hit in found.turns] == ["one", "two"] or found.turns


def test_a_switch_of_the_model_and_back(app: App) -> None:
    """768, 384, 1024 and back: everything works at each step, old rows are found by words."""
    use(app, MadeUp(768))
    first = memory.add(app, [memory.describe("I keep bees in the garden")]).added[0].memory
    for dimensions in (384, 1024, 768):
        use(app, MadeUp(dimensions))
        by_words = search.search(app, "bees garden", kinds=("memories",))
        assert [hit.memory.id for hit in by_words.memories][:1] == [first.id]
        new = (
            memory.add(app, [memory.describe(f"Number {dimensions} is my locker")]).added[0].memory
        )
        found = search.search(app, f"number {dimensions} locker", kinds=("memories",))
        assert found.memories[0].memory.id == new.id
        assert found.memories[0].similarity is not None
        report = reindex.reindex(app)
        assert report.failed == {}
        found = search.search(app, "bees garden", kinds=("memories",))
        assert all(hit.similarity is not None for hit in found.memories)
    with app.database.connection() as connection:
        models = vectors.models(connection)
    assert [model.dimensions for model in models] == [768, 384, 1024]
    report = reindex.reindex(app, prune=True)
    assert report.pruned > 0
    assert reindex.reindex(app, prune=True).pruned == 0


def test_a_reindex_that_is_stopped_goes_on(app: App) -> None:
    use(app, MadeUp(64))
    say(app.database, app.user, [f"line number {i}" for i in range(100)])

    class Stop(Exception):
        pass

    def stop(what: str, done: int, total: int) -> None:
        assert done <= total
        if done >= 32:
            raise Stop

    with pytest.raises(Stop):
        reindex.reindex(app, progress=stop)
    seen: list[tuple[str, int, int]] = []
    report = reindex.reindex(app, progress=lambda *step: seen.append(step))
    assert report.embedded["turns"] == 100 - indexing.BATCH
    assert ("turns", 68, 68) in seen


def test_a_change_of_language_makes_terms_anew(app: App) -> None:
    memory_id = memory.add(app, [memory.describe("Wir haben zwei Häuser")]).added[0].memory.id
    use(app, MadeUp(64))
    german = replace(app.config, retrieval=replace(app.config.retrieval, language="german"))
    app.config = german
    job = indexing.statistics_job()
    assert job.pending(app) == 1
    drain(app, job)
    assert job.pending(app) == 0
    with app.database.connection() as connection:
        assert vectors.language(connection, app.user.id) == "german"
        rows = connection.execute("SELECT memory_id, language FROM memory_terms").fetchall()
    assert rows == [(memory_id, "german")]
    app.retriever._languages.clear()
    found = search.search(app, "haus", kinds=("memories",))
    assert found.memories[0].explanation["words"] == ["haus"]


@pytest.mark.owner
def test_indexes_are_built_by_the_worker_when_they_pay(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "INDEX_FROM", 10)
    monkeypatch.setattr(upkeep, "COUNT_FROM", 10)
    use(app, MadeUp(64))
    say(app.database, app.user, [f"line number {i}" for i in range(30)])
    drain(app, indexing.embed_turns_job())
    job = indexing.indexes_job()
    assert job.pending(app) == 2
    assert drain(app, job) == 2
    assert job.pending(app) == 0
    statistics = indexing.statistics_job()
    assert statistics.pending(app) == 1
    assert drain(app, statistics) == 1
    found = search.search(app, "line number 8", kinds=("turns",), limit=3)
    assert found.turns[0].content == "line number 8"
    with app.database.connection() as connection:
        assert upkeep.has_statistics(connection, "turn", app.user.id)
        sizes = upkeep.index_sizes(connection)
        model_id = app.embedding_model().id
        assert search_function.function_model(connection) == model_id
    assert sizes[f"turn_vectors_of_model_{model_id}"] > 0


def test_the_real_model_finds_by_meaning_and_is_calibrated(app: App) -> None:
    facts = [
        "I am building a compiler in Rust",
        "My sister Ana lives in Lisbon",
        "I row on Sundays",
    ]
    memory.add(app, [memory.describe(fact) for fact in facts])
    row = app.embedding_model()
    assert row.threshold is not None
    assert 0.1 < row.threshold < 0.4
    found = search.search(app, "How is my programming project going?", explain=True)
    assert found.memories[0].memory.content == facts[0]
    assert found.memories[0].explanation["gate"] == "meaning"
    kinds = {kind for kind, _ in found.hits}
    assert kinds == {"memories"}
    same = search.search(app, facts[1], min_similarity=0.99)
    assert [hit.memory.content for hit in same.memories] == [facts[1]]
    assert not search.search(app, "zebra crossing", min_similarity=0.99).hits


def test_a_tool_recalls_by_keywords_and_nothing_of_what_is_not_known(app: App) -> None:
    facts = ["My bicycle is green and stands in the cellar", "My cousin lives in Malmö"]
    memory.add(app, [memory.describe(fact) for fact in facts])
    while indexing.embed_memories_job().run_once(app, lambda: False):
        pass
    port = toolbox.Memories(app, private=False)
    for query in ("bicycle colour", "What colour is my bicycle?"):
        assert [hit.memory.content for hit in port.recall(query, 5)] == facts[:1]
    assert port.recall("quarterly tax return", 5) == ()


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("  \x00 ", {}, "nothing to search for"),
        ("x", {"limit": 0}, "1 to 1,000"),
        ("x", {"limit": 1_000_000}, "1 to 1,000"),
        ("x", {"min_similarity": 7.0}, "between -1 and 1"),
        ("x", {"kinds": ("turns",), "filters": search.make_filters(types=["goal"])}, "only mem"),
    ],
)
def test_a_search_that_cannot_be_meant(
    app: App, text: str, options: dict[str, object], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault):
        search.search(app, text, **options)  # type: ignore[arg-type]
