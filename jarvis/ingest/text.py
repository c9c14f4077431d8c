"""Plain text: paragraphs, numbered headings, code and the pages that form feeds make."""

from __future__ import annotations

import re

from jarvis.ingest.detect import PLAIN
from jarvis.ingest.encoding import decode
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable
from jarvis.ingest.patterns import NUMBERED_HEADING
from jarvis.ingest.prose import unligate

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+[^\W\d_]")
_CODE = re.compile(
    r"[{};=<>]|^\s{4,}\S|^\s*(?:def|class|import|return|if|for|#include)\b", re.MULTILINE
)


def extract(source: Source) -> Extracted:
    """The text in its encoding, parted at blank lines; a form feed begins a page."""
    text, warnings = decode(source.data)
    source.check_text(len(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if not text.strip():
        raise Unreadable("holds no text, only white space", code="empty")
    parts = text.strip("\f\n").split("\f")
    paged = len(parts) > 1
    pages = tuple(
        Page(tuple(blocks(part)), problem="" if part.strip() else "blank") for part in parts
    )
    return Extracted(PLAIN, pages, paged=paged, warnings=tuple(warnings))


def blocks(text: str) -> list[Block]:
    """The paragraphs of ``text``, with the headings among them."""
    found = []
    for part in _BLANK.split(unligate(text)):
        part = part.strip("\n")
        if not part.strip():
            continue
        level = _heading(part)
        if level:
            found.append(Block(part.strip(), Kind.HEADING, level, " ".join(part.split())))
        elif part.count("\n") >= 2 and len(_CODE.findall(part)) > part.count("\n"):
            found.append(Block(part, Kind.CODE))
        else:
            found.append(Block(part.strip()))
    return found


def _heading(part: str) -> int:
    """The level of a line that stands alone and looks like a heading; 0: it does not."""
    line = part.strip()
    if "\n" in line or len(line) > 80 or line.endswith((".", ",", ";")):
        return 0
    if NUMBERED_HEADING.match(line) and not line[0].islower():
        return 1
    match = _NUMBERED.match(line)
    if match and len(line) <= 60:
        return 1 + match[0].strip(". ").count(".")
    words = [word for word in line.split() if word.isalpha()]
    return 1 if words and len(line) >= 4 and line.isupper() and len(line.split()) <= 10 else 0
