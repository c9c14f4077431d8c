"""A message that is longer than the model's window, read in parts because the user says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jarvis.security.text import clean
from jarvis.services.budget import Budget, split_message
from jarvis.services.prompt import system_message

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.turns import TurnRequest

FRAME = 200
"""Tokens for the date line and the marks around the parts."""


def parts(app: App, request: TurnRequest) -> list[TurnRequest]:
    """The turns that together say what ``request`` says: itself, where the model can read it.

    A part fills half of what fits at most, so that what came of the parts before it has room.
    Joined, the parts are the message.

    Raises:
        ModelUnavailable: the model cannot be asked how much it reads.
    """
    model = app.chat_model(request.model)
    estimator = app.estimator(model.name)
    budget = Budget.for_model(model.info(), model.num_ctx, estimator.read_speed, app.config.context)
    text = clean(request.text)
    persona = estimator.count(system_message(request.system))
    limit = budget.message_limit(persona, FRAME)
    if estimator.count(text) <= limit:
        return [request]
    pieces = split_message(text, max(limit // 2, 64), estimator)
    total = len(pieces)
    return [
        replace(request, text=f"[part {number} of {total} of one message]\n{piece}", typed="")
        for number, piece in enumerate(pieces, 1)
    ]
