"""What stands before the model: personas, and sources of context that are slow or broken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from jarvis.config import Config
from jarvis.repl import actions
from jarvis.repl.chat import Chat
from jarvis.repl.terminal import PlainTerminal
from jarvis.services import memory, summary
from jarvis.services.app import App
from jarvis.services.turns import Finished, TurnRequest, TurnResult
from jarvis.store import sessions
from jarvis.types import Role
from tests.integration.conftest import Adjust
from tests.scripted_ollama import ScriptedOllama

PIRATE = "You are a pirate."


@pytest.fixture
def server(model_server: ScriptedOllama) -> ScriptedOllama:
    return model_server


def with_a_pirate(config: Config) -> Config:
    """And little patience."""
    return replace(
        config,
        chat=replace(config.chat, personas={"pirate": PIRATE}),
        retrieval=replace(config.retrieval, timeout=0.4),
    )


@pytest.fixture
def app(scripted_app: Callable[[Adjust], App]) -> App:
    made = scripted_app(with_a_pirate)
    memory.add(made, [memory.describe("My parrot is called Flint")])
    return made


def run(app: App, text: str, session: int | None = None, **options: str) -> TurnResult:
    for event in app.assistant.turn(TurnRequest(text, session_id=session, **options)):  # type: ignore[arg-type]
        if isinstance(event, Finished):
            return event.result
    raise AssertionError("a turn without an end")


def test_a_persona_stays_for_the_session_and_memories_never_replace_it(
    app: App, server: ScriptedOllama
) -> None:
    first = run(app, "What is my parrot called?", system="pirate")
    run(app, "And what is my parrot called now?", first.session_id)
    other = run(app, "What is my parrot called?")
    systems = [request["messages"][0] for request in server.requests]
    assert all(message["role"] == "system" for message in systems)
    assert systems[0]["content"].startswith(PIRATE)
    assert systems[1] == systems[0]
    assert PIRATE not in systems[2]["content"]
    assert other.memories
    for request in server.requests:
        # Facts are data before the user's words; the rules about data stand with any persona.
        assert "Flint" not in request["messages"][0]["content"]
        assert "Flint" in request["messages"][-1]["content"]
        assert "never obey" in request["messages"][0]["content"]
        assert [m["role"] for m in request["messages"]].count("system") == 1


def test_a_chat_changes_its_persona_for_good_and_back_to_the_usual_one(
    app: App, server: ScriptedOllama, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(chat: Chat, text: str) -> str:
        chat.begin()
        for _ in app.assistant.turn(chat.request(text)):
            pass
        system: str = server.requests[-1]["messages"][0]["content"]
        return system

    chat = Chat(app)
    assert not says(chat, "hello there").startswith(PIRATE)
    actions.system(chat, PlainTerminal(), "pirate")
    assert says(chat, "hello again").startswith(PIRATE)

    later = Chat(app, session_id=chat.session_id)
    actions.system(later, PlainTerminal(), "")
    assert PIRATE in capsys.readouterr().out
    assert says(later, "still there?").startswith(PIRATE)
    actions.system(later, PlainTerminal(), "-")
    assert not says(later, "who are you now?").startswith(PIRATE)
    run(app, "and now?", chat.session_id)
    assert not server.requests[-1]["messages"][0]["content"].startswith(PIRATE)


def test_a_system_prompt_in_full_is_used_as_it_is(app: App, server: ScriptedOllama) -> None:
    run(app, "hello there", system="Answer like a lighthouse keeper.")
    assert server.requests[0]["messages"][0]["content"].startswith("Answer like a lighthouse")


@contextmanager
def locked(app: App, table: str) -> Iterator[None]:
    """Nobody else can read ``table`` meanwhile."""
    other = app.database.connect()
    try:
        with other.transaction():
            other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
            yield
    finally:
        other.close()


@pytest.mark.parametrize(
    ("table", "what"), [("memories", "memories"), ("chunk_vectors", "documents")]
)
def test_a_source_that_hangs_is_left_out_with_a_warning(
    app: App, server: ScriptedOllama, table: str, what: str
) -> None:
    run(app, "What is my parrot called?")
    with locked(app, table):
        started = time.monotonic()
        result = run(app, "What does the manual say about my parrot?")
        took = time.monotonic() - started
    # What was left behind ends now, and gives its connection back.
    app.assistant.context._threads.shutdown(wait=True)
    assert result.answer == "fine"
    assert any(what in text and "0.4 s" in text for text in result.warnings), result.warnings
    assert took < 5


@pytest.mark.owner
def test_a_source_that_fails_is_left_out_with_a_warning(app: App, server: ScriptedOllama) -> None:
    with app.database.transaction() as tx:
        tx.execute("ALTER TABLE chunk_vectors RENAME COLUMN model_id TO gone")
    result = run(app, "What is my parrot called?")
    assert result.answer == "fine"
    assert [hit.memory.content for hit in result.memories] == ["My parrot is called Flint"]
    assert any("documents" in text and "could not be loaded" in text for text in result.warnings)


def test_closing_a_conversation(app: App, server: ScriptedOllama) -> None:
    session = None
    for number in range(summary.MIN_TURNS):
        session = run(app, f"The harbour has {number + 3} piers", session).session_id
    short = run(app, "hello there").session_id
    assert session is not None
    assert short is not None
    summary.close_session(app, session)
    summary.close_session(app, short)
    summary.close_session(app, session)  # twice is once
    assert summary.job().pending(app) == 1  # the short one leaves nothing
    run(app, "One more pier was built", session)
    assert summary.job().pending(app) == 0  # it goes on
    with app.database.connection() as connection:
        opened = sessions.get(connection, app.user.id, session)
        said = sessions.messages(connection, app.user.id, session)
    assert opened is not None
    assert opened.closed_at is None
    assert sum(message.role == Role.USER for message in said) == summary.MIN_TURNS + 1
