"""Conversations on a real database: found, named, exported, taken back, deleted."""

from __future__ import annotations

import json

import pytest

from jarvis.config import Config, DatabaseSettings
from jarvis.errors import NotFound, UsageError
from jarvis.paths import Paths
from jarvis.repl.chat import Chat
from jarvis.services import completions
from jarvis.services import sessions as service
from jarvis.services.app import App
from jarvis.store import sessions as store
from jarvis.store.database import Database
from jarvis.types import MessageStatus, Role


@pytest.fixture
def app(database: Database, paths: Paths) -> App:
    made = App(Config(user="tester", database=database.settings), paths)
    made.__dict__["database"] = database
    return made


def talk(app: App, *turns: tuple[str, str], title: str = "") -> int:
    session = app.sessions.start(title=title)
    with app.database.transaction() as tx:
        for question, answer in turns:
            store.add_message(tx, app.user.id, session.id, Role.USER, question)
            stopped = answer.endswith("…")
            status = MessageStatus.INTERRUPTED if stopped else MessageStatus.COMPLETE
            store.add_message(
                tx, app.user.id, session.id, Role.ASSISTANT, answer, model="m", status=status
            )
    return session.id


def test_the_latest_comes_first_with_its_turns(app: App) -> None:
    first = talk(app, ("a", "b"))
    second = talk(app, ("c", "d"), ("e", "f"), title="Trip to Oslo")
    known = app.sessions.recent()
    assert [(s.id, s.turns) for s in known] == [(second, 2), (first, 1)]
    latest = app.sessions.latest()
    assert latest is not None
    assert latest.id == second


def test_finding_by_id_title_and_part_of_a_title(app: App) -> None:
    oslo = talk(app, ("a", "b"), title="Trip to Oslo")
    talk(app, ("a", "b"), title="Budget 2026")
    talk(app, ("a", "b"), title="Budget 2027")
    assert app.sessions.find(f"#{oslo}").id == oslo
    assert app.sessions.find("trip to oslo").id == oslo
    assert app.sessions.find("oslo").id == oslo
    with pytest.raises(NotFound, match="2 sessions are called"):
        app.sessions.find("budget")
    with pytest.raises(NotFound):
        app.sessions.find("nowhere")
    with pytest.raises(NotFound):
        app.sessions.find("999")


def test_renaming_keeps_the_users_title(app: App) -> None:
    session = talk(app, ("a", "b"))
    assert app.sessions.rename(session, "  my\ntitle ").title == "my title"
    with app.database.transaction() as tx:
        assert not store.rename(tx, app.user.id, session, "the worker's", "worker")
    assert app.sessions.get(session).title == "my title"
    with pytest.raises(UsageError):
        app.sessions.rename(session, " ")
    with pytest.raises(NotFound):
        app.sessions.rename(999, "x")


def test_export(app: App) -> None:
    session = talk(app, ("why?", "because"), ("and?", "so far…"), title="Reasons")
    text = app.sessions.export(session)
    assert text.startswith("# Reasons\n")
    assert text.index("why?") < text.index("because") < text.index("and?")
    assert "*(interrupted)*" in text
    found = json.loads(app.sessions.export(session, "json"))
    assert [m["content"] for m in found["messages"]] == ["why?", "because", "and?", "so far…"]
    assert found["messages"][3]["status"] == "interrupted"
    acting = "a\x1b[2Jb\x9b2J\u202ec"
    text = app.sessions.export(talk(app, (acting, "ok")), "json")
    assert json.loads(text)["messages"][0]["content"] == acting
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_taking_back_the_last_turn(app: App) -> None:
    session = talk(app, ("a", "b"), ("c", "d"))
    assert app.sessions.take_back(session) == "c"
    assert [m.content for m in app.sessions.show(session).messages] == ["a", "b"]
    assert app.sessions.take_back(session) == "a"
    assert app.sessions.take_back(session) is None


def test_deleting_is_all_or_none_and_purges_the_completions(app: App) -> None:
    first, second = talk(app, ("a", "b")), talk(app, ("c", "d"))
    completions.refresh(app)
    assert {value for value, _ in completions.values(app.paths, "session")} == {
        str(first),
        str(second),
    }
    with pytest.raises(NotFound):
        app.sessions.delete([first, 999])
    assert app.sessions.get(first).id == first
    app.sessions.delete([first])
    with pytest.raises(NotFound):
        app.sessions.get(first)
    assert not app.paths.completions.exists()
    third = talk(app, ("e", "f"))
    assert third not in {first, second}


def test_two_chats_in_one_session_are_told_so(app: App) -> None:
    session = talk(app, ("a", "b"))
    with service.opened(app, session) as elsewhere:
        assert not elsewhere
        with service.opened(app, session) as again:
            assert again
    with service.opened(app, session) as later:
        assert not later


def test_what_another_chat_wrote_is_seen(app: App) -> None:
    session = talk(app, ("a", "b"))
    last = app.sessions.show(session).messages[-1].id
    assert app.sessions.messages_since(session, last) == []
    with app.database.transaction() as tx:
        store.add_message(tx, app.user.id, session, Role.USER, "from elsewhere")
    assert [m.content for m in app.sessions.messages_since(session, last)] == ["from elsewhere"]


def test_leaving_a_chat_ends_its_session_unless_another_has_it_open(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(App, "wake_worker", lambda _: woken.append("worker"))
    chat = Chat(app)
    chat.enter(talk(app, ("a", "b")))
    session = chat.session_id
    assert session is not None
    with service.opened(app, session):
        chat.finish()
        assert app.sessions.get(session).closed_at is None
    chat.enter(session)
    chat.finish()
    assert app.sessions.get(session).closed_at is not None
    assert woken == ["worker"]
    chat.enter(session)
    chat.begin()
    with app.database.transaction() as tx:
        store.add_message(tx, app.user.id, session, Role.USER, "one thing more")
    assert app.sessions.get(session).closed_at is None


def test_leaving_starts_no_database(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, session, up = Chat(app), talk(app, ("a", "b")), app.database
    chat.enter(session)
    down = Database(DatabaseSettings(host="127.0.0.1", port=1), app.paths)
    started: list[str] = []
    monkeypatch.setattr(down, "_prepare", lambda: started.append("server"))
    app.__dict__["database"] = down
    chat.finish()
    assert started == []
    app.__dict__["database"] = up
    assert app.sessions.get(session).closed_at is None  # it is over by itself once it lies idle
