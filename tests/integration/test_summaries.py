"""Summaries, memories of closed conversations, and titles, made by the worker's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from jarvis.config import Config, DatabaseSettings
from jarvis.llm.chat import OllamaChatModel
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatUsage, ModelInfo
from jarvis.paths import Paths
from jarvis.services import summary, titles
from jarvis.services.app import App
from jarvis.services.prompt import PastTurn
from jarvis.services.tokens import TokenEstimator
from jarvis.store import memory_lists, sessions, summaries
from jarvis.types import MemoryState, MemoryType, Role


@dataclass
class Scripted:
    """Answers every background request with the same text."""

    reply: str
    asked: list[Sequence[ChatMessage]] = field(default_factory=list)
    name: str = "scripted"
    num_ctx: int = 4096

    def info(self) -> ModelInfo:
        return ModelInfo(self.name, "", self.num_ctx)

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        think: bool | None = None,
        background: bool = False,
    ) -> Iterator[ChatChunk]:
        assert background
        assert think is False
        self.asked.append(messages)
        yield ChatChunk(text=self.reply)
        yield ChatChunk(usage=ChatUsage())


class ScriptedApp(App):
    """Services with a scripted model; only the database is real."""

    model: Scripted

    def chat_model(self, name: str = "") -> OllamaChatModel:
        return cast(OllamaChatModel, self.model)

    def wake_worker(self) -> None:
        return


@pytest.fixture
def app(settings: DatabaseSettings, paths: Paths) -> Iterator[ScriptedApp]:
    made = ScriptedApp(Config(user="tester", database=settings), paths)
    made.model = Scripted("")
    yield made
    made.close()


FILLER = "We talked about the weather and the harbour and how the ferry was late again. "


def talk(app: App, questions: Sequence[str], *, answer: str = FILLER * 4) -> tuple[int, list[int]]:
    """A stored conversation; returns its id and the ids of the user's messages."""
    ids = []
    with app.database.transaction() as tx:
        session = sessions.create(tx, app.user.id)
        for question in questions:
            asked = sessions.add_message(tx, app.user.id, session.id, Role.USER, question)
            ids.append(asked.id)
            sessions.add_message(
                tx, app.user.id, session.id, Role.ASSISTANT, answer, reply_to=asked.id
            )
    return session.id, ids


def outgrow(app: App, session_id: int, upto: int) -> None:
    """Marks the conversation as a turn does that found it too long."""
    with app.database.transaction() as tx:
        tx.execute(
            "UPDATE messages SET details = jsonb_build_object('summarise_to', %s::bigint)"
            " WHERE user_id = %s AND id = (SELECT max(id) FROM messages"
            "  WHERE user_id = %s AND session_id = %s)",
            (upto, app.user.id, app.user.id, session_id),
        )


def never() -> bool:
    return False


QUESTIONS = [
    "My sister Ingrid plans a trip to Tromsø in March.",
    "We decided to take the night train on 14 March.",
    "The budget is 900 euros for the two of us.",
    "Should we book the cabin or the hotel?",
    "Let us talk about something else now.",
    "What is a good soup for winter?",
]


def test_the_oldest_part_becomes_a_summary_of_at_most_15_percent(app: ScriptedApp) -> None:
    app.model.reply = (
        "- Ingrid plans a trip to Tromsø in March\n- they take the night train on 14 March\n"
        "- the budget is 900 euros\n- open: cabin or hotel"
    )
    session_id, ids = talk(app, QUESTIONS)
    outgrow(app, session_id, ids[4] - 1)
    job = summary.job()
    assert job.pending(app) == 1
    assert job.run_once(app, never) == 1
    assert job.pending(app) == 0
    with app.database.connection() as connection:
        text = session_summary(app, session_id)
        mark = sessions.summary_mark(connection, app.user.id, session_id)
        replaced = sessions.messages(connection, app.user.id, session_id)[:8]
        kept = sessions.messages(connection, app.user.id, session_id, after=mark)
    count = TokenEstimator("scripted").count
    assert "night train" in text
    assert count(text) <= 0.15 * sum(count(message.content) for message in replaced)
    assert mark == ids[4] - 1
    assert [message.content for message in kept if message.role == Role.USER] == QUESTIONS[4:]


def session_summary(app: App, session_id: int) -> str:
    with app.database.connection() as connection:
        found = sessions.get(connection, app.user.id, session_id)
    assert found is not None
    return found.summary


def test_a_second_summary_carries_the_first_on(app: ScriptedApp) -> None:
    session_id, ids = talk(app, QUESTIONS)
    app.model.reply = "- Ingrid plans a trip to Tromsø"
    outgrow(app, session_id, ids[2] - 1)
    summary.job().run_once(app, never)
    outgrow(app, session_id, ids[4] - 1)
    app.model.reply = "- Ingrid plans a trip to Tromsø\n- budget 900 euros"
    assert summary.job().run_once(app, never) == 1
    shown = app.model.asked[-1][-1].content
    assert "Ingrid plans a trip" in shown
    assert "900 euros" in shown
    assert "sister Ingrid" not in shown  # that message is behind the first summary
    assert "900" in session_summary(app, session_id)


@pytest.mark.parametrize(
    "reply",
    [
        "- the user owns 17 yachts in Monaco",
        "",
        "<think>let me see</think>",
        "Here is the summary:",
        "I cannot help with that request.",
    ],
)
def test_what_the_model_invents_is_not_kept(app: ScriptedApp, reply: str) -> None:
    app.model.reply = reply
    session_id, ids = talk(app, QUESTIONS)
    outgrow(app, session_id, ids[3] - 1)
    assert summary.job().run_once(app, never) == 1
    text = session_summary(app, session_id)
    assert "yachts" not in text
    assert "Ingrid" in text  # put together from the user's own sentences


def test_barred_messages_are_in_no_summary(app: ScriptedApp) -> None:
    session_id, ids = talk(app, QUESTIONS)
    with app.database.transaction() as tx:
        tx.execute(
            "UPDATE messages SET barred = true WHERE user_id = %s AND id = %s",
            (app.user.id, ids[0]),
        )
    outgrow(app, session_id, ids[3] - 1)
    summary.job().run_once(app, never)
    assert "Ingrid" not in app.model.asked[0][-1].content
    assert "Ingrid" not in session_summary(app, session_id)


def test_a_turn_that_begins_stops_the_work_and_leaves_it_to_do(app: ScriptedApp) -> None:
    session_id, ids = talk(app, QUESTIONS)
    outgrow(app, session_id, ids[3] - 1)
    assert summary.job().run_once(app, lambda: True) == 0
    assert summary.job().pending(app) == 1
    assert session_summary(app, session_id) == ""


def test_a_closed_conversation_leaves_a_dated_memory(app: ScriptedApp) -> None:
    app.model.reply = "- Ingrid plans a trip to Tromsø in March\n- the budget is 900 euros"
    session_id, _ = talk(app, QUESTIONS)
    job = summary.job()
    assert job.pending(app) == 0
    close(app, session_id)
    assert job.pending(app) == 1
    assert job.run_once(app, never) == 1
    assert job.run_once(app, never) == 0
    made = summary_memories(app)
    assert len(made) == 1
    assert made[0].session_id == session_id
    assert "Tromsø" in made[0].content
    assert made[0].valid_from_at is not None
    assert made[0].valid_to_at is not None


def test_the_memory_of_a_few_short_turns_is_a_whole_sentence(app: ScriptedApp) -> None:
    said = "The user plans a trip to Oslo in May with their sister."
    app.model.reply = said
    session_id, _ = talk(
        app,
        [
            "I plan a trip to Oslo in May with my sister",
            "We decided to go by train because of the luggage",
            "I still have to find a hotel near the station",
        ],
        answer="Good.",
    )
    close(app, session_id)
    assert summary.job().run_once(app, never) == 1
    assert said in summary_memories(app)[0].content


def close(app: App, session_id: int) -> None:
    with app.database.transaction() as tx:
        assert summaries.close(tx, app.user.id, session_id)


def summary_memories(app: App, *states: MemoryState) -> list[Any]:
    with app.database.connection() as connection:
        return memory_lists.select(
            connection,
            app.user.id,
            types=(MemoryType.SUMMARY,),
            states=states or (MemoryState.ACTIVE,),
        )


def test_a_conversation_that_goes_on_gets_a_new_memory_for_the_old(app: ScriptedApp) -> None:
    app.model.reply = "- Ingrid plans a trip to Tromsø in March"
    session_id, _ = talk(app, QUESTIONS)
    close(app, session_id)
    summary.job().run_once(app, never)
    with app.database.transaction() as tx:
        sessions.add_message(tx, app.user.id, session_id, Role.USER, "We chose the hotel.")
    app.model.reply = "- Ingrid plans a trip to Tromsø in March\n- they chose the hotel"
    assert summary.job().pending(app) == 0  # open again
    close(app, session_id)
    assert summary.job().run_once(app, never) == 1
    assert [("hotel" in memory.content) for memory in summary_memories(app)] == [True]
    assert len(summary_memories(app, MemoryState.SUPERSEDED)) == 1


def test_a_short_conversation_leaves_none(app: ScriptedApp) -> None:
    session_id, _ = talk(app, ["hi", "bye"])
    close(app, session_id)
    assert summary.job().pending(app) == 0


def test_where_the_history_outgrows_its_share() -> None:
    turns = [PastTurn(f"q{n}", f"a{n}", message_id=n * 2 + 1) for n in range(10)]
    assert summary.outgrows(turns, [100] * 10, share=2000) == 0
    upto = summary.outgrows(turns, [100] * 10, share=900)
    assert upto > 0
    kept = [turn for turn in turns if turn.message_id > upto]
    assert 0 < len(kept) * 100 <= 900


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"title": "Night train to Tromsø"}', "Night train to Tromsø"),
        ('{"title": "Title: \\"Night train to Tromsø\\"."}', "Night train to Tromsø"),
        ('{"title": "Quantum yachts of Monaco"}', "I want to take the night train to Tromsø"),
        ("not json", "I want to take the night train to Tromsø"),
        ('{"title": ""}', "I want to take the night train to Tromsø"),
    ],
)
def test_titles(app: ScriptedApp, reply: str, expected: str) -> None:
    app.model.reply = reply
    session_id, _ = talk(app, ["hi", "I want to take the night train to Tromsø"])
    job = titles.job()
    assert job.pending(app) == 1
    assert job.run_once(app, never) == 1
    assert job.pending(app) == 0
    with app.database.connection() as connection:
        found = sessions.get(connection, app.user.id, session_id)
    assert found is not None
    assert found.title == expected


def test_a_title_of_the_users_is_left_alone(app: ScriptedApp) -> None:
    session_id, _ = talk(app, ["I want to take the night train"])
    with app.database.transaction() as tx:
        sessions.rename(tx, app.user.id, session_id, "Mine", "user")
    assert titles.job().pending(app) == 0


def test_a_long_question_makes_a_short_title() -> None:
    assert len(titles.own_words(["word " * 100])) <= titles.MAX_CHARACTERS
