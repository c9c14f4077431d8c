"""From lines of a PDF to headings and paragraphs."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from statistics import median

from jarvis.ingest.model import Block, Kind
from jarvis.ingest.patterns import NUMBERED_HEADING
from jarvis.ingest.pdf_lines import Line
from jarvis.ingest.prose import BROKEN, mark_breaks, rejoin, unligate

ALIGNED = 2.0
"""Points by which the edges of cells of one column differ at most."""

_DECIMAL_HEADING = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_]")
_BULLET = re.compile(r"[•◦▪■●‣*–—\-]\s|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]\s|§\s*\d")
_SENTENCE_END = re.compile(r"[.!?:;。！？…][\"'”’»)\]]*$")
_TAIL = 8
"""Characters of a line's end that tell whether a sentence ends there."""
_WORD = re.compile(r"[^\W\d_]{3}|[\u3000-\u9fff\uac00-\ud7af]{2}")
_HYPHEN_END = re.compile(r"[^\W_][\u2010\-\xad]$")
_CJK = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Style:
    """What the ordinary text of a document looks like."""

    height: float
    bold: bool
    headings: tuple[float, ...]
    """Heights of larger lines, the largest first: a heading's place here is its level."""


def style_of(pages: list[list[Line]]) -> Style:
    """The commonest height (weighted by characters), and those that stand out."""
    heights: Counter[float] = Counter()
    bold: Counter[bool] = Counter()
    for lines in pages:
        for line in lines:
            heights[_rounded(line.height)] += len(line.text)
            bold[line.bold] += len(line.text)
    if not heights:
        return Style(0.0, False, ())
    body = heights.most_common(1)[0][0]
    larger = sorted((h for h in heights if h >= 1.15 * body), reverse=True)
    return Style(body, bold[True] > bold[False], tuple(larger))


def blocks_of(lines: list[Line], style: Style, words: Counter[str]) -> tuple[Block, ...]:
    """Joins the lines of a page to paragraphs and finds its headings."""
    if not lines:
        return ()
    pitch = _pitch(lines)
    groups: list[list[Line]] = [[lines[0]]]
    left, right = lines[0].u0, lines[0].u1
    for before, after in itertools.pairwise(lines):
        if _parted(before, after, groups[-1], (left, right), pitch, style):
            groups.append([after])
            left, right = after.u0, after.u1
        else:
            groups[-1].append(after)
            left, right = min(left, after.u0), max(right, after.u1)
    blocks = []
    for group in groups:
        text = rejoin(mark_breaks(unligate(_joined(group))), words).strip()
        if not text:
            continue
        level = heading_level(group, text, style)
        kind = Kind.HEADING if level else Kind.PARAGRAPH
        blocks.append(Block(text, kind, level, " ".join(text.split()) if level else ""))
    return tuple(blocks)


def heading_level(group: list[Line], text: str, style: Style) -> int:
    """1 and more for a heading, 0 for anything else."""
    if len(group) > 3 or len(text) > 160 or not any(char.isalpha() for char in text):
        return 0
    letters = sum(char.isalpha() for char in text)
    if text.count(". ") > 1 or letters < 0.6 * len("".join(text.split())) or not _WORD.search(text):
        return 0
    height = _rounded(max(line.height for line in group))
    if height >= 1.15 * style.height:
        ends = _SENTENCE_END.search(text) and not text.rstrip().endswith((":", "?", "!"))
        if len(text) > 100 and ends:
            return 0
        ranks = [h for h in style.headings if h > height * 1.04]
        return min(6, 1 + _steps(ranks))
    own_line = len(text) <= 90
    deep = 1 + min(3, _steps(list(style.headings)))
    if all(line.bold for line in group) and not style.bold and own_line:
        return 0 if text.endswith((".", ",", ";")) and not _DECIMAL_HEADING.match(text) else deep
    ended = text.endswith((".", ";", ",")) or text.count(",") > 1
    numbered = NUMBERED_HEADING.match(text) and not text[0].islower()
    if len(group) == 1 and own_line and not ended and numbered:
        return deep
    match = _DECIMAL_HEADING.match(text)
    if len(group) == 1 and match and len(text) <= 60 and not ended and text.count(" ") <= 7:
        return min(6, deep + match[1].count("."))
    return 0


def _steps(heights: list[float]) -> int:
    """How many clearly different sizes there are."""
    steps, last = 0, 0.0
    for height in heights:
        if not last or height < last * 0.94:
            steps, last = steps + 1, height
    return steps


def _rounded(height: float) -> float:
    return round(height * 2) / 2


def _pitch(lines: list[Line]) -> float:
    """The usual distance from line to line on this page."""
    steps = [
        after.middle - before.middle
        for before, after in itertools.pairwise(lines)
        if 0.5 * before.height < after.middle - before.middle < 2.5 * before.height
    ]
    return median(steps) if steps else 0.0


def _parted(
    before: Line,
    after: Line,
    group: list[Line],
    edges: tuple[float, float],
    pitch: float,
    style: Style,
) -> bool:
    """Whether ``after`` begins a new block. ``edges``: where the lines of ``group`` end."""
    if before.turn != after.turn:
        return True
    step = after.middle - before.middle
    big, small = before.height, after.height
    if big < small:
        big, small = small, big
    size = big
    if before.cut and 0 < step < 2.5 * size:
        return False
    if abs(step) < 0.5 * size:  # the same row: a superscript, or the next cell of a table
        return False
    larger = small >= 1.15 * style.height
    # Headings of several lines are set wider than the text.
    if step < 0 or step > max(1.35 * pitch, (1.5 if larger else 1.1) * size):
        return True
    if big > 1.15 * small and len(before.text) > 2 and len(after.text) > 2:
        return True
    shared = min(before.u1, after.u1) - max(before.u0, after.u0)
    if shared <= 0:
        return True
    if before.bold != after.bold and len(before.text) < 90 and before.bold != style.bold:
        return True
    if _BULLET.match(after.text):
        return True
    # "… see / clause 8." goes on; "Clause 8" begins.
    if NUMBERED_HEADING.match(after.text) and not after.text[0].islower():
        return True
    left, right = edges
    width = max(right - left, after.u1 - after.u0)
    ended = bool(_SENTENCE_END.search(before.text, max(0, len(before.text) - _TAIL)))
    if ended and before.u1 < right - 0.2 * width and len(group) > 1:
        return True
    if _is_heading_line(before, group, after):
        return True
    return ended and after.u0 > before.u0 + 0.8 * size and after.u0 > left + 0.8 * size


def _is_heading_line(before: Line, group: list[Line], after: Line) -> bool:
    """A numbered heading in the type of the text, with its paragraph right below."""
    if len(group) != 1 or len(before.text) > 80 or before.u1 >= after.u1 - 2 * before.height:
        return False
    if before.text[0].islower():
        return False
    return bool(NUMBERED_HEADING.match(before.text) or _DECIMAL_HEADING.match(before.text))


def _same_table(before: Line, after: Line) -> bool:
    """Whether two lines are rows: a cell behind the first begins or ends where another's does."""
    return abs(after.middle - before.middle) > 0.5 * before.height and any(
        abs(a[0] - b[0]) < ALIGNED or abs(a[1] - b[1]) < ALIGNED
        for a in before.cells[1:]
        for b in after.cells[1:]
    )


def _joined(group: list[Line]) -> str:
    right = max(line.u1 for line in group)
    left = min(line.u0 for line in group)
    full = right - 0.15 * (right - left)
    text = group[0].text
    for before, after in itertools.pairwise(group):
        if before.cut or (
            _HYPHEN_END.search(text, max(0, len(text) - 2)) and after.text[:1].isalnum()
        ):
            text = text.rstrip("-\xad\u2010") + BROKEN + after.text
        elif _CJK.match(after.text) and _CJK.match(text[-1:]):
            text += after.text
        elif before.cells and after.cells and _same_table(before, after):
            text += "\n" + after.text
        elif before.u1 >= full or abs(after.middle - before.middle) < 0.5 * before.height:
            text += " " + after.text
        else:
            text += "\n" + after.text
    if group[-1].cut:
        text += "-"
    return text
