"""Markdown tables: rows of cells, aligned where they fit, stacked where they do not."""

from __future__ import annotations

import re

from jarvis.repl.inline import BOLD, DIM, parse
from jarvis.repl.spans import Line, Span, fold_spans, line_width, plain

_DELIMITER_CELL = re.compile(r"\s*:?-+:?\s*")
MIN_COLUMN = 8
"""Columns below which a folded cell is no longer readable."""


def cells_of(row: str) -> list[str]:
    """The cells of a row; ``\\|`` and pipes inside code do not part cells."""
    cells, cell, in_code = [], "", False
    position = 0
    text = row.strip()
    text = text.removeprefix("|")
    while position < len(text):
        character = text[position]
        if character == "\\" and text[position + 1 : position + 2] == "|":
            cell += "|"
            position += 2
            continue
        if character == "`":
            in_code = not in_code and "`" in text[position + 1 :]
        if character == "|" and not in_code:
            cells.append(cell.strip())
            cell = ""
        else:
            cell += character
        position += 1
    if cell.strip() or not text.endswith("|"):
        cells.append(cell.strip())
    return cells


def is_delimiter(row: str, columns: int) -> bool:
    """Whether ``row`` is the line of dashes below a heading of ``columns`` cells."""
    cells = cells_of(row)
    return (
        "-" in row
        and len(cells) == columns
        and all(_DELIMITER_CELL.fullmatch(cell) for cell in cells)
    )


class Table:
    """A table that grows by rows; widths are settled when it is first drawn."""

    def __init__(self, header: str, delimiter: str) -> None:
        self._header = cells_of(header)
        self._right = [
            cell.endswith(":") and not cell.startswith(":") for cell in cells_of(delimiter)
        ]
        self._rows: list[list[str]] = []
        self._widths: list[int] = []
        self._stacked = False

    def add(self, row: str) -> None:
        """Adds a row; cells beyond the heading's are kept in the last one."""
        cells = cells_of(row)
        count = len(self._header)
        if len(cells) > count:
            cells = [*cells[: count - 1], " | ".join(cells[count - 1 :])]
        self._rows.append(cells + [""] * (count - len(cells)))

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, width: int) -> list[Line]:
        """The lines of the rows since the last call, with the heading the first time."""
        rows = [[parse(cell, complete=True).spans for cell in row] for row in self._rows]
        self._rows = []
        heading = [parse(cell, complete=True, style=BOLD).spans for cell in self._header]
        lines: list[Line] = []
        if not self._widths:
            self._settle([heading, *rows], width)
            if not self._stacked:
                lines += self._draw(heading)
                lines.append([Span("─┼─".join("─" * w for w in self._widths), DIM)])
            elif not rows:
                lines += [line for cell in heading for line in fold_spans(cell, width)]
        for row in rows:
            lines += self._stack(heading, row, width) if self._stacked else self._draw(row)
        return lines

    def _settle(self, rows: list[list[Line]], width: int) -> None:
        natural = [max(1, *(line_width(row[i]) for row in rows)) for i in range(len(rows[0]))]
        room = width - 3 * (len(natural) - 1)
        widths = list(natural)
        while sum(widths) > room and max(widths) > MIN_COLUMN:
            widths[widths.index(max(widths))] -= 1
        self._stacked = sum(widths) > room
        self._widths = widths

    def _draw(self, row: list[Line]) -> list[Line]:
        folded = [
            fold_spans(cell, columns) for cell, columns in zip(row, self._widths, strict=True)
        ]
        lines: list[Line] = []
        for index in range(max(len(cell) for cell in folded)):
            line: Line = []
            for column, cell in enumerate(folded):
                content = cell[index] if index < len(cell) else []
                blank = Span(" " * max(0, self._widths[column] - line_width(content)))
                line += [Span(" │ ", DIM)] if column else []
                line += [blank, *content] if self._right[column] else [*content, blank]
            while line and not line[-1].text.strip():
                line.pop()
            lines.append(line)
        return lines

    def _stack(self, heading: list[Line], row: list[Line], width: int) -> list[Line]:
        lines: list[Line] = []
        for name, cell in zip(heading, row, strict=True):
            if plain(cell) or plain(name):
                lines += fold_spans([*name, Span(": ", BOLD), *cell], width, rest=[Span("  ")])
        return [*lines, []]
