"""Making Jarvis ready: the database, the models, and the few settings that are worth a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jarvis.services import configuration

if TYPE_CHECKING:
    from jarvis.services.app import App


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be used, before anything is fetched. ``problem`` where nothing can be."""

    kind: str
    model: str
    where: str
    reason: str
    installed: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One part that is ready now."""

    name: str
    detail: str


def plans(app: App) -> list[Plan]:
    """What chat and embeddings would use, and why; starts and fetches nothing."""
    from jarvis.services import models

    return [
        Plan(use.kind, use.model, use.where, use.reason, use.installed, use.problem)
        for use in models.in_use(app)
    ]


def choose(app: App, key: str, value: str) -> None:
    """Writes one answer of the wizard into the configuration.

    Raises:
        ConfigError: the value is none for that setting.
    """
    configuration.change(app.config_path, key, value)


def prepare(app: App) -> Iterator[Step]:
    """Makes the parts ready, one after the other; each is there for good when it is yielded.

    Raises:
        DatabaseUnavailable: the database cannot be made or reached.
        ModelUnavailable: a model cannot be fetched or loaded.
    """
    from jarvis.services import completions

    app.database.open()
    yield Step("database", app.database.describe())
    chat = app.chat_model()
    yield Step("chat model", chat.name)
    embedding = app.embedding_model()
    yield Step("embedding model", f"{embedding.name}, {embedding.dimensions} dimensions")
    chat.preload()
    yield Step("first answer", "the chat model is loaded")
    completions.refresh(app)
