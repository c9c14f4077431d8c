"""The prompt of a turn: its order, its roles, its budget."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.config import ContextSettings
from jarvis.llm.protocols import ModelInfo
from jarvis.services import prompt
from jarvis.services.budget import Budget, MessageTooLong
from jarvis.services.context import asks_about_user, search_text
from jarvis.services.prompt import INTERRUPTED, Material, PastTurn, Prompt
from jarvis.services.tokens import TokenEstimator
from jarvis.types import (
    FORGOTTEN,
    ChunkHit,
    Memory,
    MemorySource,
    MemoryState,
    MemoryType,
    Message,
    MessageStatus,
    Role,
    TurnHit,
)

NOW = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


def memory(content: str, number: int = 1) -> Memory:
    return Memory(
        id=number,
        type=MemoryType.FACT,
        category="",
        subject="user",
        content=content,
        importance=0.5,
        confidence=0.9,
        state=MemoryState.ACTIVE,
        source=MemorySource.CHAT,
        session_id=None,
        message_id=None,
        superseded_by=None,
        valid_from_at=None,
        valid_to_at=None,
        created_at=NOW,
        updated_at=NOW,
        last_accessed_at=None,
        access_count=0,
    )


def message(number: int, role: Role, content: str, status: str = "complete") -> Message:
    return Message(number, 1, role, content, MessageStatus(status), NOW)


def assemble(
    words: str = "What now?",
    *,
    num_ctx: int = 4096,
    persona: str = "",
    telling: bool = False,
    **material: object,
) -> Prompt:
    info = ModelInfo("m", "d", num_ctx)
    return prompt.assemble(
        persona=persona,
        words=words,
        material=Material(**material),  # type: ignore[arg-type]
        budget=Budget.for_model(info, num_ctx, 1000.0, ContextSettings(seconds=100)),
        estimator=TokenEstimator("m"),
        now=NOW,
        user="ada",
        model="m",
        telling=telling,
    )


def test_what_changes_stands_last() -> None:
    chunk = ChunkHit(1, 1, "a.pdf", 3, "iii", 0, 9, "the passage", 0.5, 1.0, 1)
    turn = TurnHit(1, 2, Role.USER, "an old question", NOW, 0.5, 1.0, 1, "an old answer")
    made = assemble(
        "And the date?",
        memories=[memory("lives in Oslo")],
        turns=[turn],
        chunks=[chunk],
        history=[PastTurn("one", "two")],
    )
    roles = [part.role for part in made.messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert made.messages[1].content == "one"
    last = made.messages[-1].content
    order = ["4 May 2026", "lives in Oslo", "an old question", "the passage", "And the date?"]
    places = [last.index(text) for text in order]
    assert places == sorted(places)
    assert "a.pdf" in last
    assert "2026" not in made.messages[0].content


def test_the_system_message_and_the_history_do_not_change_between_turns() -> None:
    first = assemble("one?", memories=[memory("a")], history=[PastTurn("x", "y")])
    second = assemble(
        "two?", memories=[memory("b", 2)], history=[PastTurn("x", "y"), PastTurn("one?", "1")]
    )
    assert second.messages[:3] == first.messages[:3]


def test_an_unanswered_question_gets_an_answer() -> None:
    turns = prompt.past_turns(
        [
            message(1, Role.USER, "a"),
            message(2, Role.USER, "b"),
            message(3, Role.ASSISTANT, "half", "interrupted"),
        ]
    )
    assert turns == [
        PastTurn("a", INTERRUPTED, 1),
        PastTurn("b", f"half {INTERRUPTED}", 2),
    ]


def test_what_was_forgotten_leaves_no_mark_in_the_history() -> None:
    turns = prompt.past_turns(
        [
            message(1, Role.USER, FORGOTTEN),
            message(2, Role.ASSISTANT, FORGOTTEN),
            message(3, Role.USER, "I have two cats."),
            message(4, Role.ASSISTANT, FORGOTTEN),
            message(5, Role.USER, FORGOTTEN),
            message(6, Role.ASSISTANT, "an answer that tells nothing"),
        ]
    )
    assert turns == [PastTurn("I have two cats.", prompt.NOTED, 3)]


ROLES = st.lists(st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]), max_size=30)


@given(ROLES)
def test_roles_alternate_whatever_was_stored(stored: list[Role]) -> None:
    history = prompt.past_turns([message(i, role, f"m{i}") for i, role in enumerate(stored)])
    made = assemble("q", history=history)
    roles = [part.role for part in made.messages]
    assert roles[0] == "system"
    assert roles[-1] == "user"
    assert all(left != right for left, right in itertools.pairwise(roles))
    assert all(part.content for part in made.messages)


def test_a_long_history_loses_its_oldest_turns_and_nothing_else() -> None:
    history = [PastTurn(f"question {i} " + "word " * 100, "answer " * 100) for i in range(50)]
    made = assemble(
        "the question", history=history, summary="what fell out", memories=[memory("f")]
    )
    text = [part.content for part in made.messages]
    assert made.dropped_turns > 0
    assert "what fell out" in text[1]
    assert text[1].endswith(history[made.dropped_turns].question)
    assert "question 49" in text[-3]
    assert "- f" in text[-1]
    assert text[-1].endswith("the question")
    assert made.estimate < 4096


def test_a_message_over_the_window_is_refused_with_numbers() -> None:
    with pytest.raises(MessageTooLong) as caught:
        assemble("word " * 20_000)
    assert any(character.isdigit() for character in caught.value.message)


def test_a_persona_never_replaces_the_rules() -> None:
    text = prompt.system_message("You are a pirate.")
    assert text.startswith("You are a pirate.")
    assert prompt.RULES in text
    assert prompt.PERSONA not in text


def test_what_is_told_is_answered_shortly_and_a_persona_decides_for_itself() -> None:
    told = assemble("I collect fountain pens.", telling=True)
    assert prompt.SHORTLY in told.messages[-1].content
    assert told.messages[0] == assemble("What do I collect?").messages[0]
    assert prompt.SHORTLY not in assemble("What do I collect?").messages[-1].content
    pirate = assemble("I sail.", telling=True, persona="You are a pirate.")
    assert prompt.SHORTLY not in pirate.messages[-1].content


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        ("And in May?", True),
        ("Why?", True),
        ("Where does she work?", True),
        ("How is my coding project coming along?", False),
        ("hi", False),
        ("Tell me about the history of the Portuguese language", False),
    ],
)
def test_short_questions_are_searched_with_the_one_before(words: str, joined: bool) -> None:
    assert (search_text(words, "Who is Ana?") != words) is joined
    assert search_text(words, "") == words


@pytest.mark.parametrize(
    ("words", "about"),
    [
        ("What do you know about me?", True),
        ("Tell me something about myself?", True),
        ("Who am I?", True),
        ("hi", False),
        ("What is the capital of France?", False),
    ],
)
def test_open_questions_about_the_user(words: str, about: bool) -> None:
    assert asks_about_user(words) is about
