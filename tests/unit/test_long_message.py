"""A message that is too long for the window, in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from jarvis.config import Config
from jarvis.llm.protocols import ModelInfo
from jarvis.services import long_message
from jarvis.services.app import App
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
    """What ``parts`` asks of the services."""

    config: Config

    def chat_model(self, name: str) -> Model:
        return Model()

    def estimator(self, name: str) -> TokenEstimator:
        return TokenEstimator(name)


APP = cast(App, Services(Config()))


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
