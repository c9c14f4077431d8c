"""What is told and what is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.services.telling import LONGEST, tells


@pytest.mark.parametrize(
    "text",
    [
        "I collect fountain pens.",
        "My name is Dana and I live in Kathmandu.",
        "Hi, I\u2019m Tomas. My knee hurts.",
        "we moved to Oslo",
        "I've been playing the oboe since I was nine.",
    ],
)
def test_what_is_told(text: str) -> None:
    assert tells(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What do I collect?",
        "I live in Oslo. Tell me about its history.",
        "I'm allergic to peanuts, what can I cook",
        "I'd like a long story about a fox",
        "I need a synonym for happy",
        "I live in Oslo. Where is it",
        "The capital of Peru is Lima.",
        "I " + "very " * (LONGEST // 5) + "like tea",
    ],
)
def test_what_asks_or_tells_of_something_else(text: str) -> None:
    assert not tells(text)


@given(st.text())
def test_a_question_mark_asks(text: str) -> None:
    assert not tells(text + "?")
