"""Background jobs of the search: vectors of what was stored, statistics, indexes.

Every batch is a transaction of its own; what is left to do is read from the tables, so that a
worker that was killed loses nothing. A text that changes or goes while it is embedded gets no
vector of its old self.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jarvis import log
from jarvis.errors import DatabaseUnavailable, ModelUnavailable, ProviderUnavailable
from jarvis.retrieval import index
from jarvis.store import message_keys, roles, search_function, upkeep, vectors
from jarvis.store.upkeep import Waiting
from jarvis.store.vectors import KINDS, Kind

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection
    from jarvis.types import EmbeddingModel, Vector

BATCH = 32
"""Texts embedded between two looks at whether a turn wants the model."""

WORDS_BATCH = 200
"""Rows whose terms are made anew in one transaction."""

RETRY_SECONDS = 30.0
"""Wait after a first failure; doubled with each further one."""


@dataclass(frozen=True, slots=True)
class EmbedJob:
    """Makes the vectors that one kind of rows lacks."""

    name: str
    kind: Kind

    def pending(self, app: App) -> int:
        """Rows without a vector of the model in use. Starts no model server."""
        with app.database.connection() as connection:
            model_id = known_model(app, vectors.models(connection))
            return upkeep.count_waiting(connection, self.kind, app.user.id, model_id)

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Embeds one batch.

        Raises:
            ModelUnavailable: the model cannot be used at all; nothing is noted against the rows.
        """
        user_id = app.user.id
        with app.database.connection() as connection:
            # Without work no model is loaded.
            model_id = known_model(app, vectors.models(connection))
            if not upkeep.waiting(connection, self.kind, user_id, model_id, 1):
                return 0
        model = app.embedding_model()
        with app.database.connection() as connection:
            rows = upkeep.waiting(connection, self.kind, user_id, model.id, BATCH)
        if not rows or stop():
            return 0
        return embed(app, self.kind, model, rows)


def embed(app: App, kind: Kind, model: EmbeddingModel, rows: Sequence[Waiting]) -> int:
    """Embeds these rows and stores what came of it; returns how many were settled.

    Raises:
        ProviderUnavailable: the model server does not answer.
    """
    made, faults = _embed_each(app, rows)
    user_id = app.user.id
    with app.database.transaction() as tx:
        same = upkeep.unchanged(tx, kind, user_id, [row for row in rows if row.id in made])
        index.write_vectors(
            tx, kind, user_id, model.id, {owner: made[owner] for owner in sorted(same)}
        )
        for owner, fault in faults.items():
            vectors.put_failures(tx, kind, user_id, model.id, [owner], fault, RETRY_SECONDS)
    return len(rows)


def _embed_each(app: App, rows: Sequence[Waiting]) -> tuple[dict[int, Vector], dict[int, str]]:
    """Vectors by id, and errors by id: one bad text must not hold up the others."""
    embedder = app.embedder()
    try:
        found = embedder.embed_documents([row.text for row in rows])
        return dict(zip((row.id for row in rows), found, strict=True)), {}
    except ProviderUnavailable:
        raise
    except ModelUnavailable as error:
        if len(rows) == 1:
            return {}, {rows[0].id: error.message}
    made: dict[int, Vector] = {}
    faults: dict[int, str] = {}
    for row in rows:
        one, fault = _embed_each(app, [row])
        made |= one
        faults |= fault
    return made, faults


def known_model(app: App, models: Sequence[EmbeddingModel]) -> int:
    """The id of the model that is probably in use, without asking any server; 0: none yet."""
    wanted = app.config.embedding.model.removesuffix(":latest")
    named = [row for row in models if row.name.removesuffix(":latest") == wanted or not wanted]
    return named[-1].id if named else 0


@dataclass(frozen=True, slots=True)
class KeysJob:
    """Puts the words of new messages into the keys of their neighbours."""

    name: str = "turn keys"

    def pending(self, app: App) -> int:
        """New messages, as far as one batch goes."""
        with app.database.connection() as connection:
            return len(message_keys.stale_messages(connection, app.user.id, WORDS_BATCH))

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Makes the keys around one batch anew."""
        with app.database.transaction() as tx:
            return index.renew_keys(tx, app.user.id, WORDS_BATCH)


@dataclass(frozen=True, slots=True)
class StatisticsJob:
    """Counts the terms of stores that changed, and makes terms anew after a change of language."""

    name: str = "statistics"

    def pending(self, app: App) -> int:
        """Kinds of rows whose counts are old, and rows in another language."""
        with app.database.connection() as connection:
            due = sum(_recount_due(connection, kind, app.user.id) for kind in KINDS)
            return due + int(vectors.language(connection, app.user.id) != language(app))

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Makes one batch of terms anew, or counts one kind."""
        user_id, wanted = app.user.id, language(app)
        with app.database.transaction() as tx:
            if vectors.language(tx, user_id) != wanted:
                # New rows are stemmed the new way at once; the old ones follow in batches.
                upkeep.set_language(tx, user_id, wanted)
        for kind in KINDS:
            if stop():
                return 0
            done = renew_words(app, kind, wanted)
            if done:
                return done
            with app.database.transaction() as tx:
                if _recount_due(tx, kind, user_id):
                    index.recount(tx, kind, user_id)
                    return 1
        return 0


def renew_words(app: App, kind: Kind, wanted: str) -> int:
    """Makes the terms of one batch of rows anew that another language's stemmer made."""
    user_id = app.user.id
    with app.database.transaction() as tx:
        rows = upkeep.in_other_language(tx, kind, user_id, wanted, WORDS_BATCH)
        if rows:
            index.write_many_terms(
                tx, kind, user_id, {row.id: row.text for row in rows}, language=wanted
            )
    return len(rows)


def language(app: App) -> str:
    """The configured language; English where there is no such stemmer (and the log says so)."""
    from jarvis.retrieval import words

    name = app.config.retrieval.language.lower()
    try:
        words.stemmer(name)
    except ValueError:
        log.get("indexing").warning("retrieval.language: no stemmer for %s", name)
        return "english"
    return name


def _recount_due(connection: Connection, kind: Kind, user_id: int) -> bool:
    total, changed = upkeep.changed_share(connection, kind, user_id)
    counted = upkeep.has_statistics(connection, kind, user_id)
    if total < upkeep.COUNT_FROM:
        return counted
    return not counted or changed > upkeep.RECOUNT_SHARE


@dataclass(frozen=True, slots=True)
class IndexesJob:
    """Builds the indexes of vectors, and the SQL function, for the model in use."""

    name: str = "indexes"

    def pending(self, app: App) -> int:
        """Indexes to build; none for a database role that may not."""
        with app.database.connection() as connection:
            if not _may_build(app, connection):
                return 0
            models = vectors.models(connection)
            return sum(
                upkeep.wants_index(connection, kind, model) for model in models for kind in KINDS
            ) + int(
                bool(models)
                and search_function.function_model(connection) != known_model(app, models)
            )

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Builds one index; writers go on meanwhile."""
        with app.database.connection() as connection:
            if not _may_build(app, connection):
                return 0
            models = {model.id: model for model in vectors.models(connection)}
            current = models.get(known_model(app, list(models.values())))
            wanted = [
                (kind, model)
                for model in models.values()
                for kind in KINDS
                if upkeep.wants_index(connection, kind, model)
            ]
            stale = current is not None and search_function.function_model(connection) != current.id
        if (not wanted and not stale) or stop():
            return 0
        try:
            owner = app.database.connect_as_owner()
        except DatabaseUnavailable as error:
            log.get("indexing").warning("no indexes are built: %s", error.message)
            return 0
        try:
            if stale and current is not None:
                search_function.make_function(owner, current)
                return 1
            upkeep.build_index(owner, *wanted[0])
        finally:
            owner.close()
        return 1


def _may_build(app: App, connection: Connection) -> bool:
    # The embedded server lets us in as the owner, whoever we are for the rest.
    return app.database.embedded or roles.owns_tables(connection)


def embed_memories_job() -> EmbedJob:
    """For the worker's table of jobs."""
    return EmbedJob("memory vectors", "memory")


def embed_turns_job() -> EmbedJob:
    """For the worker's table of jobs."""
    return EmbedJob("turn vectors", "turn")


def turn_keys_job() -> KeysJob:
    """For the worker's table of jobs."""
    return KeysJob()


def statistics_job() -> StatisticsJob:
    """For the worker's table of jobs."""
    return StatisticsJob()


def indexes_job() -> IndexesJob:
    """For the worker's table of jobs."""
    return IndexesJob()
