"""Styled text and how it folds into lines of a terminal.

A line that is drawn is a list of spans; widths are columns as ``wcwidth`` counts them. Styles
are SGR parameters ("1" is bold); nothing here knows whether colours are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

TAB = 4
"""Columns between two tab stops in an answer."""

IN_ASCII = str.maketrans({"·": "-", "–": "-", "→": ">", "…": "...", "›": ">"})
"""Our own marks, for a terminal that shows nothing but ASCII."""

MIN_TEXT = 4
"""Columns of text that an indentation must leave."""

_PIECES = re.compile(r" +|[^ ]+")
_COMBINED = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style; ``style`` is a list of SGR parameters, ``""`` for none."""

    text: str
    style: str = ""


Line = list[Span]


def width_of(text: str) -> int:
    """Columns that ``text`` takes; it holds no controls."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def line_width(line: Iterable[Span]) -> int:
    """Columns that a line takes."""
    return sum(width_of(span.text) for span in line)


def plain(line: Iterable[Span]) -> str:
    """The text of a line without its styles."""
    return "".join(span.text for span in line)


def paint(line: Iterable[Span], colour: bool) -> str:
    """A line as it is written: with SGR sequences where ``colour`` says so."""
    if not colour:
        return plain(line)
    out, style = "", ""
    for span in line:
        if span.style != style:
            out += ("\x1b[0m" if style else "") + (f"\x1b[{span.style}m" if span.style else "")
            style = span.style
        out += span.text
    return out + ("\x1b[0m" if style else "")


def fitting(lead: Line, width: int) -> Line:
    """``lead`` where it leaves room for text, else nothing."""
    return lead if line_width(lead) <= width - MIN_TEXT else []


def fold_spans(
    spans: Sequence[Span], width: int, *, first: Line | None = None, rest: Line | None = None
) -> list[Line]:
    """Folds spans into lines of at most ``width`` columns, at blanks where it can.

    Args:
        spans: the text, without line ends.
        width: columns of the terminal.
        first: what stands before the first line (a bullet).
        rest: what stands before the others (the indentation that belongs to it).
    """
    first, rest = first or [], rest or []
    lines: list[Line] = []
    line, used = list(first), line_width(first)
    empty = True
    pending: Line = []
    for word in _words(spans):
        if word[0].text.startswith(" "):
            pending = word
            continue
        columns, blank = line_width(word), line_width(pending)
        if used + blank + columns <= width:
            line += pending + word
            used += blank + columns
            pending, empty = [], False
            continue
        if not empty:
            lines.append(line)
            line, used, empty = list(rest), line_width(rest), True
        elif not lines and used + blank <= width - MIN_TEXT:
            # Blanks at the very beginning are an indentation and stay where there is room.
            line += pending
            used += blank
        pending = []
        for piece in _cut(word, width, used, line_width(rest)):
            if not empty:
                lines.append(line)
                line, used = list(rest), line_width(rest)
            line += piece
            used += line_width(piece)
            empty = False
    lines.append(line)
    return lines


def _words(spans: Sequence[Span]) -> Iterator[Line]:
    """Runs of blanks and runs of other characters; a run may have several styles."""
    current: Line = []
    blank = False
    for span in spans:
        for match in _PIECES.finditer(span.text):
            text = match.group()
            is_blank = text[0] == " "
            if current and is_blank != blank:
                yield current
                current = []
            current.append(Span(text, span.style))
            blank = is_blank
    if current:
        yield current


def _cut(word: Line, width: int, used: int, indent: int) -> Iterator[Line]:
    """Cuts a word that is wider than a line; every character is in exactly one piece.

    Args:
        used: columns taken in the first line.
        indent: columns taken in the others.
    """
    piece: Line = []
    for span in word:
        if used + width_of(span.text) <= width:
            piece.append(span)
            used += width_of(span.text)
            continue
        text = ""
        for cluster in clusters(span.text):
            columns = width_of(cluster)
            if used + columns > width and (text or piece):
                if text:
                    piece.append(Span(text, span.style))
                yield piece
                piece, text, used = [], "", indent
            text += cluster
            used += columns
        if text:
            piece.append(Span(text, span.style))
    if piece:
        yield piece


def clusters(text: str) -> Iterator[str]:
    """Characters with the marks, joiners and modifiers that belong to them."""
    start = 0
    for index in range(1, len(text)):
        if _COMBINED.match(text[index]) or text[index - 1] == "\u200d":
            continue
        yield text[start:index]
        start = index
    if text:
        yield text[start:]


def expand_tabs(text: str, column: int = 0) -> str:
    """Tabs as blanks up to the next stop, counted in columns."""
    if "\t" not in text:
        return text
    parts = text.split("\t")
    out = parts[0]
    for part in parts[1:]:
        out += " " * (TAB - (column + width_of(out)) % TAB) + part
    return out
