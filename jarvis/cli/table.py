"""A list as aligned columns on a terminal.

Terminals disagree about the width of some characters (emoji joined by U+200D, for example), so
each cell is padded by what ``wcwidth`` says and the next one starts with an absolute cursor
move: columns align whatever the terminal thinks. Long text folds inside its column; nothing is
cut. Where that would leave too little room, a record's cells stand below each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jarvis.security.terminal import sanitise

if TYPE_CHECKING:
    from jarvis.cli.output import Column, Output

GAP = 2
"""Blank columns between two cells."""
MIN_FLEXIBLE = 16
"""Columns that the folded cell needs; with fewer, records are stacked."""


def cell_width(text: str) -> int:
    """Columns that ``text`` (one line, no controls) takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def fold(text: str, width: int) -> list[str]:
    """Breaks ``text`` into lines of at most ``width`` columns, at spaces where it can.

    A character wider than ``width`` stands alone. Marks stay with their letter.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, used = "", 0
        for word in _words(paragraph):
            columns = cell_width(word)
            if used + cell_width(word.rstrip(" ")) <= width:
                line, used = line + word, used + columns
                continue
            if line:
                lines.append(line.rstrip(" "))
                line, used = "", 0
            for piece in _split(word, width):
                if line:
                    lines.append(line)
                line, used = piece, cell_width(piece)
        lines.append(line.rstrip(" "))
    return lines


def _words(text: str) -> Iterator[str]:
    """Words, each with the blanks behind it."""
    start, seen_blank = 0, False
    for index, character in enumerate(text):
        if seen_blank and character != " ":
            yield text[start:index]
            start, seen_blank = index, False
        seen_blank = seen_blank or character == " "
    if start < len(text):
        yield text[start:]


def _split(word: str, width: int) -> Iterator[str]:
    if cell_width(word.rstrip(" ")) <= width:
        yield word
        return
    from wcwidth import wcwidth

    piece, used, joined = "", 0, False
    for character in word:
        columns = 0 if joined else max(0, wcwidth(character))
        if piece and used + columns > width:
            yield piece
            piece, used = "", 0
        piece, used, joined = piece + character, used + columns, character == "\u200d"
    if piece:
        yield piece


def render(records: Sequence[Any], columns: Sequence[Column], out: Output) -> Iterator[str]:
    """Yields the lines of the list, headings first."""
    rows = [
        [
            out.writable(sanitise(column.text(record, terminal=True))).expandtabs(4).strip("\n")
            for column in columns
        ]
        for record in records
    ]
    flexible = next(
        (index for index, column in enumerate(columns) if column.flexible), len(columns) - 1
    )
    widths = [
        max(
            cell_width(line)
            for text in (column.title, *(row[index] for row in rows))
            for line in text.split("\n")
        )
        for index, column in enumerate(columns)
    ]
    total = out.width or 80
    room = total - sum(widths) + widths[flexible] - GAP * (len(columns) - 1)
    if room < min(MIN_FLEXIBLE, widths[flexible]):
        yield from _stacked(rows, columns, flexible, total, out)
        return
    widths[flexible] = min(widths[flexible], room)
    titles = [[column.title] for column in columns]
    yield from (out.style(line, "dim") for line in _aligned(titles, columns, widths, out))
    for row in rows:
        cells = [fold(cell, width) for cell, width in zip(row, widths, strict=True)]
        yield from _aligned(cells, columns, widths, out)


def _aligned(
    cells: Sequence[Sequence[str]], columns: Sequence[Column], widths: Sequence[int], out: Output
) -> Iterator[str]:
    for index in range(max(len(lines) for lines in cells)):
        line, start, exact = "", 0, True
        for lines, column, width in zip(cells, columns, widths, strict=True):
            text = lines[index] if index < len(lines) else ""
            if text and not exact and out.cursor:
                line += f"\x1b[{start + 1}G"
                exact = True
            padding = " " * max(0, width - cell_width(text))
            line += padding + text if column.right else text + padding
            line += " " * GAP
            start += width + GAP
            exact = exact and text.isascii()
        yield line.rstrip(" ")


def _stacked(
    rows: Sequence[Sequence[str]],
    columns: Sequence[Column],
    flexible: int,
    total: int,
    out: Output,
) -> Iterator[str]:
    for row in rows:
        head = "  ".join(
            cell.replace("\n", " ") for index, cell in enumerate(row) if index != flexible and cell
        )
        yield from (out.style(line, "dim") for line in fold(head, total))
        yield from ("  " + line for line in fold(row[flexible], max(1, total - 2)))
