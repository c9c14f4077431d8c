"""A message that is longer than the model's window: refused with numbers, or read in parts.

Nothing is ever cut. Which of the two happens is the user's choice.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jarvis.errors import ModelUnavailable
from jarvis.security.text import clean
from jarvis.services.budget import Budget, MessageTooLong
from jarvis.services.prompt import system_message
from jarvis.services.tokens import TokenEstimator

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.turns import TurnRequest

FRAME = 200
"""Tokens for the date line and the marks around the parts."""
SURELY_SHORT = 1000
"""Characters that fit into every window in which a talk is possible."""
KEPT_UNREAD = 100_000
"""Characters of the longest message that is stored although no model can be asked."""

_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?…]['\")\]]*\s+|[。！？]"),
    re.compile(r"\s+"),
)
_STEP = 512
"""Characters that are counted at a time."""


def refuse(app: App, request: TurnRequest, words: str) -> None:
    """Refuses a message that no prompt can hold, before it is stored or searched for.

    Raises:
        MessageTooLong: it, with what is attached, is longer than the window.
        ModelUnavailable: it is huge, and nobody can be asked how long the window is.
    """
    texts = [words, *(text for _, text in request.files)]
    if sum(map(len, texts)) <= SURELY_SHORT:
        return
    try:
        budget, estimator = _window(app, request)
    except ModelUnavailable:
        if sum(map(len, texts)) > KEPT_UNREAD:
            raise
        return  # the turn says so, and keeps the message
    limit = _limit(budget, estimator, request)
    tokens = sum(map(estimator.count, texts))
    if tokens > limit:
        raise MessageTooLong(tokens, limit)


def parts(app: App, request: TurnRequest) -> list[TurnRequest]:
    """The turns that together say what ``request`` says: itself, where the model can read it.

    A part fills half of what fits at most, so that what came of the parts before it has room.
    Joined, the parts are the message.

    Raises:
        ModelUnavailable: the model cannot be asked how much it reads.
    """
    budget, estimator = _window(app, request)
    text = clean(request.text)
    limit = _limit(budget, estimator, request)
    if estimator.count(text) <= limit:
        return [request]
    pieces = split(text, max(limit // 2, 64), estimator)
    total = len(pieces)
    return [
        replace(request, text=f"[part {number} of {total} of one message]\n{piece}", typed="")
        for number, piece in enumerate(pieces, 1)
    ]


def split(text: str, limit: int, estimator: TokenEstimator) -> list[str]:
    """Splits a text into parts of at most ``limit`` tokens each.

    At paragraphs, else lines, sentences, words, else anywhere. Joined, the parts are ``text``.

    Raises:
        ValueError: ``limit`` is not positive.
    """
    if limit <= 0:
        raise ValueError("a part needs at least one token")
    found: list[str] = []
    start = 0
    while start < len(text):
        end = _reach(text, start, limit, estimator)
        if end < len(text):
            half = start + (end - start) // 2
            for pattern in _BREAKS:
                ends = [match.end() for match in pattern.finditer(text, start, end)]
                if ends and ends[-1] >= half:
                    end = ends[-1]
                    break
        found.append(text[start:end])
        start = end
    return found


def _reach(text: str, start: int, limit: int, estimator: TokenEstimator) -> int:
    """The end of the longest part from ``start`` on within ``limit`` tokens, a character at least.

    Counted step by step: what a message of a million characters has in front of it is not
    counted again for each of its parts.
    """
    at, left = start, limit
    while at < len(text):
        tokens = estimator.count(text[at : at + _STEP])
        if tokens > left:
            break
        at, left = min(at + _STEP, len(text)), left - tokens
    low, high = at, min(at + _STEP, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if estimator.count(text[at:middle]) <= left:
            low = middle
        else:
            high = middle - 1
    return max(low, start + 1)


def _window(app: App, request: TurnRequest) -> tuple[Budget, TokenEstimator]:
    model = app.chat_model(request.model)
    estimator = app.estimator(model.name)
    budget = Budget.for_model(model.info(), model.num_ctx, estimator.read_speed, app.config.context)
    return budget, estimator


def _limit(budget: Budget, estimator: TokenEstimator, request: TurnRequest) -> int:
    system = system_message(request.system)
    return budget.message_limit(estimator.count(system), FRAME)
