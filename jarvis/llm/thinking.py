"""Keeps a model's thoughts apart from its answer, while it streams.

Some servers send thoughts in a field of their own, others leave them inline between
``<think>`` and ``</think>``. Tags arrive split over chunks, several blocks may follow each
other, and a block may never be closed: then everything after the tag was thought and there is
no answer. A tag counts only where a line begins outside a fenced code block, so that an answer
*about* such tags stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jarvis.llm.protocols import ChatChunk

_NAMES = ("think", "thinking", "thought")
_OPENERS = tuple(f"<{name}>" for name in _NAMES)
_FENCES = ("```", "~~~")
_LONE_CLOSE = re.compile(rf"^[ \t]*</(?:{'|'.join(_NAMES)})>[ \t]*(?:\n|$)", re.I | re.M)


class ThinkingSplitter:
    """Splits one streamed answer. Feed it pieces in order, then call ``finish`` once.

    Args:
        inside: the stream begins within a thought, because the template opened the block.
    """

    def __init__(self, inside: bool = False) -> None:
        self._buffer = ""
        self._close = f"</{_NAMES[0]}>" if inside else ""
        self._line_start = True
        self._fence = ""
        self._answered = False
        self._thought = inside

    @property
    def unclosed(self) -> bool:
        """Whether the stream is inside a thought now; after the end: it was never closed."""
        return bool(self._close)

    def feed(self, text: str) -> tuple[str, str]:
        """Takes the next piece; returns what is certain by now as (thinking, answer)."""
        self._buffer += text
        thinking: list[str] = []
        answer: list[str] = []
        while self._buffer and self._step(thinking, answer):
            pass
        return "".join(thinking), "".join(answer)

    def finish(self) -> tuple[str, str]:
        """The rest, once the stream has ended: a held tag that never became one is text."""
        rest, self._buffer = self._buffer, ""
        if self._close:
            return rest, ""
        if self._thought and not self._answered and not rest.strip():
            return "", ""
        return "", rest

    def _step(self, thinking: list[str], answer: list[str]) -> bool:
        """Moves one decision forward. False: more text is needed."""
        if self._close:
            return self._inside(thinking)
        if not self._answered or self._line_start:
            return self._at_line_start(answer)
        line, newline, rest = self._buffer.partition("\n")
        answer.append(line + newline)
        self._buffer = rest
        self._line_start = bool(newline)
        return bool(newline)

    def _inside(self, thinking: list[str]) -> bool:
        at = self._buffer.lower().find(self._close)
        if at < 0:
            held = _partial_end(self._buffer.lower(), self._close)
            if len(self._buffer) > held:
                cut = len(self._buffer) - held
                thinking.append(self._buffer[:cut])
                self._buffer = self._buffer[cut:]
            return False
        thinking.append(self._buffer[:at])
        self._buffer = self._buffer[at + len(self._close) :]
        self._close = ""
        self._line_start = True
        return True

    def _at_line_start(self, answer: list[str]) -> bool:
        # Before the first word of the answer, empty lines may still precede a tag.
        text = self._buffer.lstrip(" \t" if self._answered else None)
        if not text:
            return False
        lowered = text.lower()
        if not self._fence:
            opener = next((tag for tag in _OPENERS if lowered.startswith(tag)), None)
            if opener:
                self._buffer = text[len(opener) :]
                self._close = f"</{opener[1:]}"
                self._thought = True
                return True
        if any(tag.startswith(lowered) and tag != lowered for tag in (*_OPENERS, *_FENCES)):
            return False
        marker = next((fence for fence in _FENCES if text.startswith(fence)), "")
        if marker and self._fence in {"", marker}:
            self._fence = "" if self._fence else marker
        if self._thought and not self._answered:
            self._buffer = text
        self._answered = True
        self._line_start = False
        return True


def _partial_end(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` could be the beginning of ``tag``."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0


def separate(chunks: Iterable[ChatChunk], inside: bool = False) -> Iterator[ChatChunk]:
    """Rewrites a stream so that inline thoughts stand in ``thinking``, never in ``text``.

    Closing the result closes ``chunks``, so that the server stops.
    """
    splitter = ThinkingSplitter(inside)
    try:
        for chunk in chunks:
            thinking, text = splitter.feed(chunk.text) if chunk.text else ("", "")
            if chunk.usage is not None:
                last_thinking, last_text = splitter.finish()
                thinking, text = thinking + last_thinking, text + last_text
            thinking = chunk.thinking + thinking
            if thinking or text or chunk.tool_calls or chunk.usage is not None:
                yield replace(chunk, text=text, thinking=thinking)
        thinking, text = splitter.finish()
        if thinking or text:
            yield ChatChunk(text=text, thinking=thinking)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def split_text(text: str) -> tuple[str, str]:
    """Splits a whole answer into (thinking, answer).

    Also sees what a stream cannot: a closing tag on a line of its own without an opening one
    (the template opened the block) ends a thought that began with the text.
    """
    splitter = ThinkingSplitter()
    first_thinking, first_answer = splitter.feed(text)
    rest_thinking, rest_answer = splitter.finish()
    thinking, answer = first_thinking + rest_thinking, first_answer + rest_answer
    if not thinking:
        lone = _LONE_CLOSE.search(answer)
        if lone and not any(fence in answer[: lone.start()] for fence in _FENCES):
            return answer[: lone.start()].strip(), answer[lone.end() :].lstrip()
    return thinking, answer
