"""Passages for retrieval: structure first, then size.

A passage never crosses a page (so that its citation names the right one) except to finish a
sentence, and begins at a heading where there is one. What is too long is parted between
paragraphs, then sentences (rows of a table, lines of code), then words; parts of one section
share a few sentences.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jarvis.ingest.assemble import Span, Text
from jarvis.ingest.model import Kind, Passage
from jarvis.ingest.tokens import MARGIN, OVERHEAD, TokenCounter

SMALL = 60
"""Tokens below which a section is joined with the next one: alone it says too little."""

MAX_HEADING = 200
"""Characters of a heading path."""

_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*[A-Z0-9\u00c0-\u00de\u0400-\u042f])|(?<=[。！？])"
)
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Art|Sec|Fig|Eq|vs|cf|e\.g|i\.e|etc|bzw|z\.B))\.$"
)
_WORD = re.compile(r"\S+\s*")
_ENDED = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long passages may be, in tokens.

    Attributes:
        target: what to aim at.
        overlap: what neighbouring passages of one section share.
        window: the embedding model's window, its prefix taken off.
    """

    target: int = 500
    overlap: int = 50
    window: int = 512

    @property
    def limit(self) -> int:
        """Estimated tokens of a passage at most, so that it surely fits into the window."""
        inside = int((self.window - OVERHEAD) / MARGIN)
        return max(16, min(self.target, inside))


@dataclass(frozen=True, slots=True)
class _Atom:
    """A piece that is not parted any more."""

    start: int
    end: int
    tokens: int
    path: tuple[str, ...]
    heading: bool = False


def passages(document: Text, sizes: Sizes) -> list[Passage]:
    """Cuts a document into passages, in order."""
    return list(_Chunker(document, sizes).run())


def embedding_text(heading: str, content: str) -> str:
    """What is embedded and indexed of a passage: its headings, then its words.

    ``jarvis.store.upkeep`` makes the same text of a stored passage.
    """
    return f"{heading}\n{content}" if heading else content


class _Chunker:
    def __init__(self, document: Text, sizes: Sizes) -> None:
        self.text = document.text
        self.document = document
        self.sizes = sizes
        self.counter = TokenCounter(document.text)
        self.limit = sizes.limit
        self.overlap = min(sizes.overlap, self.limit // 4)
        self.path: list[tuple[int, str]] = []
        self._count_word = functools.lru_cache(maxsize=50_000)(self.counter.count)

    def run(self) -> Iterator[Passage]:
        """Yields the passages."""
        ordinal = 0
        for spans, following in self._pages():
            pieces = [
                (piece, before)
                for group in self._groups(spans)
                for piece, before in _with_previous(self._parts(group))
            ]
            for piece, before in pieces:
                last = piece is pieces[-1][0]
                passage = self._passage(
                    ordinal, piece, before, spans[0].page, following if last else None
                )
                if passage is not None:
                    yield passage
                    ordinal += 1

    def _pages(self) -> Iterator[tuple[list[Span], Span | None]]:
        """The blocks of each page, and the first block of the next one."""
        spans = list(self.document.spans)
        if not self.document.pages:
            if spans:
                yield spans, None
            return
        start = 0
        for index in range(1, len(spans) + 1):
            if index == len(spans) or spans[index].page != spans[start].page:
                yield spans[start:index], spans[index] if index < len(spans) else None
                start = index

    def _groups(self, spans: list[Span]) -> list[list[_Atom]]:
        """Sections, small ones joined with what follows."""
        sections: list[list[_Atom]] = []
        for span in spans:
            heading = span.kind is Kind.HEADING
            if heading:
                self._enter(span)
                if not sections or any(not atom.heading for atom in sections[-1]):
                    sections.append([])
            elif not sections:
                sections.append([])
            sections[-1] += self._atoms(span)
        groups: list[list[_Atom]] = []
        for section in sections:
            size = sum(atom.tokens for atom in section)
            if groups:
                before = sum(atom.tokens for atom in groups[-1])
                only_headings = all(atom.heading for atom in groups[-1])
                if (before < SMALL or only_headings) and before + size <= self.limit:
                    groups[-1] = groups[-1] + section
                    continue
            groups.append(section)
        if len(groups) > 1:
            size = sum(atom.tokens for atom in groups[-1])
            before = sum(atom.tokens for atom in groups[-2])
            if size < SMALL // 2 and before + size <= self.limit:
                groups[-2:] = [groups[-2] + groups[-1]]
        return groups

    def _enter(self, span: Span) -> None:
        while self.path and self.path[-1][0] >= span.level:
            self.path.pop()
        self.path.append((span.level, span.title[:MAX_HEADING]))

    def _atoms(self, span: Span) -> list[_Atom]:
        path = tuple(title for _, title in self.path)
        size = self.counter.count(self.text[span.start : span.end])
        heading = span.kind is Kind.HEADING
        room = self._room(path)
        if size <= room:
            return [_Atom(span.start, span.end, size, path, heading)]
        by_line = span.kind in {Kind.TABLE, Kind.CODE, Kind.LIST}
        found: list[_Atom] = []
        for start, end in self._lines(span) if by_line else self._sentences(span):
            size = self.counter.count(self.text[start:end])
            if size <= room:
                found.append(_Atom(start, end, size, path))
            else:
                found += self._words(start, end, path)
        return found

    def _room(self, path: tuple[str, ...]) -> int:
        """Tokens left beside the headings (which are embedded too) and the overlap."""
        headings = self.counter.count(_joined(path)) if path else 0
        return max(8, self.limit - self.overlap - min(headings, self.limit // 3))

    def _lines(self, span: Span) -> Iterator[tuple[int, int]]:
        start = span.start
        while start < span.end:
            end = self.text.find("\n", start, span.end)
            end = span.end if end < 0 else end
            if self.text[start:end].strip():
                yield start, end
            start = end + 1

    def _sentences(self, span: Span) -> Iterator[tuple[int, int]]:
        start = span.start
        for match in _SENTENCE.finditer(self.text, span.start, span.end):
            if _ABBREVIATION.search(self.text, max(start, match.start() - 8), match.start()):
                continue
            if match.end() > start:
                yield start, match.end()
                start = match.end()
        if start < span.end:
            yield start, span.end

    def _words(self, start: int, end: int, path: tuple[str, ...]) -> list[_Atom]:
        """Pieces of at most a quarter of the limit: of a table row, of base64, of one long line."""
        found: list[_Atom] = []
        most = max(4, min(self._room(path), self.limit // 4))
        begin, size = start, 0
        for match in _WORD.finditer(self.text, start, end):
            tokens = self._count_word(match[0])
            if size + tokens > most and match.start() > begin:
                found.append(_Atom(begin, match.start(), size, path))
                begin, size = match.start(), 0
            if tokens > most:  # no space for long: cut by characters
                for place in range(match.start(), match.end(), most):
                    stop = min(place + most, match.end())
                    found.append(
                        _Atom(place, stop, self.counter.count(self.text[place:stop]), path)
                    )
                begin = match.end()
            else:
                size += tokens
        if begin < end and self.text[begin:end].strip():
            found.append(_Atom(begin, end, size, path))
        return found

    def _parts(self, group: list[_Atom]) -> Iterator[list[_Atom]]:
        """A section in pieces of about equal size."""
        room = min((self._room(atom.path) for atom in group), default=self.limit)
        total = sum(atom.tokens for atom in group)
        if total <= room + (self.overlap if total else 0):
            yield group
            return
        count = -(-total // room)
        even = total / count
        piece: list[_Atom] = []
        size = 0
        for atom in group:
            full = size + atom.tokens > room or (size >= even and size + atom.tokens > even * 1.1)
            if piece and full:
                # A heading goes with what stands below it.
                keep = len(piece)
                while keep > 1 and piece[keep - 1].heading:
                    keep -= 1
                if any(not a.heading for a in piece[:keep]):
                    yield piece[:keep]
                    piece = piece[keep:]
                    size = sum(a.tokens for a in piece)
            piece.append(atom)
            size += atom.tokens
        if piece:
            yield piece

    def _passage(
        self,
        ordinal: int,
        piece: list[_Atom],
        before: int | None,
        page: int,
        following: Span | None,
    ) -> Passage | None:
        """A piece as a passage.

        Args:
            before: where the piece before it in the same section begins.
            page: the page that it stands on.
            following: the first block of the next page, when this piece is the page's last.
        """
        start, end = piece[0].start, piece[-1].end
        if before is not None and not piece[0].heading:
            start = self._shared(before, start)
        finished = self._finished(piece, end, following) if following else end
        content = self.text[start:finished].rstrip()
        while content.startswith("\n"):
            start, content = start + 1, content[1:]
        if not content.strip():
            return None
        path = next((atom.path for atom in piece if not atom.heading), piece[-1].path)
        paged = self.document.pages
        over = following is not None and finished > end
        return Passage(
            ordinal=ordinal,
            start=start,
            end=start + len(content),
            tokens=self.counter.count(content),
            content=content,
            heading=_joined(path),
            page=page if paged else None,
            page_end=(following.page if following and over else page) if paged else None,
            page_label=paged[page - 1].label if paged else "",
        )

    def _shared(self, floor: int, start: int) -> int:
        """Where a passage begins so that it repeats the last sentences of the one before it.

        At most ``overlap`` tokens, from the beginning of a sentence or line where one fits.
        """
        floor = max(floor, start - self.overlap * 10)
        marks = {match.end() for match in _SENTENCE.finditer(self.text, floor, start)}
        marks |= {floor + i + 1 for i, char in enumerate(self.text[floor:start]) if char == "\n"}
        sentences = sorted(mark for mark in marks if floor < mark < start)
        best = self._first_that_fits(sentences, start)
        if self.text[best:start].strip():
            return best
        # One long sentence: from a word on.
        words = [floor + m.start() + 1 for m in re.finditer(r"\s\S", self.text[floor:start])]
        return self._first_that_fits(words, start)

    def _first_that_fits(self, marks: list[int], end: int) -> int:
        """The first of ``marks`` (sorted) from which ``end`` is within the overlap, or ``end``."""
        index = bisect.bisect_left(
            marks,
            True,
            key=lambda mark: self.counter.count(self.text[mark:end]) <= self.overlap,
        )
        return marks[index] if index < len(marks) else end

    def _finished(self, piece: list[_Atom], end: int, following: Span) -> int:
        """The end of the sentence that goes on on the next page, when that is near."""
        if piece[-1].heading or following.kind is not Kind.PARAGRAPH:
            return end
        if _ENDED.search(self.text, max(0, end - 8), end):
            return end
        match = _SENTENCE.search(self.text, following.start, following.end)
        stop = match.end() if match else following.end
        more = self.counter.count(self.text[end:stop])
        size = sum(atom.tokens for atom in piece)
        return stop if more <= self.overlap and size + more <= self.limit else end


def _with_previous(pieces: Iterator[list[_Atom]]) -> Iterator[tuple[list[_Atom], int | None]]:
    """Each piece with the beginning of the one before it."""
    before: int | None = None
    for piece in pieces:
        yield piece, before
        before = piece[0].start


def _joined(path: tuple[str, ...]) -> str:
    text = " > ".join(path)
    return text if len(text) <= MAX_HEADING else text[-MAX_HEADING:].partition(" > ")[2] or path[-1]
