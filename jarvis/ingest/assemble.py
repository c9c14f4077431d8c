"""One text out of pages and blocks, and where each of them stands in it."""

from __future__ import annotations

from dataclasses import dataclass

from jarvis.ingest.model import Extracted, Kind, PageSpan
from jarvis.security.text import clean, clean_line

BETWEEN_BLOCKS = "\n\n"


@dataclass(frozen=True, slots=True)
class Span:
    """A block's place in the text: characters ``start`` up to ``end`` of page ``page``."""

    start: int
    end: int
    kind: Kind
    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Text:
    """A document's text. ``pages`` is empty for a file without pages."""

    text: str
    spans: tuple[Span, ...]
    pages: tuple[PageSpan, ...]
    empty_pages: tuple[int, ...]


def assemble(extracted: Extracted) -> Text:
    """Cleans every block and joins them. Page numbers count from 1."""
    parts: list[str] = []
    spans: list[Span] = []
    pages: list[PageSpan] = []
    empty: list[int] = []
    length = 0
    for number, page in enumerate(extracted.pages, 1):
        begin: int | None = None
        for block in page.blocks:
            text = clean(block.text).strip("\n").rstrip()
            if not text.strip():
                continue
            if parts:
                parts.append(BETWEEN_BLOCKS)
                length += len(BETWEEN_BLOCKS)
            begin = length if begin is None else begin
            end = length + len(text)
            title = clean_line(block.title or text) if block.kind is Kind.HEADING else ""
            spans.append(Span(length, end, block.kind, block.level, title, number))
            parts.append(text)
            length = end
        if begin is None:
            empty.append(number)
        place = length if begin is None else begin
        pages.append(PageSpan(place, length, clean_line(page.label)))
    if not extracted.paged:
        return Text("".join(parts), tuple(spans), (), ())
    return Text("".join(parts), tuple(spans), tuple(pages), tuple(empty))
