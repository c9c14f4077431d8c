"""What an extractor makes of a file, and what the chunker makes of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a block of text is; the chunker keeps tables and code together where they fit."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, list, table or piece of code, in reading order.

    Args:
        text: its words, lines parted by ``\\n``.
        kind: what it is.
        level: of a heading, 1 is the highest.
        title: of a heading, its words without markup; empty: ``text`` as it stands.
    """

    text: str
    kind: Kind = Kind.PARAGRAPH
    level: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One page, or the whole of a file that has none.

    Args:
        blocks: its text, in reading order; empty for a page without readable text.
        label: the number printed on it, as the file says ("iv", "A-3"); empty: none given.
        problem: why there is no text, when there is an answer ("no text layer", …).
    """

    blocks: tuple[Block, ...]
    label: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A file's text. ``paged`` tells pages that can be cited from one long text."""

    media_type: str
    pages: tuple[Page, ...]
    paged: bool = False
    title: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Where a page stands in the document's text: characters ``start`` up to ``end``."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk: ``content`` is exactly the characters ``start`` up to ``end`` of the text.

    ``page`` is the 1-based index of the page it begins on, ``page_end`` of the one it ends on
    (None for files without pages); ``heading`` the path of headings above it, `` > `` between.
    ``tokens`` is an estimate that errs to the high side.
    """

    ordinal: int
    start: int
    end: int
    tokens: int
    content: str
    heading: str = ""
    page: int | None = None
    page_end: int | None = None
    page_label: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """All that is stored of a file: made in the child, handed to the parent."""

    sha256: str
    size_bytes: int
    media_type: str
    title: str
    passages: tuple[Passage, ...]
    pages: tuple[PageSpan, ...] = ()
    empty_pages: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


class Unreadable(Exception):
    """A file that cannot be read as a document.

    Args:
        reason: completes "NAME: …" for people, in one line.
        hint: what to do about it.
        code: ``password`` when a password would help, ``limit``, ``empty`` (no text in it),
            ``unsupported``, ``damaged``.
        pages: how many pages it has, where that is known.
    """

    def __init__(self, reason: str, hint: str = "", code: str = "damaged", pages: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.code = code
        self.pages = pages


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a file and what the user said about them."""

    data: bytes
    name: str
    password: str | None = None
    max_text: int = 64 * 1024 * 1024
    progress: Callable[[int, int], None] = field(default=lambda _done, _total: None)

    def check_text(self, characters: int) -> None:
        """Raises ``Unreadable`` once more text came out of the file than is allowed."""
        if characters > self.max_text:
            raise Unreadable(
                f"holds more than {self.max_text // (1024 * 1024)} MiB of text",
                "raise documents.max_text_mb, or split the file",
                "limit",
            )
