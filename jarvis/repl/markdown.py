"""Markdown as lines of a terminal, while it streams.

The text goes in as it comes; what comes out are lines that will never change (``feed`` returns
them once) and the tail, which may (``tail``). A source line is settled by its end; a long one is
settled row by row, as far as no open mark can change it. A table waits for its end, because its
columns need all rows. Line ends of the source stay line ends: an address or a poem keeps its
shape. Marks that mean nothing are shown as written, so nothing of an answer is ever lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jarvis.repl.code import Highlighter
from jarvis.repl.inline import BOLD, CODE, DIM, parse
from jarvis.repl.spans import (
    TAB,
    Line,
    Span,
    clusters,
    expand_tabs,
    fitting,
    fold_spans,
    plain,
    width_of,
)
from jarvis.repl.tables import Table, cells_of, is_delimiter

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})[ \t]*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}> ?")
_ITEM = re.compile(r"^( *)([-*+•]|\d{1,9}[.)])([ \t]+)(?=\S)")
_TASK = re.compile(r"^\[([ xX])\] ")
_INDENT = re.compile(r"^ *")
_UNDECIDED = re.compile(r"^[\s>]*(?:[-*+_#•`~=]|\d{1,9}[.)]?)*[ \t]*(?:\[[ xX]?\]?)?[ \t]*$")

TABLE_BATCH = 100
"""Rows after which a table is drawn with the widths so far."""
TAIL_ROWS = 3
"""Rows of an unfinished table that are shown."""


@dataclass(slots=True)
class _Fence:
    marker: str
    indent: int
    code: Highlighter


@dataclass(frozen=True, slots=True)
class _Lead:
    """What stands before a line's text, where the text begins in the source, and its style."""

    first: Line
    rest: Line
    start: int
    style: str = ""


class Markdown:
    """Turns a stream of Markdown into lines.

    Args:
        width: columns of the terminal; may be set anew at any time.
        theme: colours of code (``terminal.code_theme``).
        unicode: whether bullets and rules may be drawn with other characters than ASCII.
    """

    def __init__(self, width: int, theme: str = "ansi_dark", *, unicode: bool = True) -> None:
        self.width = width
        self._theme = theme
        self._unicode = unicode
        self._source = ""
        self._before = " "
        self._carry: Line = []
        self._lead: _Lead | None = None
        self._row_lead: Line = []
        self._fence: _Fence | None = None
        self._header: str | None = None
        self._table: Table | None = None
        self._raw_rows: list[str] = []
        self._blank = True
        self._gap: list[Line] = []
        self._in_list = False

    def feed(self, text: str) -> list[Line]:
        """Takes the next piece (already safe for a terminal); returns the settled lines."""
        lines, self._gap = self._gap, []
        *complete, last = text.split("\n")
        for part in complete:
            lines += self._end_line(self._source + self._detabbed(part))
        self._source += self._detabbed(last)
        if last:
            lines += self._settle()
        while lines and not lines[-1]:
            self._gap.append(lines.pop())
        return lines

    def finish(self) -> list[Line]:
        """The text has ended: returns what is left."""
        lines, self._gap = self._gap, []
        if self._source or self._lead:
            lines += self._end_line(self._source)
        lines += self._close_table()
        while lines and not lines[-1]:
            lines.pop()
        self._fence = None
        return lines

    def tail(self) -> list[Line]:
        """The lines of what is not settled yet, as it looks now."""
        rows = list(self._gap)
        rows += [fold_spans([Span(row, DIM)], self.width)[0] for row in self._raw_rows[-TAIL_ROWS:]]
        if self._lead is not None:
            return rows + self._current_row()
        if not self._source:
            return rows
        if self._fence is not None:
            return rows + _hard_fold(expand_tabs(self._source), self.width)
        if self._header is not None or self._table is not None or self._may_be_row(self._source):
            return rows + fold_spans([Span(self._source, DIM)], self.width)[:1]
        return rows + self._text(self._source)

    def _detabbed(self, text: str) -> str:
        """The rest of a line whose beginning is settled; its column is no longer known."""
        return text if self._lead is None else _blanks(text)

    # A source line that has not ended.

    def _settle(self) -> list[Line]:
        """Gives out the rows of a long unfinished line that can no longer change."""
        if self._lead is None:
            if not self._is_long_text():
                return []
            source = _blanks(self._source)
            self._note_list(source)
            self._lead = self._lead_of(source)
            self._row_lead = self._lead.first
            self._source = source[self._lead.start :]
        settled = parse(
            self._source, complete=False, style=self._lead.style, before=self._before
        ).settled
        if settled == len(self._source) and not self._source[-1:].isascii():
            # A mark or a joiner may still come and belong to the last character.
            settled -= len(list(clusters(self._source[-16:]))[-1])
        spans = self._carry + self._spans(self._source[:settled])
        self._before = self._source[settled - 1] if settled else self._before
        self._source = self._source[settled:]
        rest = fitting(self._lead.rest, self.width)
        lines = fold_spans(spans, self.width, first=self._row_lead, rest=rest)
        if len(lines) == 1:
            self._carry = spans
            return []
        text = plain(spans)
        blanks = len(text) - len(text.rstrip(" "))
        self._carry = [*lines[-1][len(rest) :], Span(" " * blanks)]
        self._row_lead = rest
        return lines[:-1]

    def _is_long_text(self) -> bool:
        """Whether the unfinished line is a paragraph of more than a row, whatever follows."""
        if self._fence or self._header is not None or self._table is not None:
            return False
        return (
            len(self._source) >= self.width
            and not _UNDECIDED.match(self._source)
            and not self._may_be_row(self._source)
            and not self._is_verbatim(_blanks(self._source))
            and not _FENCE.match(self._source)
        )

    def _spans(self, source: str) -> Line:
        style = self._lead.style if self._lead else ""
        return parse(source, complete=True, style=style, before=self._before).spans

    def _current_row(self) -> list[Line]:
        assert self._lead is not None  # noqa: S101 -- only called inside a long line
        rest = fitting(self._lead.rest, self.width)
        spans = self._carry + self._spans(self._source)
        return fold_spans(spans, self.width, first=self._row_lead, rest=rest)

    # A source line that has ended.

    def _end_line(self, source: str) -> list[Line]:
        self._source = source
        if self._lead is not None:
            lines = self._current_row()
            self._lead, self._carry, self._before = None, [], " "
            self._blank = False
        else:
            lines = self._block(source)
        self._source = ""
        return lines

    def _block(self, source: str) -> list[Line]:
        if self._fence is not None:
            return self._code_line(source, self._fence)
        source = source.rstrip("\r")
        if self._table is not None:
            if "|" in source:
                return self._table_row(source, self._table)
            return self._close_table() + self._block(source)
        if self._header is not None:
            header, self._header = self._header, None
            if is_delimiter(source, len(cells_of(header))):
                self._table = Table(header, source)
                self._raw_rows = [header]
                return []
            self._raw_rows = []
            self._blank = False
            return self._text(header) + self._block(source)
        if self._may_be_header(source):
            self._header = source
            self._raw_rows = [source]
            return []
        return self._simple(source)

    def _simple(self, source: str) -> list[Line]:
        if not source.strip():
            gap: list[Line] = [] if self._blank else [[]]
            self._blank = True
            return gap
        fence = _FENCE.match(source)
        if fence:
            language = fence.group(3).strip()
            self._fence = _Fence(
                fence.group(2), len(fence.group(1)), Highlighter(language, self._theme)
            )
            self._blank = False
            return [self._code_rule(language)]
        lines = self._text(source)
        self._note_list(source)
        self._blank = False
        return lines

    def _note_list(self, source: str) -> None:
        """A list goes on over indented lines, and over any line that no blank one parts from it."""
        goes_on = self._in_list and (source.startswith(" ") or not self._blank)
        self._in_list = goes_on or bool(_ITEM.match(source))

    def _text(self, source: str) -> list[Line]:
        """A line that is neither code nor a row of a table; changes no state."""
        source = _blanks(source)
        if _RULE.match(source):
            dash = "─" if self._unicode else "-"
            return [[Span(dash * min(self.width, 40), DIM)]]
        if self._is_verbatim(source):
            return [[Span(expand_tabs(source), CODE)]]
        lead = self._lead_of(source)
        body = source[lead.start :].rstrip(" ")
        heading = _HEADING.match(source)
        if heading:
            body = heading.group(2)
        spans = parse(body, complete=True, style=lead.style).spans
        rest = fitting(lead.rest, self.width)
        return fold_spans(spans, self.width, first=lead.first, rest=rest)

    def _lead_of(self, source: str) -> _Lead:
        """Quote marks, indentation and bullet of a line, as they are drawn."""
        heading = _HEADING.match(source)
        if heading:
            style = f"{BOLD};4" if len(heading.group(1)) == 1 else BOLD
            return _Lead([], [], heading.start(2), style)
        first: Line = []
        start, style = 0, ""
        bar = "│ " if self._unicode else "| "
        while quote := _QUOTE.match(source[start:]):
            first.append(Span(bar, DIM))
            start += quote.end()
            style = "3"
        rest = list(first)
        item = _ITEM.match(source[start:])
        if item:
            indent, mark, _ = item.groups()
            start += item.end()
            bullet = ("•" if self._unicode else "*") if mark in "-*+•" else mark
            task = _TASK.match(source[start:])
            if task and self._unicode:
                bullet = "☐" if task.group(1) == " " else "☑"
                start += task.end()
            first.append(Span(indent))
            first.append(Span(f"{bullet} ", "36"))
            rest.append(Span(" " * (len(indent) + width_of(bullet) + 1)))
        else:
            blank = _INDENT.match(source[start:])
            indent = blank.group() if blank else ""
            start += len(indent)
            if indent:
                first.append(Span(indent))
                rest.append(Span(indent))
        return _Lead(first, rest, start, style)

    def _is_verbatim(self, source: str) -> bool:
        """Code by indentation: four blanks, outside a list, behind a blank line."""
        return source.startswith(("    ", "\t")) and self._blank and not self._in_list

    def _may_be_header(self, source: str) -> bool:
        """Whether this may be the first row of a table; a long line is text by then."""
        if "|" not in source or self._is_verbatim(source):
            return False
        fits = self._may_be_row(source) or len(source) < self.width
        return fits and len(cells_of(source)) > 1

    @staticmethod
    def _may_be_row(source: str) -> bool:
        return source.lstrip().startswith("|")

    # Blocks of several lines.

    def _code_rule(self, language: str) -> Line:
        dash = "─" if self._unicode else "-"
        return [Span(f"{dash * 2} {language}" if language else dash * 3, DIM)]

    def _code_line(self, source: str, fence: _Fence) -> list[Line]:
        stripped = source.strip()
        if (
            len(stripped) >= len(fence.marker)
            and set(stripped) == {fence.marker[0]}
            and len(source) - len(source.lstrip()) <= fence.indent + 3
        ):
            self._fence = None
            self._blank = False
            return [self._code_rule("")]
        blanks = min(fence.indent, len(source) - len(source.lstrip(" ")))
        return [fence.code.line(expand_tabs(source[blanks:]))]

    def _table_row(self, source: str, table: Table) -> list[Line]:
        table.add(source)
        self._raw_rows = [*self._raw_rows[-TAIL_ROWS:], source]
        return table.take(self.width) if len(table) >= TABLE_BATCH else []

    def _close_table(self) -> list[Line]:
        lines: list[Line] = []
        if self._header is not None:
            lines = self._text(self._header)
        elif self._table is not None:
            lines = self._table.take(self.width)
        if self._raw_rows:
            self._blank = bool(lines) and not lines[-1]
        self._header, self._table, self._raw_rows = None, None, []
        return lines


def _blanks(text: str) -> str:
    """Tabs in running text, where there are no columns to keep, as so many blanks each."""
    return text.replace("\t", " " * TAB)


def _hard_fold(text: str, width: int) -> list[Line]:
    """Cuts code into rows for the tail; the settled line is left to the terminal to fold."""
    rows: list[Line] = []
    row, used = "", 0
    for cluster in clusters(text):
        columns = width_of(cluster)
        if row and used + columns > width:
            rows.append([Span(row)])
            row, used = "", 0
        row += cluster
        used += columns
    return [*rows, [Span(row)]]
