"""Everything embedded again after a switch of the model, in the foreground.

Rows are embedded in batches, each a transaction of its own; what has a vector of the model in use
is done. So it can be stopped at any time and goes on where it was, and readers notice nothing:
rows without a vector of the new model are found by their words meanwhile, and the old model's
vectors stay, so that a switch back costs nothing, until ``--prune``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jarvis.retrieval import index
from jarvis.services import indexing
from jarvis.store import upkeep, vectors
from jarvis.store.vectors import KINDS, Kind

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.types import EmbeddingModel

NAMES: dict[Kind, str] = {"memory": "memories", "turn": "turns", "chunk": "passages"}

Progress = Callable[[str, int, int], None]
"""What is done, how many of how many."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was done: rows by kind.

    Attributes:
        model: name of the model in use.
        embedded: rows that got a vector.
        failed: rows that could not be embedded; they are found by words.
        worded: rows whose terms were made anew.
        pruned: vectors of other models that were deleted.
        indexes: indexes that were built.
        exact: why there is no index, where the model cannot have one; else empty.
    """

    model: str
    embedded: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    worded: int = 0
    pruned: int = 0
    indexes: int = 0
    exact: str = ""


def reindex(
    app: App,
    *,
    words: bool = False,
    prune: bool = False,
    progress: Progress = lambda *_: None,
) -> Report:
    """Embeds what the model in use has not embedded yet, then counts and indexes.

    Args:
        words: also make the terms of every row anew.
        prune: delete other models' vectors when all is done.

    Raises:
        ModelUnavailable: the embedding model does not answer; what is done stays done.
    """
    model = app.embedding_model()
    worded = _words(app, progress) if words else 0
    embedded = {NAMES[kind]: _embed(app, kind, model, progress) for kind in KINDS}
    user_id = app.user.id
    failed: dict[str, int] = {}
    with app.database.connection() as connection:
        for kind in KINDS:
            left = upkeep.count_waiting(connection, kind, user_id, model.id, again=True)
            if left:
                failed[NAMES[kind]] = left
    pruned = 0
    if prune:
        for kind in KINDS:
            with app.database.transaction() as tx:
                pruned += upkeep.forget_other_models(tx, kind, user_id, model.id)
    indexes = _finish(app, progress)
    exact = ""
    if model.dimensions > vectors.MAX_INDEXED_DIMENSIONS:
        exact = f"{model.dimensions} dimensions are more than an index can hold"
    return Report(model.name, embedded, failed, worded, pruned, indexes, exact)


def _embed(app: App, kind: Kind, model: EmbeddingModel, progress: Progress) -> int:
    user_id = app.user.id
    with app.database.connection() as connection:
        total = upkeep.count_waiting(connection, kind, user_id, model.id, again=True)
    done, last = 0, 0
    while True:
        progress(NAMES[kind], done, total)
        with app.database.connection() as connection:
            rows = upkeep.waiting(
                connection, kind, user_id, model.id, indexing.BATCH, after=last, again=True
            )
        if not rows:
            return done
        done += indexing.embed(app, kind, model, rows)
        last = rows[-1].id


def _words(app: App, progress: Progress) -> int:
    """Makes the terms of all rows anew, by taking their language from them first."""
    user_id, wanted = app.user.id, indexing.language(app)
    done = 0
    with app.database.transaction() as tx:
        upkeep.set_language(tx, user_id, wanted)
    for kind in KINDS:
        last = 0
        while True:
            with app.database.transaction() as tx:
                rows = upkeep.texts(tx, kind, user_id, after=last, limit=indexing.WORDS_BATCH)
                index.write_many_terms(
                    tx, kind, user_id, {row.id: row.text for row in rows}, language=wanted
                )
            if not rows:
                break
            done, last = done + len(rows), rows[-1].id
            progress("words", done, done)
        with app.database.transaction() as tx:
            index.recount(tx, kind, user_id)
    return done


def _finish(app: App, progress: Progress) -> int:
    """Statistics, indexes and the SQL function, as the worker would."""
    built = 0
    for job in (indexing.StatisticsJob(), indexing.IndexesJob()):
        while job.run_once(app, lambda: False):
            if isinstance(job, indexing.IndexesJob):
                built += 1
                progress("indexes", built, built)
    return built
