"""Short texts made of longer ones by the model, in the background, checked against the source.

A small model sometimes invents. Whatever it writes here is kept only as far as its numbers,
names and words occur in what it was given; where nothing is left, or there is no good answer,
the text is put together from the source's own sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jarvis.llm.protocols import ChatMessage, ChatModel
from jarvis.llm.thinking import split_text
from jarvis.security.text import clean
from jarvis.services.tokens import TokenEstimator

_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[^\W\d_] )[A-Z][^\W\d_]+|(?<=, )[A-Z][^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_GROUNDED = 0.5
"""Share of a line's longer words whose stems must occur in the source."""
_STEM = 5


class Stopped(Exception):
    """The work was put off because a turn began or the worker ends."""


def ask(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    *,
    limit: int,
    stop: Callable[[], bool],
    schema: Mapping[str, Any] | None = None,
) -> str:
    """One background answer of at most ``limit`` tokens, at temperature 0, without thoughts.

    Raises:
        Stopped: ``stop`` became true; the server was told to stop.
        ModelUnavailable: the model cannot be used.
    """
    pieces: list[str] = []
    stream = model.stream(
        messages,
        schema=schema,
        options={"temperature": 0, "num_predict": limit},
        think=False,
        background=True,
    )
    try:
        for chunk in stream:
            if stop():
                raise Stopped
            pieces.append(chunk.text)
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    return clean(split_text("".join(pieces))[1]).strip()


def grounded_lines(text: str, source: str) -> list[str]:
    """The lines of ``text`` (without list marks) whose numbers, names and words ``source`` has."""
    have = _stems(source)
    numbers = set(_NUMBER.findall(source))
    lowered = source.casefold()
    kept: list[str] = []
    for raw in text.splitlines():
        line = _BULLET.sub("", raw).strip()
        words = _WORD.findall(line)
        if not words or line.endswith(":"):
            continue
        known = sum(word.casefold()[:_STEM] in have for word in words)
        if (
            set(_NUMBER.findall(line)) <= numbers
            and all(name.casefold() in lowered for name in _NAME.findall(line))
            and known >= _GROUNDED * len(words)
            and line not in kept
        ):
            kept.append(line)
    return kept


def bullets(lines: Sequence[str], limit: int, estimator: TokenEstimator) -> str:
    """As many lines as ``limit`` tokens hold, one a bullet; the first may be cut."""
    text = ""
    for line in lines:
        longer = f"{text}\n- {line}" if text else f"- {line}"
        if estimator.count(longer) > limit:
            return text or estimator.cut(longer, limit)
        text = longer
    return text


def sentences(text: str) -> list[str]:
    """The sentences of a text, without questions of one word and the like."""
    parts = [" ".join(part.split()) for part in _SENTENCE.split(text)]
    return [part for part in parts if len(part.split()) >= 3 or len(part) >= 12]


def _stems(text: str) -> set[str]:
    return {word.casefold()[:_STEM] for word in _WORD.findall(text)}
