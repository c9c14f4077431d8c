"""The long-term memory on a real Postgres: once, with its dates, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import sql

from jarvis.errors import ModelUnavailable, NotFound, UsageError
from jarvis.llm.protocols import ChatChunk, ChatMessage, ModelInfo
from jarvis.retrieval import Query, index, terms
from jarvis.services import changes, forget, memory, review
from jarvis.services.app import App
from jarvis.services.compare import Relation
from jarvis.services.extraction.job import MAX_ATTEMPTS, ExtractionJob
from jarvis.store import extraction as unread
from jarvis.store import memories, sessions
from jarvis.types import FORGOTTEN, Filters, Memory, MemoryState, Role, WorkState
from tests.conftest import Cli


def never() -> bool:
    return False


class ScriptedModel:
    """A chat model that replies what it is told: what a real one cannot be made to do."""

    name = "scripted"
    num_ctx = 4096

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    def info(self) -> ModelInfo:
        return ModelInfo("scripted", "", 4096)

    def preload(self) -> None:
        return

    def stream(self, messages: Sequence[ChatMessage], **_: Any) -> Iterator[ChatChunk]:
        self.asked.append(messages[-1].content)
        yield ChatChunk(text=self.replies.pop(0))


@pytest.fixture
def rules(app: App, monkeypatch: pytest.MonkeyPatch) -> App:
    """Services without models: nothing here may need one."""

    def unavailable(*_: object) -> None:
        raise ModelUnavailable("no model in this test")

    monkeypatch.setattr(app, "embedder", unavailable)
    monkeypatch.setattr(app, "chat_model", unavailable)
    monkeypatch.setattr(app, "wake_worker", lambda: None)
    return app


def say(app: App, *texts: str, session_id: int | None = None) -> list[int]:
    """Stores messages of the user's as a turn does; returns their ids."""
    ids = []
    with app.database.transaction() as tx:
        session_id = session_id or sessions.create(tx, app.user.id).id
        for text in texts:
            stored = sessions.add_message(
                tx, app.user.id, session_id, Role.USER, text, extract=WorkState.PENDING
            )
            index.write_terms(tx, "turn", app.user.id, stored.id, text)
            ids.append(stored.id)
    return ids


def read_all(app: App) -> None:
    job = ExtractionJob()
    while job.run_once(app, never):
        pass


def contents(app: App, *states: MemoryState) -> list[str]:
    return [row.content for row in memory.select(app, states=states or (MemoryState.ACTIVE,))]


def add(app: App, *texts: str) -> list[memory.Added]:
    return memory.add(app, [memory.describe(text) for text in texts]).added


# --- adding --------------------------------------------------------------------------------


def test_added_without_a_model_it_is_stored_and_found_by_words(rules: App) -> None:
    report = memory.add(rules, [memory.describe("User keeps newts in a tank")])
    assert report.added[0].created
    assert "the vector follows" in report.notes[0]
    query = Query("which tank has newts", None, datetime.now(UTC))
    hits = rules.retriever.memories(rules.user.id, query, None, limit=5).hits
    assert [hit.memory.content for hit in hits] == ["User keeps newts in a tank"]


def test_the_same_words_are_one_memory(rules: App) -> None:
    first, second = add(rules, "User keeps  Newts", "user keeps newts")
    assert first.created
    assert not second.created
    assert second.memory.id == first.memory.id


def test_eight_threads_add_the_same_sentence(rules: App) -> None:
    def one(_: int) -> bool:
        return add(rules, "User umpires cricket")[0].memory.content == "User umpires cricket"

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(one, range(8)))
    assert contents(rules) == ["User umpires cricket"]


def test_eight_processes_add_the_same_sentence(cli: Cli) -> None:
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda _: cli("memory", "add", "I umpire cricket"), range(8)))
    assert [result.returncode for result in done] == [0] * 8, [r.stderr for r in done]
    listed = cli("memory", "list", "--json").stdout.splitlines()
    assert [json.loads(line)["content"] for line in listed] == ["I umpire cricket"]


@pytest.mark.parametrize("text", ["", "  \n", "\x00"])
def test_a_memory_needs_words(text: str) -> None:
    with pytest.raises(UsageError, match="needs words"):
        memory.describe(text)


def test_dirty_text_is_cleaned_and_stored(rules: App) -> None:
    (entry,) = add(rules, "User\x00 likes \ud800[/] [bold] :smile:\u202e list[str]")
    assert entry.memory.content.startswith("User likes")
    assert "[/] [bold] :smile:" in entry.memory.content
    assert "\u202e" not in entry.memory.content


# --- editing and review ------------------------------------------------------------------


def test_edit_changes_words_and_search(rules: App) -> None:
    (entry,) = add(rules, "User keeps newts")
    changed, _ = memory.edit(rules, entry.memory.id, content="User keeps geckos", importance=0.9)
    assert (changed.content, round(changed.importance, 2)) == ("User keeps geckos", 0.9)

    def found(word: str) -> int:
        query = Query(word, None, datetime.now(UTC))
        return len(rules.retriever.memories(rules.user.id, query, None, limit=5))

    assert (found("geckos"), found("newts")) == (1, 0)


def test_edit_into_another_memory_is_refused(rules: App) -> None:
    first, _ = add(rules, "User keeps newts", "User keeps geckos")
    with pytest.raises(UsageError, match="another memory"):
        memory.edit(rules, first.memory.id, content="user keeps geckos")


def test_edit_of_an_unknown_id(rules: App) -> None:
    with pytest.raises(NotFound):
        memory.edit(rules, 99, content="x y")


def test_a_secret_waits_and_its_message_is_barred(rules: App) -> None:
    (message_id,) = say(rules, "My wifi password is hunter2!x")
    read_all(rules)
    (held,) = review.held(rules)
    assert held.held_reason == "looks like a secret: password"
    assert contents(rules) == []
    with rules.database.connection() as connection:
        stored = sessions.message(connection, rules.user.id, message_id)
    assert stored is not None
    assert stored.barred
    query = Query("wifi password", None, datetime.now(UTC))
    assert len(rules.retriever.turns(rules.user.id, query, None, limit=5, gate=False)) == 0

    review.accept(rules, held.id)
    assert contents(rules) == ["User's wifi password is hunter2!x"]
    assert review.held(rules) == []


def test_what_is_dropped_is_not_held_again(rules: App) -> None:
    say(rules, "My wifi password is hunter2!x")
    read_all(rules)
    (held,) = review.held(rules)
    review.drop(rules, held.id)
    say(rules, "My wifi password is hunter2!x")
    read_all(rules)
    assert review.held(rules) == []
    with pytest.raises(NotFound):
        review.accept(rules, held.id)


# --- extraction by the worker ------------------------------------------------------------


def test_what_the_rules_settle_is_stored_with_its_source(rules: App) -> None:
    (message_id,) = say(rules, "My name is Ines and I live in Vigo.")
    read_all(rules)
    rows = memory.select(rules)
    assert [row.content for row in rows] == ["User's name is Ines", "User lives in Vigo"]
    assert {row.message_id for row in rows} == {message_id}
    origin = memory.show(rules, rows[0].id)
    assert origin.message is not None
    assert origin.message.content == "My name is Ines and I live in Vigo."


def test_without_the_model_the_rest_waits_and_keeps_its_attempts(rules: App) -> None:
    say(rules, "I live in Vigo. me and the sea !")
    with pytest.raises(ModelUnavailable):
        ExtractionJob().run_once(rules, never)
    assert contents(rules) == ["User lives in Vigo"]
    with rules.database.connection() as connection:
        (waiting,) = unread.next_unread(connection, rules.user.id, 5)
    assert (waiting.attempts, waiting.ruled) == (0, True)


def test_the_model_adds_to_what_the_rules_found(
    rules: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel('{"facts":["User has one sister","User is a pilot"]}')
    monkeypatch.setattr(rules, "chat_model", lambda: model)
    say(rules, "I live in Vigo. one sister for me .")
    read_all(rules)
    assert contents(rules) == ["User lives in Vigo", "User has one sister"]
    assert memory.stats(rules)["messages"] == {"done": 1}


def test_a_reply_that_cannot_be_read_is_retried_then_shown(
    rules: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(*[""] * MAX_ATTEMPTS, '{"facts":["User has one sister"]}')
    monkeypatch.setattr(rules, "chat_model", lambda: model)
    say(rules, "one sister for me .")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert ExtractionJob().run_once(rules, never) == 1
        state = "pending" if attempt < MAX_ATTEMPTS else "failed"
        assert memory.stats(rules)["messages"] == {state: 1}
        assert ExtractionJob().pending(rules) == 0  # it waits for its next attempt
        with rules.database.transaction() as tx:
            tx.execute("UPDATE messages SET extract_after = now()")
    assert memory.stats(rules)["failures"][0]["error"] == "the model's reply was empty"
    assert memory.extract_now(rules) == 1
    read_all(rules)
    assert contents(rules) == ["User has one sister"]


def test_a_turn_that_starts_interrupts_and_nothing_is_lost(
    rules: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel('{"facts":[]}', '{"facts":["User has one sister"]}')
    monkeypatch.setattr(rules, "chat_model", lambda: model)
    say(rules, "one sister for me .")
    asked = iter([False, True])
    assert ExtractionJob().run_once(rules, lambda: next(asked)) == 0
    assert memory.stats(rules)["messages"] == {"pending": 1}
    read_all(rules)
    assert contents(rules) == ["User has one sister"]


def test_what_the_assistant_says_is_never_read(rules: App) -> None:
    (first,) = say(rules, "nice to meet you all !")
    with rules.database.transaction() as tx:
        session_id = sessions.recent(tx, rules.user.id)[0].id
        sessions.add_message(
            tx, rules.user.id, session_id, Role.ASSISTANT, "I grew up in Oslo", reply_to=first
        )
    say(rules, "nice", session_id=session_id)
    read_all_but_model(rules)
    assert contents(rules) == []


def read_all_but_model(app: App) -> None:
    try:
        read_all(app)
    except ModelUnavailable:
        return


# --- duplicates and changes (real vectors) ------------------------------------------------


def settled(app: App, *texts: str) -> list[Memory]:
    add(app, *texts)
    return memory.select(app, states=())


def test_one_fact_in_other_words_is_one_memory(app: App) -> None:
    settled(app, "the wiki listens on 7070", "wiki at localhost:7070")
    settled(app, "User likes rowing", "User loves rowing")
    assert contents(app) == ["the wiki listens on 7070", "User likes rowing"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("User prefers tea over coffee", "User prefers coffee over tea"),
        ("User has 12 files", "User has 9 files"),
        ("User's sister lives in Lima", "User's brother lives in Lima"),
        ("用户住在上海", "用户喜欢喝茶"),
        ("User plays chess", "User plays the piano"),
    ],
)
def test_what_only_looks_alike_stays(app: App, first: str, second: str) -> None:
    settled(app, first, second)
    assert contents(app) == [first, second]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User lives in Bergen", "User moved to Oslo"),
        ("User loves mushroom soup", "User can not stand mushroom soup"),
        ("User works at Acme", "User no longer works at Acme"),
        ("User is married to Ana", "User is divorced"),
    ],
)
def test_what_is_over_is_closed_with_its_date(app: App, old: str, new: str) -> None:
    before, after = settled(app, old, new)
    assert (before.state, after.state) == (MemoryState.SUPERSEDED, MemoryState.ACTIVE)
    assert before.superseded_by == after.id
    assert before.valid_to_at is not None
    assert [row.content for row in memory.history(app, after.id)] == [old, new]
    assert memory.history(app, before.id) == memory.history(app, after.id)


def test_now_and_then_find_the_right_one(app: App) -> None:
    may, june = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 15, tzinfo=UTC)
    for text, since in (("User lives in Bergen", may), ("User lives in Oslo", june)):
        memory.add(app, [memory.describe(text, at=since)])
    assert contents(app) == ["User lives in Oslo"]
    then = datetime(2026, 5, 20, tzinfo=UTC)
    assert [row.content for row in memory.select(app, at=then)] == ["User lives in Bergen"]
    query = Query("where do I live", app.embedder().embed_query("where do I live"), then)
    model = app.embedding_model()
    found = app.retriever.memories(
        app.user.id, query, model, filters=Filters(at=then), limit=5, gate=False
    )
    assert [hit.memory.content for hit in found] == ["User lives in Bergen"]


def test_what_was_over_when_it_was_told_is_found_for_then(app: App) -> None:
    """Neither has a known beginning: one was told today, the other began in June."""
    memory.add(app, [memory.describe("User lives in Bergen")])
    june = datetime(2026, 6, 1, tzinfo=UTC)
    memory.add(app, [memory.describe("User moved to Oslo", at=june)])
    may = datetime(2026, 5, 1, tzinfo=UTC)
    assert [row.content for row in memory.select(app, at=may)] == ["User lives in Bergen"]
    found = app.retriever.memories(
        app.user.id,
        Query("where do I live", None, may),
        None,
        filters=Filters(at=may),
        limit=5,
        gate=False,
    )
    assert [hit.memory.content for hit in found] == ["User lives in Bergen"]


def test_an_older_fact_told_later_ends_nothing(app: App) -> None:
    memory.add(app, [memory.describe("User lives in Oslo", at=datetime(2026, 6, 1, tzinfo=UTC))])
    memory.add(app, [memory.describe("User moved to Bergen", at=datetime(2020, 1, 1, tzinfo=UTC))])
    assert "User lives in Oslo" in contents(app)


def test_an_older_fact_with_its_date_is_over_since_the_later_one(app: App) -> None:
    oslo = memory.describe("I moved to Oslo", at=datetime(2026, 3, 1, tzinfo=UTC))
    memory.add(app, [oslo])
    bergen = memory.describe("I live in Bergen", at=datetime(2022, 1, 1, tzinfo=UTC))
    (added,) = memory.add(app, [bergen]).added
    assert added.created
    assert added.memory.state is MemoryState.SUPERSEDED
    assert added.memory.valid_to_at == datetime(2026, 3, 1, tzinfo=UTC)
    assert contents(app) == ["I moved to Oslo"]
    then = memory.select(app, states=(MemoryState.ACTIVE,), at=datetime(2024, 1, 1, tzinfo=UTC))
    assert [row.content for row in then] == ["I live in Bergen"]


def test_what_the_rules_leave_open_by_hand_waits_for_the_model(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[bool] = []
    monkeypatch.setattr(app, "wake_worker", lambda: woken.append(True))
    add(app, "User shears alpacas")
    assert changes.ChangesJob().pending(app) == 0
    add(app, "User shears woolly alpacas")
    assert changes.ChangesJob().pending(app) == 1
    assert woken
    model = ScriptedModel('{"answer": 2}')
    monkeypatch.setattr(app, "chat_model", lambda: model)
    assert changes.ChangesJob().run_once(app, never) == 1
    assert model.asked
    assert changes.ChangesJob().pending(app) == 0
    assert len(contents(app)) == 2


def test_what_is_liked_is_not_merged_into_what_is_owned(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "wake_worker", lambda: None)
    add(app, "User owns a red kettle")
    add(app, "User likes a red kettle")
    assert changes.ChangesJob().pending(app) == 1
    model = ScriptedModel('{"answer": 1}', '{"answer": 1}')
    monkeypatch.setattr(app, "chat_model", lambda: model)
    assert changes.ChangesJob().run_once(app, never) == 1
    assert model.asked
    assert len(contents(app)) == 2


def test_a_comparison_gives_way_to_a_turn(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "wake_worker", lambda: None)
    add(app, "User shears alpacas")
    add(app, "User shears woolly alpacas")
    looks = iter([False])
    model = ScriptedModel('{"answer": 3}')
    monkeypatch.setattr(app, "chat_model", lambda: model)
    assert changes.ChangesJob().run_once(app, lambda: next(looks, True)) == 0
    assert changes.ChangesJob().pending(app) == 1
    assert len(contents(app)) == 2


def test_the_model_is_heard_only_when_it_agrees_with_itself(app: App) -> None:
    same, other = '{"answer": 1}', '{"answer": 2}'
    judge = changes.by_model(ScriptedModel(same, other, same, same))
    assert judge("a b", "a b c") is Relation.OPEN
    assert judge("a b", "a b c") is Relation.SAME
    assert changes.by_model(ScriptedModel("no"))("a", "b") is Relation.OPEN


def test_decisions_are_taken_all_or_none(rules: App) -> None:
    say(rules, "my password is Tr0ub4dor&3", "my wifi password is Ma-9-Ma-9")
    read_all(rules)
    first, second = (row.id for row in review.held(rules))
    for wrong in ([str(first), str(second + 9)], [f"{second + 5}-{second + 9}"]):
        with pytest.raises(NotFound):
            review.decide(rules, accepted=[str(second)], dropped=wrong)
    with pytest.raises(UsageError, match="twice"):
        review.decide(rules, accepted=[str(first)], dropped=[f"{first}-{second}"])
    with pytest.raises(UsageError, match="no words"):
        review.decide(rules, accepted=[str(second)], edited=first)
    assert [row.id for row in review.held(rules)] == [first, second]
    done = review.decide(rules, dropped=[f"{first}-{second}"])
    assert (done.kept, done.dropped) == ((), (first, second))
    assert review.held(rules) == []


# --- forgetting -----------------------------------------------------------------------------


def test_a_forgotten_fact_is_nowhere(rules: App) -> None:
    said = "By the way, my name is Ines and I live in Vigo."
    (message_id,) = say(rules, said)
    (echo,) = say(rules, "As I said, I live in Vigo, in the old town.")
    read_all_but_model(rules)
    with rules.database.transaction() as tx:
        tx.execute("UPDATE sessions SET title = 'Living in Vigo', title_by = 'worker'")
        tx.execute("UPDATE sessions SET summary = 'The user lives in Vigo.'")
    rows = [row for row in memory.select(rules) if row.content == "User lives in Vigo"]
    done = forget.forget(rules, rows)
    assert done.verified, done.found
    assert set(done.barred) == {message_id, echo}
    assert done.rows["memories"] >= 1
    assert done.rows["memory_terms"] >= 1
    assert done.rows["message_terms"] == 2
    assert done.rows["tombstones"] == 1
    with rules.database.connection() as connection:
        stored = sessions.message(connection, rules.user.id, message_id)
        titles = connection.execute("SELECT title, summary FROM sessions").fetchall()
    assert stored is not None
    assert stored.content == said
    assert titles == [("", ""), ("", "")]
    assert forget.verify(rules, ["User lives in Vigo"]) == []


def walked(app: App, needle: str) -> dict[str, int]:
    """In how many rows of which table ``needle`` stands, in whatever column."""
    with app.database.maintenance() as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT table_name::text FROM information_schema.tables"
                " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
            )
        ]
        found = {}
        for name in names:
            row = connection.execute(
                sql.SQL("SELECT count(*) FROM {} AS r WHERE strpos(lower(r::text), %s) > 0").format(
                    sql.Identifier(name)
                ),
                (needle.casefold(),),
            ).fetchone()
            if row and row[0]:
                found[name] = row[0]
    return found


def test_a_walk_through_every_table_finds_it_only_in_the_messages(rules: App) -> None:
    session_id = 0
    with rules.database.transaction() as tx:
        session_id = sessions.create(tx, rules.user.id).id
    for text in ("The weather was fine.", "I live in Vigo.", "It rained later on."):
        say(rules, text, session_id=session_id)
    read_all_but_model(rules)
    (token,) = terms.count(rules.user.id, "Vigo", "english")
    assert {"messages", "memories"} <= set(walked(rules, "vigo"))
    assert {"message_terms", "memory_terms"} <= set(walked(rules, str(token)))
    forget.forget(rules, [row for row in memory.select(rules) if "Vigo" in row.content])
    assert walked(rules, "vigo") == {"messages": 1}
    assert walked(rules, str(token)) == {}


def test_what_is_forgotten_is_not_read_again_unless_added(rules: App) -> None:
    say(rules, "I live in Vigo.")
    read_all(rules)
    forget.forget(rules, memory.select(rules))
    say(rules, "I live in Vigo.")
    read_all(rules)
    assert contents(rules) == []
    add(rules, "User lives in Vigo")
    assert contents(rules) == ["User lives in Vigo"]


def test_with_source_the_words_go_too(rules: App) -> None:
    (message_id,) = say(rules, "I live in Vigo.")
    read_all(rules)
    done = forget.forget(rules, memory.select(rules), with_source=True)
    assert done.redacted == (message_id,)
    with rules.database.connection() as connection:
        stored = sessions.message(connection, rules.user.id, message_id)
    assert stored is not None
    assert stored.content == FORGOTTEN


def test_an_unknown_id_forgets_nothing(rules: App) -> None:
    add(rules, "User keeps newts")
    with pytest.raises(NotFound, match="no memory 99"):
        forget.resolve(rules, ["1", "99"])
    assert contents(rules) == ["User keeps newts"]


def test_ids_are_never_reused(rules: App) -> None:
    first, second = add(rules, "User keeps newts", "User keeps geckos")
    forget.forget(rules, [first.memory, second.memory])
    (third,) = add(rules, "User keeps toads")
    assert third.memory.id == second.memory.id + 1


def test_forgetting_the_newer_leaves_the_older_closed(app: App) -> None:
    before, after = settled(app, "User lives in Bergen", "User moved to Oslo")
    assert forget.forget(app, [after]).verified
    (left,) = memory.select(app, states=())
    assert (left.id, left.state, left.superseded_by) == (before.id, MemoryState.SUPERSEDED, None)


def test_ids_and_ranges() -> None:
    assert memory.parse_ids(["3", "5-7,9"]) == ([3, 9], [range(5, 8)])
    for bad in ("x", "7-5", "-1", "1.5", "9" * 30):
        with pytest.raises(UsageError):
            memory.parse_ids([bad])


def test_users_do_not_see_each_other(rules: App) -> None:
    (entry,) = add(rules, "User keeps newts")
    with rules.database.transaction() as tx:
        from jarvis.store import users

        other = users.ensure(tx, "somebody else")
        assert memories.get(tx, other.id, entry.memory.id) is None
        assert memories.delete(tx, other.id, [entry.memory.id]) == []
    assert contents(rules) == ["User keeps newts"]


def test_twenty_searches_side_by_side_count_their_use_without_a_deadlock(rules: App) -> None:
    add(rules, *(f"User keeps newt number {n}" for n in range(8)))

    def one(number: int) -> int:
        query = Query("which newts", None, datetime.now(UTC))
        found = rules.retriever.memories(
            rules.user.id, query, None, limit=8, gate=False, collapse=False
        )
        ids = [hit.memory.id for hit in found]
        with rules.database.transaction() as tx:
            memories.touch(tx, rules.user.id, ids if number % 2 else reversed(ids))
        return len(ids)

    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(one, range(20))) == [8] * 20
    assert [row.access_count for row in memory.select(rules)] == [20] * 8
