"""A message that is too long for the window, in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.config import Config
from jarvis.errors import ModelUnavailable
from jarvis.llm.protocols import ModelInfo
from jarvis.services import long_message
from jarvis.services.app import App
from jarvis.services.budget import MessageTooLong
from jarvis.services.tokens import TokenEstimator
from jarvis.services.turns import TurnRequest


@dataclass
class Model:
    name: str = "m"
    num_ctx: int = 2048

    def info(self) -> ModelInfo:
        return ModelInfo(self.name, "", self.num_ctx)


@dataclass
class Services:
    """What ``parts`` and ``refuse`` ask of the services."""

    config: Config
    down: bool = False

    def chat_model(self, name: str) -> Model:
        if self.down:
            raise ModelUnavailable("down")
        return Model()

    def estimator(self, name: str) -> TokenEstimator:
        return TokenEstimator(name)


APP = cast(App, Services(Config()))


class Counting(TokenEstimator):
    """Adds up the characters that were counted."""

    characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return super().count(text)


def test_what_no_prompt_can_hold_is_refused_with_numbers() -> None:
    with pytest.raises(MessageTooLong) as caught:
        long_message.refuse(APP, TurnRequest(""), "word " * 200_000)
    assert 150_000 < caught.value.tokens < 250_000
    assert caught.value.limit < 2048
    attached = TurnRequest("", files=(("a.txt", "word " * 4000),))
    with pytest.raises(MessageTooLong):
        long_message.refuse(APP, attached, "sum it up")
    long_message.refuse(APP, TurnRequest(""), "word " * 400)


def test_without_a_model_only_what_is_huge_is_not_kept() -> None:
    down = cast(App, Services(Config(), down=True))
    long_message.refuse(down, TurnRequest(""), "word " * 5000)
    with pytest.raises(ModelUnavailable):
        long_message.refuse(down, TurnRequest(""), "word " * 50_000)


def test_splitting_counts_every_character_a_few_times_only() -> None:
    estimator = Counting("m")
    text = "Some words of a long report.\n" * 20_000
    assert "".join(long_message.split(text, 500, estimator)) == text
    assert estimator.characters < 10 * len(text)


def test_a_message_that_fits_stays_whole() -> None:
    request = TurnRequest("What is the time?")
    assert long_message.parts(APP, request) == [request]


def test_the_parts_are_numbered_fit_and_lose_nothing() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Some words follow. " * 30 for number in range(40))
    turns = long_message.parts(APP, TurnRequest(text, session_id=7, tools=False))
    heads, bodies = zip(*(turn.text.split("\n", 1) for turn in turns), strict=True)
    assert heads[0] == f"[part 1 of {len(turns)} of one message]"
    assert "".join(bodies) == text
    assert all(TokenEstimator("m").count(body) <= 1100 for body in bodies)
    assert all(turn.session_id == 7 and not turn.tools for turn in turns)
    # A part is not taken for what the user typed as a request of its own.
    assert all(turn.typed == "" for turn in turns)


@given(st.text(max_size=600), st.integers(1, 80))
def test_split_parts_join_to_the_message_and_fit(text: str, limit: int) -> None:
    estimator = TokenEstimator("m")
    parts = long_message.split(text, limit, estimator)
    assert "".join(parts) == text
    assert all(part for part in parts)
    assert all(estimator.count(part) <= limit or len(part) == 1 for part in parts)


def test_split_prefers_paragraphs() -> None:
    paragraph = "One sentence of some words. " * 8
    text = f"{paragraph}\n\n{paragraph}\n\n{paragraph}"
    estimator = TokenEstimator("m")
    parts = long_message.split(text, estimator.count(paragraph) + 20, estimator)
    assert [part.strip() for part in parts] == [paragraph.strip()] * 3
