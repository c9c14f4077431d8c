"""Reading order: columns, and files whose content stream jumps about.

The order of the content stream is kept wherever it makes sense, since it is what the author's
program wrote. It is changed only where lines were read across a gutter, or go back up.
"""

from __future__ import annotations

import bisect
import itertools
import re
from operator import itemgetter
from statistics import median

from jarvis.ingest.pdf_lines import Line, PageText

Gutter = tuple[float, float]
Run = tuple[float, float, float]

MIN_GAP = 0.8
"""Width of the gap between two cells, in heights of the line; a blank is a quarter of one."""

MIN_ROWS = 4
"""Rows on both sides of a gutter below which it may be a table or chance."""

MIN_GUTTER = 8.0
"""Width of a gutter in points; a word space at 12 points is about 3."""

MAX_WIDTH = 20_000.0
"""Points; a page has at most 14,400 (ISO 32000-1, annex C). Damaged files have text at millions."""

MAX_BLOCKS = 150
"""Blocks above which a page (a map, a form) stays as its program wrote it."""

_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def ordered(page: PageText) -> list[Line]:
    """The lines of a page in reading order: upright text first, turned text after it."""
    lines = page.lines()
    if len(lines) < 2:
        return lines
    by_turn: dict[int, list[Line]] = {}
    for line in lines:
        by_turn.setdefault(line.turn, []).append(line)
    if len(by_turn) == 1:
        return _ordered(page, lines, lines[0].turn)
    weights = {turn: sum(len(line.text) for line in group) for turn, group in by_turn.items()}
    found = []
    for turn in sorted(by_turn, key=lambda turn: -weights[turn]):
        found += _ordered(page, by_turn[turn], turn)
    return found


def _ordered(page: PageText, lines: list[Line], turn: int) -> list[Line]:
    runs = page.runs(turn) if len(lines) > 1 else []
    gutters = _gutters(runs, lines) if len(lines) >= MIN_ROWS else []
    if gutters:
        parted, crossing = _part(page, lines, gutters)
        if _prose(parted, gutters) and (crossing >= MIN_ROWS or _disordered(parted, gutters)):
            return _by_columns(parted, gutters)
        if _prose(lines, gutters):
            return lines
    _mark_cells(runs, lines)
    if _goes_back_up(lines):
        return _by_blocks(lines)
    return lines


def _mark_cells(runs: list[Run], lines: list[Line]) -> None:
    """Notes where the cells of lines are that have gaps much wider than a blank."""
    if len(runs) <= len(lines):
        return  # one run a line: there are no gaps
    runs = sorted(runs, key=itemgetter(2))
    places = [run[2] for run in runs]
    for line in lines:
        near = 0.4 * line.height
        first = bisect.bisect_left(places, line.middle - near)
        last = bisect.bisect_right(places, line.middle + near, first)
        if last - first < 2:
            continue
        cells: list[tuple[float, float]] = []
        for u0, u1, _ in sorted(runs[first:last]):
            if u0 < line.u0 - 1 or u1 > line.u1 + 1:
                continue
            if cells and u0 - cells[-1][1] < MIN_GAP * line.height:
                cells[-1] = (cells[-1][0], max(cells[-1][1], u1))
            else:
                cells.append((u0, u1))
        if len(cells) > 1:
            line.cells = tuple(cells)


def _gutters(runs: list[Run], lines: list[Line]) -> list[Gutter]:
    """Vertical strips that (almost) no run of text touches, with text on both sides."""
    left, right = min(line.u0 for line in lines), max(line.u1 for line in lines)
    width = right - left
    if not 10 * MIN_GUTTER <= width <= MAX_WIDTH:
        return []
    step = 2.0
    count = int(width / step) + 2
    change = [0] * (count + 1)
    for u0, u1, _ in runs:
        if u1 - u0 > 0.6 * width or u0 < left - step or u1 > right + step:
            continue  # titles cross every gutter; text turned otherwise stands elsewhere
        change[max(0, int((u0 - left) / step))] += 1
        change[min(count, int((u1 - left) / step) + 1)] -= 1
    covered, level = [], 0
    for delta in change[:count]:
        level += delta
        covered.append(level)
    peak = sorted(covered)[int(len(covered) * 0.75)]
    if peak < MIN_ROWS:
        return []
    allowed = peak * 0.06
    found: list[Gutter] = []
    start: int | None = None
    for index, level in enumerate([*covered, peak]):
        if level <= allowed:
            start = index if start is None else start
        elif start is not None:
            strip = (left + start * step, left + index * step)
            inside = strip[0] > left + 0.12 * width and strip[1] < right - 0.12 * width
            if inside and strip[1] - strip[0] >= MIN_GUTTER - step:
                found.append(strip)
            start = None
    return found if len(found) <= 3 else []


def _part(page: PageText, lines: list[Line], gutters: list[Gutter]) -> tuple[list[Line], int]:
    """Lines that pdfium read across a gutter, parted there; and how many there were."""
    parted: list[Line] = []
    crossing = 0
    for line in lines:
        rest: Line | None = line
        for left, right in gutters:
            if rest is None or not rest.u0 < left < right < rest.u1:
                continue
            pieces = page.split(rest, left, right)
            if pieces:
                parted.append(pieces[0])
                rest = pieces[1]
        if rest is not None:
            parted.append(rest)
        crossing += rest is not line
    return parted, crossing


def _column(line: Line, gutters: list[Gutter]) -> int | None:
    """The column a line stands in; None when it crosses a gutter."""
    for index, (left, right) in enumerate(gutters):
        middle = (left + right) / 2
        if line.u1 <= middle:
            return index
        if line.u0 < middle:
            return None
    return len(gutters)


def _prose(lines: list[Line], gutters: list[Gutter]) -> bool:
    """Whether the columns hold running text and not the cells of a table."""
    columns: dict[int, list[Line]] = {}
    for line in lines:
        column = _column(line, gutters)
        if column is not None:
            columns.setdefault(column, []).append(line)
    if len(columns) != len(gutters) + 1:
        return False
    for group in columns.values():
        if len(group) < MIN_ROWS or median(len(line.text) for line in group) < 15:
            return False
        width = max(line.u1 for line in group) - min(line.u0 for line in group)
        if median(line.u1 - line.u0 for line in group) < 0.6 * width:
            return False
    return True


def _disordered(lines: list[Line], gutters: list[Gutter]) -> bool:
    """Whether the stream goes to and fro between the columns, or up inside one."""
    turns = jumps = 0
    for before, after in itertools.pairwise(lines):
        a, b = _column(before, gutters), _column(after, gutters)
        if a is not None and b is not None and a != b:
            turns += 1
        elif a == b and after.middle < before.middle - max(before.height, after.height):
            jumps += 1
    return turns > 2 * len(gutters) + 2 or jumps > 0


def _by_columns(lines: list[Line], gutters: list[Gutter]) -> list[Line]:
    """Column by column between the lines that span them."""
    rtl = _right_to_left(lines)
    found: list[Line] = []
    band: list[list[Line]] = [[] for _ in range(len(gutters) + 1)]

    def close() -> None:
        for column in reversed(band) if rtl else band:
            found.extend(column)
            column.clear()

    for line in sorted(lines, key=lambda line: line.middle):
        column = _column(line, gutters)
        if column is None:
            close()
            found.append(line)
        else:
            band[column].append(line)
    close()
    return found


def _goes_back_up(lines: list[Line]) -> bool:
    """Whether a line stands above the one before it, in the same column."""
    return any(
        after.middle < before.middle - 1.2 * max(before.height, after.height)
        and _overlap(before, after) > 0.3
        for before, after in itertools.pairwise(lines)
    )


def _overlap(a: Line, b: Line) -> float:
    shared = min(a.u1, b.u1) - max(a.u0, b.u0)
    return shared / max(1.0, min(a.u1 - a.u0, b.u1 - b.u0))


def _by_blocks(lines: list[Line]) -> list[Line]:
    """Runs of neighbouring lines stay together and are sorted as wholes.

    A block comes before another that it stands above, or that it stands left of with nothing in
    between that spans both (the two rules of Breuel, "High performance document layout
    analysis", 2003).
    """
    blocks: list[list[Line]] = [[lines[0]]]
    for before, after in itertools.pairwise(lines):
        pitch = after.middle - before.middle
        near = -0.3 * before.height <= pitch <= 2.2 * max(before.height, after.height)
        if near and (_overlap(before, after) > 0.3 or pitch < 0.5 * before.height):
            blocks[-1].append(after)
        else:
            blocks.append([after])
    if len(blocks) > MAX_BLOCKS:
        return lines
    boxes = [
        Line(
            "",
            min(line.u0 for line in block),
            max(line.u1 for line in block),
            min(line.v0 for line in block),
            max(line.v1 for line in block),
            0,
        )
        for block in blocks
    ]
    rtl = _right_to_left(lines)
    n = len(boxes)
    waits_for: list[set[int]] = [set() for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if i != j and _before(boxes, i, j, rtl):
                waits_for[j].add(i)
    found: list[Line] = []
    left = list(range(n))
    while left:
        # Two rules can contradict each other in a tangle: then the topmost goes first.
        free = [i for i in left if not waits_for[i]]
        chosen = free[0] if free else min(left, key=lambda i: boxes[i].v0)
        left.remove(chosen)
        for waiting in waits_for:
            waiting.discard(chosen)
        found += blocks[chosen]
    return found


def _before(boxes: list[Line], i: int, j: int, rtl: bool) -> bool:
    a, b = boxes[i], boxes[j]
    if min(a.u1, b.u1) - max(a.u0, b.u0) > 0:
        return a.middle < b.middle
    if (a.u0 > b.u0) != rtl:
        return False
    top, bottom = min(a.middle, b.middle), max(a.middle, b.middle)
    return not any(
        top < c.middle < bottom
        and min(a.u1, c.u1) - max(a.u0, c.u0) > 0
        and min(b.u1, c.u1) - max(b.u0, c.u0) > 0
        for k, c in enumerate(boxes)
        if k not in (i, j)
    )


def _right_to_left(lines: list[Line]) -> bool:
    letters = "".join(line.text for line in lines)
    if letters.isascii() or not _RTL.search(letters):
        return False
    return len(_RTL.findall(letters)) * 2 > sum(char.isalpha() for char in letters)
