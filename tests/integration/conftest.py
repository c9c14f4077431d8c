"""Services over a scripted model server and a real database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from jarvis.config import Config, DatabaseSettings
from jarvis.paths import Paths
from jarvis.services import worker
from jarvis.services.app import App
from tests.scripted_ollama import ScriptedOllama, scripted_ollama

Adjust = Callable[[Config], Config]


@pytest.fixture
def model_server() -> Iterator[ScriptedOllama]:
    """A server that answers "fine" until it is told otherwise."""
    with scripted_ollama() as made:
        yield made


@pytest.fixture
def scripted_app(
    settings: DatabaseSettings,
    paths: Paths,
    model_server: ScriptedOllama,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Adjust], App]]:
    """Makes the services with adjusted settings; no worker runs beside the test."""
    monkeypatch.setattr(worker, "wake", lambda _: None)
    base = Config()
    chat = replace(base.chat, provider="ollama", host=model_server.host, model="scripted")
    config = replace(base, user="tester", database=settings, chat=chat)
    made: list[App] = []

    def make(adjust: Adjust = lambda config: config) -> App:
        made.append(App(adjust(config), paths))
        return made[-1]

    yield make
    for app in made:
        app.close()
