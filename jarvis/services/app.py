"""The composition root: makes each service when it is first needed, from one configuration.

Nothing here is slow by itself: a command that lists memories never loads the ``ollama`` client,
and one that asks a model never loads a document extractor.
"""

from __future__ import annotations

import copy
import getpass
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from jarvis import log
from jarvis.config import Config
from jarvis.errors import ModelNotInstalled, NotFound
from jarvis.paths import Paths
from jarvis.store import users
from jarvis.store.database import Database
from jarvis.types import EmbeddingModel, User

if TYPE_CHECKING:
    from jarvis.llm.chat import OllamaChatModel
    from jarvis.llm.embedding import OllamaEmbedder
    from jarvis.llm.provider import Choice, Kind, Providers
    from jarvis.retrieval import Retriever
    from jarvis.services.assistant import Assistant
    from jarvis.services.sessions import Sessions
    from jarvis.services.tokens import TokenEstimator

Download = Callable[[str], None]
"""Installs the embedded engine's model of that name, showing how far it is."""


@dataclass
class _Models:
    """The embedding model in use, shared by the copies of an ``App``."""

    embedder: OllamaEmbedder | None = None
    row: EmbeddingModel | None = None


class App:
    """The services of one user with one configuration.

    Args:
        user_name: whose rows; empty: JARVIS_USER, the configuration, the login name.
        progress: told in a sentence when something takes long.
        download: called when a model of the embedded engine is missing and needed; the default
            installs it and reports through ``progress`` alone.
    """

    def __init__(
        self,
        config: Config,
        paths: Paths,
        *,
        user_name: str = "",
        config_path: Path | None = None,
        progress: Callable[[str], None] = lambda _: None,
        download: Download | None = None,
        debug: bool = False,
    ) -> None:
        log.set_up(paths.logs, config.log.level, debug=debug)
        self.config = config
        self.paths = paths
        self.config_path = config_path or paths.config_file
        self.progress = progress
        self.debug = debug
        self.user_name = user_name or config.user or login_name()
        self.download = download or self._download_unseen
        self._lock = threading.RLock()
        self._chat_models: dict[str, OllamaChatModel] = {}
        self._models = _Models()
        self._estimators: dict[str, tuple[int, TokenEstimator]] = {}
        self.notes: list[str] = []
        self._told: set[str] = set()

    def first_told(self, problems: Iterable[str]) -> list[str]:
        """Those that this process has not named yet: a chat says what is broken once."""
        new = [problem for problem in problems if problem not in self._told]
        self._told.update(new)
        return new

    @cached_property
    def database(self) -> Database:
        """The database, opened when first used."""
        return Database(
            self.config.database,
            self.paths,
            progress=self.progress,
            before_migration=_back_up,
        )

    @cached_property
    def user(self) -> User:
        """Whose rows are used; created when there is no such user yet.

        Raises:
            DatabaseUnavailable: the database cannot be used.
        """
        with self.database.transaction() as tx:
            return users.ensure(tx, self.user_name)

    def for_user(self, user: User) -> App:
        """The same services for another user: the database and the models are shared."""
        other = copy.copy(self)
        for name in ("assistant", "user"):
            other.__dict__.pop(name, None)
        # Opened here, so that every copy shares it.
        other.__dict__["database"] = self.database
        other.__dict__["providers"] = self.providers
        other.__dict__["user"] = user
        other.user_name = user.name
        return other

    def existing_user(self) -> User:
        """The user for a command that only reads: never created.

        Raises:
            NotFound: somebody was named who has no rows; the hint lists who has.
        """
        with self.database.connection() as connection:
            found = users.find(connection, self.user_name)
            if found is not None:
                return found
            known = users.names(connection)
        if not known or self.user_name == login_name():
            return self.user  # nothing is stored yet: an empty list is the right answer
        raise NotFound(f"there is no user {self.user_name!r}", "known users: " + ", ".join(known))

    @cached_property
    def providers(self) -> Providers:
        """Chooses model servers."""
        from jarvis.llm.provider import Providers

        return Providers(self.config, self.paths, progress=self.progress)

    def choose(self, kind: Kind, model: str = "") -> Choice:
        """The server and the model for ``kind``; see ``Providers.choose``."""
        return self.providers.choose(kind, model=model)

    def chat_model(self, name: str = "") -> OllamaChatModel:
        """The chat model, on a server that answers, installed.

        Raises:
            ModelUnavailable: there is none; the message says why.
        """
        with self._lock:
            if name not in self._chat_models:
                self._chat_models[name] = self._make_chat_model(name)
            return self._chat_models[name]

    def embedder(self) -> OllamaEmbedder:
        """The embedding model, on a server that answers, installed.

        Raises:
            ModelUnavailable: there is none; the message says why.
        """
        with self._lock:
            if self._models.embedder is None:
                self._models.embedder = self._make_embedder()
            return self._models.embedder

    def embedding_model(self) -> EmbeddingModel:
        """The row of the embedding model in use, calibrated; made at its first use.

        Raises:
            ModelUnavailable: the embedding model cannot be used.
            DatabaseUnavailable: the database cannot be used.
        """
        with self._lock:
            if self._models.row is None:
                from jarvis.retrieval import index

                embedder = self.embedder()
                with self.database.transaction() as tx:
                    self._models.row = index.register_model(tx, embedder)
            return self._models.row

    def forget_models(self) -> None:
        """Lets the next use choose again: after ``/model``, or when a server came back."""
        with self._lock:
            self._chat_models.clear()
            self._models.embedder = self._models.row = None

    def estimator(self, model: str) -> TokenEstimator:
        """Counts tokens for ``model``, from what was learnt so far."""
        from jarvis.services.tokens import TokenEstimator

        path = self.paths.state / "tokens.json"
        try:
            written = path.stat().st_mtime_ns
        except OSError:
            written = 0
        known = self._estimators.get(model)
        # Another process may have learnt something meanwhile.
        if known is None or known[0] != written:
            known = self._estimators[model] = (written, TokenEstimator(model, path))
        return known[1]

    @cached_property
    def retriever(self) -> Retriever:
        """Finds memories, past turns and passages."""
        from jarvis.retrieval import Retriever

        return Retriever(self.database, self.config.retrieval)

    @cached_property
    def assistant(self) -> Assistant:
        """Answers one turn at a time."""
        from jarvis.services.assistant import Assistant

        return Assistant(self)

    @cached_property
    def sessions(self) -> Sessions:
        """The user's conversations."""
        from jarvis.services.sessions import Sessions

        return Sessions(self)

    def wake_worker(self) -> None:
        """Starts the background worker where there is work and none runs; never waits."""
        from jarvis.services import worker

        worker.wake(self)

    def close(self) -> None:
        """Gives back connections."""
        if "database" in self.__dict__:
            self.database.close()
        if "providers" in self.__dict__:
            self.providers.close()

    def _make_chat_model(self, name: str) -> OllamaChatModel:
        # Chosen first: that nothing answers is said before the client is loaded.
        choice = self.choose("chat", name)
        from jarvis.llm.chat import OllamaChatModel

        self._install(choice)
        if choice.note and choice.note not in self.notes:
            self.notes.append(choice.note)
        settings = self.config.chat
        return OllamaChatModel(
            choice.server,
            choice.model,
            num_ctx=settings.num_ctx or default_num_ctx(),
            temperature=settings.temperature,
        )

    def _make_embedder(self) -> OllamaEmbedder:
        choice = self.choose("embedding")
        from jarvis.llm.embedding import OllamaEmbedder

        self._install(choice)
        settings = self.config.embedding
        embedder = OllamaEmbedder(
            choice.server,
            choice.model,
            dimensions=settings.dimensions,
            query_prefix=settings.query_prefix,
            document_prefix=settings.document_prefix,
        )
        self.providers.record(choice)
        return embedder

    def _install(self, choice: Choice) -> None:
        if choice.server.kind != "embedded":
            return
        from jarvis.engine import catalogue, store

        if store.find(self.paths, choice.model) is None:
            if catalogue.find(choice.model) is None:
                raise ModelNotInstalled(*gone(choice.model))
            self.download(choice.model)
        choice.server.ensure()

    def _download_unseen(self, name: str) -> None:
        from jarvis.services import models

        self.progress(f"downloading the model {name}, once")
        models.download(self.paths, self.config, name, lambda *_: None)


def gone(name: str) -> tuple[str, str]:
    """What is said of a model that is not here and cannot be fetched, and what to do."""
    return (
        f'there is no model "{name}" here, and the catalogue has none of that name',
        "choose another: jarvis model list, then jarvis model use NAME",
    )


def login_name() -> str:
    """The name of who is logged in; a uid without a name is its number."""
    with suppress(KeyError, OSError, ImportError):
        return getpass.getuser()
    return str(os.getuid())


def default_num_ctx() -> int:
    """The window asked for when none is configured: more where there is memory for it."""
    from jarvis.engine import machine

    return 8192 if machine.memory_bytes() >= 12 * 2**30 else 4096


def _back_up(database: Database, version: int) -> None:
    from jarvis.services import backup

    backup.before_migration(database, version)
