"""One turn on a real database, over model servers that misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from jarvis.errors import ModelUnavailable, NotFound, ProviderUnavailable, UsageError
from jarvis.retrieval import Query, index
from jarvis.services import context, indexing, memory
from jarvis.services.app import App
from jarvis.services.budget import MessageTooLong
from jarvis.services.document_files import Selection
from jarvis.services.documents import Documents
from jarvis.services.extraction.job import ExtractionJob
from jarvis.services.prompt import INTERRUPTED
from jarvis.services.turns import Delta, Finished, TurnEvent, TurnRequest, TurnResult, Warning_
from jarvis.store import sessions
from jarvis.types import Message, MessageStatus, Role
from tests.scripted_ollama import CUT, ScriptedOllama, last, piece, vector_of


@pytest.fixture
def server(model_server: ScriptedOllama) -> ScriptedOllama:
    return model_server


@pytest.fixture
def app(scripted_app: Callable[[], App]) -> App:
    return scripted_app()


def run(app: App, text: str, session: int | None = None) -> tuple[TurnResult, list[TurnEvent]]:
    events = list(app.assistant.turn(TurnRequest(text, session_id=session)))
    assert isinstance(events[-1], Finished)
    return events[-1].result, events


def stored(app: App, session: int | None) -> list[Message]:
    assert session is not None
    with app.database.connection() as connection:
        return sessions.messages(connection, app.user.id, session)


def test_question_and_answer_are_stored(app: App) -> None:
    result, events = run(app, "hello\0 there")
    assert result.answer == "fine"
    assert [type(event) for event in events if isinstance(event, Delta)] == [Delta]
    said = stored(app, result.session_id)
    assert [(m.role, m.content, m.status) for m in said] == [
        (Role.USER, "hello there", MessageStatus.COMPLETE),
        (Role.ASSISTANT, "fine", MessageStatus.COMPLETE),
    ]
    assert said[1].tokens["prompt"] == 50


def test_a_message_is_found_by_its_own_words_at_once_and_by_its_neighbours_from_the_worker(
    app: App,
) -> None:
    session = run(app, "the canoe leaks")[0].session_id
    run(app, "so we bought tar", session)
    now = datetime.now().astimezone()

    def found(word: str) -> set[str]:
        hits = app.retriever.turns(
            app.user.id, Query(word, None, now), None, limit=10, gate=False, collapse=False
        ).hits
        return {hit.content for hit in hits}

    def keys() -> list[tuple[str, str]]:
        with app.database.connection() as connection:
            return connection.execute(
                "SELECT terms::text, weights::text FROM message_terms WHERE user_id = %s"
                " ORDER BY message_id",
                (app.user.id,),
            ).fetchall()

    assert found("canoe") == {"the canoe leaks"}
    assert found("tar") == {"so we bought tar"}
    job = indexing.turn_keys_job()
    assert job.pending(app) == 4
    assert job.run_once(app, lambda: False) == 4
    assert found("canoe") == found("tar") == {"the canoe leaks", "so we bought tar"}
    assert (job.pending(app), job.run_once(app, lambda: False)) == (0, 0)

    made = keys()
    with app.database.transaction() as tx:
        everything = sessions.messages(tx, app.user.id, session or 0)
        index.write_many_terms(tx, "turn", app.user.id, {m.id: m.content for m in everything})
    assert keys() == made


def test_a_message_that_is_barred_meanwhile_stays_out_of_its_neighbours_keys(app: App) -> None:
    session = run(app, "the canoe leaks")[0].session_id
    run(app, "so we bought tar", session)
    first = stored(app, session)[0].id
    barring = app.database.connect()
    renewed = threading.Event()

    def renew() -> None:
        indexing.turn_keys_job().run_once(app, lambda: False)
        renewed.set()

    with barring.transaction():
        index.remove(barring, "turn", app.user.id, [first])
        worker_thread = threading.Thread(target=renew)
        worker_thread.start()
        # It may read what is not committed away yet; then it must not write that afterwards.
        assert not renewed.wait(1.0)
    worker_thread.join()
    barring.close()
    hits = app.retriever.turns(
        app.user.id, Query("canoe", None, datetime.now().astimezone()), None, limit=10, gate=False
    ).hits
    assert hits == ()


def test_a_stream_split_anywhere_is_whole(app: App, server: ScriptedOllama) -> None:
    answer = "naïve 日本 👩‍🌾 end"
    data = b"".join(piece(letter) for letter in answer) + last()
    server.chats = [[data[i : i + 7] for i in range(0, len(data), 7)]]
    result, _ = run(app, "hi there you")
    assert result.answer == answer


def test_a_stream_that_is_cut_keeps_what_came(app: App, server: ScriptedOllama) -> None:
    server.chats = [[piece("half of "), piece("it"), CUT], [piece("whole"), last()]]
    with pytest.raises(ProviderUnavailable):
        run(app, "first question")
    with app.database.connection() as connection:
        session = sessions.latest(connection, app.user.id)
    assert session is not None
    said = stored(app, session.id)
    assert said[-1].status == MessageStatus.INTERRUPTED
    assert said[-1].content.startswith("half of")
    result, _ = run(app, "second question", session.id)
    assert result.answer == "whole"
    sent = server.requests[-1]["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert INTERRUPTED in sent[2]["content"]


@pytest.mark.parametrize("before_first_token", [True, False])
def test_closing_stops_the_server(
    app: App, server: ScriptedOllama, before_first_token: bool
) -> None:
    script: list[object] = [30.0, piece("late"), last()]
    server.chats = [script if before_first_token else [piece("one "), *script]]
    events = app.assistant.turn(TurnRequest("a long story please"))
    for event in events:
        if isinstance(event, Delta) or (before_first_token and server.requests):
            break
        if before_first_token and getattr(event, "name", "") == "prompt":
            break
    started = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 5
    until = time.monotonic() + 5
    while server.requests and not server.disconnected and time.monotonic() < until:
        time.sleep(0.02)
    assert server.disconnected == len(server.requests)
    with app.database.connection() as connection:
        session = sessions.latest(connection, app.user.id)
    assert session is not None
    said = stored(app, session.id)
    assert said[0].content == "a long story please"
    if not before_first_token:
        assert said[-1].status == MessageStatus.INTERRUPTED
        assert said[-1].content.strip() == "one"


@pytest.mark.parametrize(
    "bad",
    [
        [0.0] * 8,
        [float("inf")] * 8,
        [1.0] * 3,
        [],
    ],
    ids=["zeros", "infinity", "another length", "nothing"],
)
def test_vectors_that_cannot_be_used_leave_the_words(
    app: App, server: ScriptedOllama, bad: list[float]
) -> None:
    app.embedding_model()
    server.embed = lambda _: bad
    result, events = run(app, "where is the harbour?")
    assert result.answer == "fine"
    warnings = [event.text for event in events if isinstance(event, Warning_)]
    assert any("all-minilm" in text or "words" in text for text in warnings), warnings


def test_a_late_embedder_is_left_behind(
    app: App, server: ScriptedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.embedding_model()
    monkeypatch.setattr(context, "EMBED_TIMEOUT", 0.2)
    server.embed_delay = 3.0
    started = time.monotonic()
    result, events = run(app, "where is the harbour?")
    assert result.answer == "fine"
    assert time.monotonic() - started < 3
    assert any("0.2 s" in event.text for event in events if isinstance(event, Warning_))


def test_a_server_that_cut_the_prompt_is_reported(app: App, server: ScriptedOllama) -> None:
    server.chats = [[piece("fine"), last(prompt=60)], [piece("fine"), last(prompt=40)]]
    run(app, "short")
    _, events = run(app, "a very long message " * 200)
    warnings = [event.text for event in events if isinstance(event, Warning_)]
    assert any("cut the prompt" in text for text in warnings), warnings


def test_thoughts_are_never_stored_as_the_answer(app: App, server: ScriptedOllama) -> None:
    server.chats = [
        [piece("<thi"), piece("nk>secret plan</th"), piece("ink>\nthe answer"), last()],
        [piece("", thinking="more plans"), piece("again"), last()],
        [piece("<think>never closed"), last()],
    ]
    first, _ = run(app, "one thing")
    assert first.answer == "the answer"
    second, _ = run(app, "another thing", first.session_id)
    assert second.answer == "again"
    third, _ = run(app, "a third thing", first.session_id)
    assert third.answer == ""
    assert all("plan" not in m.content for m in stored(app, first.session_id))


def test_num_ctx_is_always_sent_and_always_the_same(app: App, server: ScriptedOllama) -> None:
    first, _ = run(app, "one thing")
    run(app, "another thing", first.session_id)
    windows = {request["options"]["num_ctx"] for request in server.requests}
    assert len(windows) == 1
    assert windows.pop() > 0


def test_private_turns_leave_nothing(app: App) -> None:
    list(app.assistant.turn(TurnRequest("warm up", private=True)))
    before = json.dumps(everything(app))
    list(app.assistant.turn(TurnRequest("my secret harbour", private=True)))
    assert json.dumps(everything(app)) == before


def everything(app: App) -> dict[str, int]:
    """The number of rows in every table."""
    with app.database.connection() as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r'"
                " AND relnamespace = current_schema()::regnamespace ORDER BY 1"
            )
        ]
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()[0]  # type: ignore[index]  # noqa: S608
            for name in names
        }


def test_wrong_requests(app: App) -> None:
    with pytest.raises(UsageError):
        run(app, " \0 ")
    with pytest.raises(NotFound):
        run(app, "hi", 999)


def test_a_message_over_the_window_is_neither_stored_nor_searched_for(
    app: App, server: ScriptedOllama
) -> None:
    embedded: list[str] = []

    def embed(text: str) -> list[float]:
        embedded.append(text)
        return vector_of(text)

    server.embed = embed
    with pytest.raises(MessageTooLong):
        run(app, "harbour " * 300_000)
    assert embedded == []
    with app.database.connection() as connection:
        assert sessions.latest(connection, app.user.id) is None


def test_no_model_still_keeps_the_message(app: App, server: ScriptedOllama) -> None:
    app.user  # noqa: B018 -- made while the server still answers
    server.close()
    with pytest.raises(ModelUnavailable):
        run(app, "remember the harbour")
    with app.database.connection() as connection:
        session = sessions.latest(connection, app.user.id)
    assert session is not None
    assert stored(app, session.id)[0].content == "remember the harbour"


CLAUSE = "Clause 7. Either party may end this agreement by sixty days of written notice."


def with_clause(app: App, tmp_path: Path) -> None:
    """Stores a contract."""
    (tmp_path / "contract.md").write_text(CLAUSE)
    list(Documents(app).ingest(list(Selection().files([tmp_path / "contract.md"]))))


def test_an_answer_from_a_passage_names_it_although_the_model_does_not(
    app: App, server: ScriptedOllama, tmp_path: Path
) -> None:
    with_clause(app, tmp_path)
    said = "Either party may end it by sixty days of written notice."
    server.chats = [[piece(said), last(prompt=220)]]
    result, events = run(app, "What does clause 7 say?")
    cited = f"{said} [contract.md]"
    assert result.answer == cited
    assert "".join(event.text for event in events if isinstance(event, Delta)) == cited
    assert stored(app, result.session_id)[-1].content == cited
    assert not result.warnings
    server.chats = [[piece("Nobody knows that, ask a lawyer about it."), last(prompt=220)]]
    assert (
        run(app, "What does clause 7 say?")[0].answer == "Nobody knows that, ask a lawyer about it."
    )


@pytest.mark.parametrize("redacted", [False, True])
def test_answers_from_a_document_are_forgotten_with_it(
    app: App, server: ScriptedOllama, tmp_path: Path, redacted: bool
) -> None:
    with_clause(app, tmp_path)
    server.chats = [[piece("Sixty days of written notice."), last(prompt=220)]]
    first, _ = run(app, "What does clause 7 say?")
    (tmp_path / "contract.md").write_text(f"{CLAUSE} New.")
    list(Documents(app).ingest(list(Selection().files([tmp_path / "contract.md"]))))
    document = Documents(app).all()[0]
    done = Documents(app).forget([document], with_answers=redacted)
    answer = stored(app, first.session_id)[-1]
    assert done.verified
    assert done.barred == (answer.id,)
    assert answer.barred
    words = "Sixty days of written notice. [contract.md]"
    assert answer.content == ("[forgotten]" if redacted else words)
    query = Query("sixty days of written notice", None, datetime.now().astimezone())
    hits = app.retriever.turns(app.user.id, query, None, limit=10, gate=False).hits
    assert not [hit for hit in hits if "sixty" in f"{hit.content} {hit.reply}".casefold()]
    run(app, "and now?", first.session_id)
    sent = json.dumps(server.requests[-1])
    assert "Sixty" not in sent
    assert "What does clause 7 say?" in sent


def test_thirty_turns_with_a_fact_before_the_model_make_no_memory_of_it(
    app: App, server: ScriptedOllama
) -> None:
    """Not of what was injected, and not of an answer that says it in other words."""
    fact = "I drink black tea with cardamom every morning"
    memory.add(app, [memory.describe(fact)])
    said = {"facts": ["User drinks tea every morning", "User likes cardamom tea"]}
    server.chats = [[piece(json.dumps(said)), last()]]
    session = None
    for number in range(30):
        result, _ = run(app, "my morning drink, with cardamom", session)
        session = result.session_id
        assert [hit.memory.content for hit in result.memories] == [fact], number
    asked = len(server.requests)
    while ExtractionJob().run_once(app, lambda: False):
        pass
    assert len(server.requests) > asked, "no message was read"
    for request in server.requests[asked:]:
        assert "tea" not in request["messages"][-1]["content"]
    assert [one.content for one in memory.select(app, states=())] == [fact]
