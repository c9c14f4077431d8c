"""Markdown, as its source: headings, paragraphs, lists, tables and code.

The source is kept word for word, since it reads well and its marks (a ``#``, a table's bars)
help a model. Only HTML comments are left out: nobody who reads the page sees them.
"""

from __future__ import annotations

import re

from jarvis.ingest.detect import MARKDOWN
from jarvis.ingest.encoding import decode
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_LIST = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MARKS = re.compile(r"[*_`]+|!?\[([^\]]*)\]\([^)]*\)|\{#[^}]*\}|\{\.[^}]*\}")
_TITLE = re.compile(r"^title:\s*[\"']?(.*?)[\"']?\s*$", re.MULTILINE | re.IGNORECASE)


def extract(source: Source) -> Extracted:
    """The blocks of a Markdown file; its title from the front matter or the first heading."""
    text, warnings = decode(source.data)
    source.check_text(len(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if not text.strip():
        raise Unreadable("holds no text, only white space", code="empty")
    found, title = blocks(text)
    if not found:
        raise Unreadable("holds no text outside its comments", code="empty")
    if not title:
        title = next((b.title for b in found if b.kind is Kind.HEADING and b.level == 1), "")
    return Extracted(MARKDOWN, (Page(tuple(found)),), title=title, warnings=tuple(warnings))


def blocks(text: str) -> tuple[list[Block], str]:
    """The blocks of ``text``, and the title that its front matter gives."""
    lines = text.split("\n")
    title, start, found = "", 0, []
    if lines[0].strip() == "---":
        end = next(
            (i for i in range(1, min(len(lines), 200)) if lines[i].strip() in {"---", "..."}), 0
        )
        if end:
            matter = "\n".join(lines[1:end])
            match = _TITLE.search(matter)
            title = match[1] if match else ""
            if matter.strip():
                found.append(Block(matter.strip(), Kind.TABLE))
            start = end + 1
    lines = _without_comments(lines[start:])
    index = 0
    while index < len(lines):
        index = _next(lines, index, found)
    return found, title


def plain(text: str) -> str:
    """A heading's words without marks."""
    return " ".join(_MARKS.sub(lambda match: match[1] or "", text).split())


def _next(lines: list[str], index: int, found: list[Block]) -> int:
    """Adds the block that begins at ``index``, and returns where the next one does."""
    line = lines[index]
    if not line.strip():
        return index + 1
    fence = _FENCE.match(line)
    if fence:
        end = index + 1
        while end < len(lines) and not lines[end].strip().startswith(fence[1]):
            end += 1
        found.append(Block("\n".join(lines[index : end + 1]), Kind.CODE))
        return end + 1
    heading = _ATX.match(line)
    if heading:
        if heading[2]:
            level = len(heading[1])
            found.append(Block(line.strip(), Kind.HEADING, level, plain(heading[2])))
        return index + 1
    end = index + 1
    while end < len(lines) and lines[end].strip() and not _interrupts(lines[end]):
        end += 1
    part = lines[index:end]
    rule = _SETEXT.match(part[-1]) if len(part) in (2, 3) else None
    if rule and not _LIST.match(part[0]):
        text = "\n".join(part)
        level = 1 if rule[1][0] == "=" else 2
        found.append(Block(text.strip(), Kind.HEADING, level, plain(" ".join(part[:-1]))))
    elif len(part) > 1 and "|" in part[0] and _TABLE_RULE.match(part[1]):
        found.append(Block("\n".join(part), Kind.TABLE))
    elif line.startswith(("    ", "\t")) and not _LIST.match(line):
        found.append(Block("\n".join(part).rstrip(), Kind.CODE))
    elif not (len(part) == 1 and _SETEXT.match(line)):  # a thematic break says nothing
        kind = Kind.LIST if _LIST.match(line) else Kind.PARAGRAPH
        found.append(Block("\n".join(part).strip("\n"), kind))
    return end


def _interrupts(line: str) -> bool:
    return bool(_FENCE.match(line) or _ATX.match(line))


def _without_comments(lines: list[str]) -> list[str]:
    """The lines without HTML comments, except inside fenced code."""
    if not any("<!--" in line for line in lines):
        return lines
    parts: list[str] = []
    text: list[str] = []
    fence = ""

    def flush() -> None:
        if text:
            parts.append(_COMMENT.sub("", "\n".join(text)))
            text.clear()

    for line in lines:
        match = _FENCE.match(line)
        if fence:
            parts.append(line)
            if match and match[1].startswith(fence):
                fence = ""
        elif match:
            flush()
            fence = match[1]
            parts.append(line)
        else:
            text.append(line)
    flush()
    return "\n".join(parts).split("\n")
