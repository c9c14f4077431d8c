"""Markdown inside one line: emphasis, code, links, escapes.

An answer arrives in pieces, so besides the spans this says from which character on the reading
may still change: an opening mark whose closing one has not come. The scope is one source line,
which is what models write; a mark that never closes is shown as it was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jarvis.repl.spans import Span

BOLD, ITALIC, STRIKE, CODE, LINK, DIM = "1", "3", "9", "36", "4", "2"

MAX_OPEN = 400
"""Characters after which an opening mark counts as text, whatever follows."""

_SPECIAL = re.compile(r"[\\`*_~\[!<]")
_ESCAPABLE = frozenset("\\`*_{}[]()<>#+-.!|~\"'&$%,/:;=?@^")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^\s<>]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>")
_AUTOLINK_BEGUN = re.compile(r"<[\w.+:/@?&=%#-]*$")
_LINK_TAIL = re.compile(
    r"""\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+["'(].*?["')])?\s*\)"""
)


@dataclass(frozen=True, slots=True)
class Inline:
    """The spans of a line, and the index in its source from which they may change."""

    spans: list[Span]
    settled: int


def parse(source: str, *, complete: bool, style: str = "", before: str = " ") -> Inline:
    """Reads one source line, or the rest of one.

    Args:
        source: the text without the line's end.
        complete: whether nothing will be added to it; open marks are then text.
        style: the style that everything has.
        before: the character in front of ``source``.
    """
    parser = _Parser(source, complete, before)
    parser.run(0, len(source), style)
    return Inline(_merged(parser.spans), parser.settled)


def _merged(spans: list[Span]) -> list[Span]:
    out: list[Span] = []
    for span in spans:
        if out and out[-1].style == span.style:
            out[-1] = Span(out[-1].text + span.text, span.style)
        elif span.text:
            out.append(span)
    return out


def joined(*styles: str) -> str:
    """Several SGR lists as one."""
    return ";".join(dict.fromkeys(part for style in styles for part in style.split(";") if part))


class _Parser:
    def __init__(self, source: str, complete: bool, before: str) -> None:
        self.source = source
        self.before = before
        self.complete = complete
        self.spans: list[Span] = []
        self.settled = len(source)
        self._nested = 0

    def run(self, start: int, end: int, style: str) -> None:
        position = start
        while position < end:
            match = _SPECIAL.search(self.source, position, end)
            if match is None:
                self._add(self.source[position:end], style)
                return
            self._add(self.source[position : match.start()], style)
            position = self._special(match.start(), end, style)

    def _add(self, text: str, style: str) -> None:
        if text:
            self.spans.append(Span(text, style))

    def _open(self, position: int) -> None:
        """Remembers that what begins at ``position`` may still be completed."""
        if not (self.complete or self._nested or len(self.source) - position > MAX_OPEN):
            self.settled = min(self.settled, position)

    def _special(self, at: int, end: int, style: str) -> int:
        character = self.source[at]
        if character == "\\":
            return self._escape(at, end, style)
        if character == "`":
            return self._code(at, end, style)
        if character in "*_~":
            return self._emphasis(at, end, style)
        if character == "<":
            return self._angle(at, end, style)
        return self._link(at, end, style)

    def _escape(self, at: int, end: int, style: str) -> int:
        following = self.source[at + 1 : min(at + 2, end)]
        if following and following in _ESCAPABLE:
            self._add(following, style)
            return at + 2
        if not following:
            self._open(at)
        self._add("\\", style)
        return at + 1

    def _code(self, at: int, end: int, style: str) -> int:
        ticks = _run_length(self.source, at, end)
        body = at + ticks
        position = body
        limit = min(end, at + MAX_OPEN)
        while (position := self.source.find("`", position, limit)) >= 0:
            length = _run_length(self.source, position, end)
            if length == ticks and (self.complete or position + length < len(self.source)):
                text = self.source[body:position]
                if len(text) > 2 and text[0] == text[-1] == " " and text.strip():
                    text = text[1:-1]
                self._add(text, joined(style, CODE))
                return position + length
            position += length
        self._open(at)
        self._add(self.source[at:body], style)
        return body

    def _emphasis(self, at: int, end: int, style: str) -> int:
        mark = self.source[at]
        run = _run_length(self.source, at, end)
        before = self.source[at - 1] if at else self.before
        after = self.source[at + run : at + run + 1] if at + run < end else ""
        in_word = mark == "_" and before.isalnum()
        if at + run == len(self.source) and not in_word:
            self._open(at)
        if run > 3 or not after or after.isspace() or in_word or (mark == "~" and run != 2):
            self._add(self.source[at : at + run], style)
            return at + run
        close = self._closing(at + run, min(end, at + MAX_OPEN), mark, run)
        if close is None:
            self._open(at)
            self._add(self.source[at : at + run], style)
            return at + run
        kind = STRIKE if mark == "~" else {1: ITALIC, 2: BOLD, 3: f"{BOLD};{ITALIC}"}[run]
        self._inside(at + run, close, joined(style, kind))
        return close + run

    def _inside(self, start: int, end: int, style: str) -> None:
        """Reads what stands between two marks; nothing that follows can change it."""
        self._nested += 1
        self.run(start, end, style)
        self._nested -= 1

    def _closing(self, start: int, end: int, mark: str, run: int) -> int | None:
        """Where the closing mark begins; one at the very end of an open line is not sure yet."""
        position = start
        while position < end:
            character = self.source[position]
            if character == "\\":
                position += 2
            elif character == "`":
                ticks = _run_length(self.source, position, end)
                closing = self.source.find("`" * ticks, position + ticks, end)
                if closing < 0 and not (self.complete or self._nested):
                    return None  # code may still swallow a mark
                position = closing + ticks if closing >= 0 else position + ticks
            elif character == mark:
                length = _run_length(self.source, position, end)
                after = self.source[position + length : position + length + 1]
                closes = not self.source[position - 1].isspace() and not (
                    mark == "_" and after.isalnum()
                )
                sure = self.complete or position + length < len(self.source)
                if closes and length == run and sure and position > start:
                    return position
                if closes and length > run and sure and not after.isalnum():
                    return position + length - run
                position += length
            else:
                position += 1
        return None

    def _angle(self, at: int, end: int, style: str) -> int:
        match = _AUTOLINK.match(self.source, at, end)
        if match:
            self._add(match.group(1), joined(style, LINK))
            return match.end()
        if _AUTOLINK_BEGUN.match(self.source, at, end) and end == len(self.source):
            self._open(at)
        self._add("<", style)
        return at + 1

    def _link(self, at: int, end: int, style: str) -> int:
        image = self.source[at] == "!"
        bracket = at + 1 if image else at
        if image and self.source[bracket : bracket + 1] != "[":
            if bracket == len(self.source):
                self._open(at)
            self._add("!", style)
            return at + 1
        end = min(end, at + MAX_OPEN)
        close = self._bracket(bracket, end)
        if close is None or close + 1 == len(self.source):
            self._open(at)
        if close is not None:
            tail = _LINK_TAIL.match(self.source, close + 1, end)
            if tail:
                self._target(bracket + 1, close, tail.group(1), style)
                return tail.end()
            target = self.source[close + 1 : end]
            if target.startswith("(") and target.count("(") > target.count(")"):
                self._open(at)
        self._add(self.source[at : bracket + 1], style)
        return bracket + 1

    def _bracket(self, at: int, end: int) -> int | None:
        depth = 0
        position = at
        while position < end:
            character = self.source[position]
            if character == "\\":
                position += 1
            elif character == "[":
                depth += 1
            elif character == "]":
                depth -= 1
                if depth == 0:
                    return position
            position += 1
        return None

    def _target(self, start: int, end: int, url: str, style: str) -> None:
        """The words of a link, and its address behind them unless they are the address."""
        self._inside(start, end, joined(style, LINK))
        words = self.source[start:end]
        if url and url not in {words, f"mailto:{words}"}:
            self._add(f" ({url})", joined(style, DIM))


def _run_length(source: str, at: int, end: int) -> int:
    length = 1
    while at + length < end and source[at + length] == source[at]:
        length += 1
    return length
