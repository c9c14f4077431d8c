"""The lines of a PDF page with their places, read through pdfium.

pdfium hands out characters in the order of the content stream and tells where it saw a line
end. Asking it for every character's box costs as much as loading the page, so only the first
and the last of each line are asked for; the boxes inside a line only where it spans a gutter.
"""

from __future__ import annotations

import ctypes
import re
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium

from jarvis.ingest.prose import BROKEN

_BREAK = re.compile(f"\r\n|\n|\r|{BROKEN}")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_WIDE = re.compile("[\U00010000-\U0010ffff]")
_LIGATURE = re.compile(r"(?:ffi|ffl|fi|fl|ff) (?=[^\W\d_])")
_BOLD = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)


@dataclass(slots=True)
class Line:
    """A line of text. ``u`` runs along the reading direction, ``v`` down the page, in points.

    So both grow as one reads on, however the text is turned; ``turn`` tells how it is.
    ``cut``: its last word goes on in the next line. ``height`` is that of the font's box, which is
    proportional to its size; ``middle`` is where the line stands on the page. ``cells``: where the
    parts between wide gaps begin and end, when there are several, as in the row of a table.
    """

    text: str
    u0: float
    u1: float
    v0: float
    v1: float
    turn: int
    bold: bool = False
    cut: bool = False
    first: int = 0
    last: int = 0
    cells: tuple[tuple[float, float], ...] = ()

    height: float = field(init=False)
    middle: float = field(init=False)

    def __post_init__(self) -> None:
        self.height = self.v1 - self.v0
        self.middle = (self.v0 + self.v1) / 2


class PageText:
    """The characters of one page."""

    def __init__(self, textpage: Any) -> None:
        self.raw = textpage.raw
        self.text: str = textpage.get_text_range(errors="surrogatepass")
        self._box = pdfium.FS_RECTF()
        self._box_ref = ctypes.byref(self._box)
        self._name = ctypes.create_string_buffer(96)
        self._flags = ctypes.c_int()
        # One code unit is one character of pdfium's list, so places behind a pair are shifted.
        self._wide = _WIDE.search(self.text) is not None

    def lines(self) -> list[Line]:
        """Every line that holds more than white space, in the order of the content stream.

        Bold type made by printing a line twice gives it once.
        """
        found: list[Line] = []
        seen: set[tuple[str, int, int]] = set()
        start, shift, turn = 0, 0, 0
        for end, separator in [
            *((m.start(), m[0]) for m in _BREAK.finditer(self.text)),
            (len(self.text), ""),
        ]:
            piece = self.text[start:end]
            stripped = piece.strip()
            if stripped:
                offset = start + len(piece) - len(piece.lstrip()) + shift
                extra = sum(c > "\uffff" for c in stripped) if self._wide else 0
                line = self._line(stripped, offset, offset + len(stripped) + extra - 1, turn)
                if not self._wide and _LIGATURE.search(stripped):
                    line.text = self._without_false_spaces(line)
                line.cut = separator == BROKEN
                turn = line.turn
                place = (stripped, round(line.u0 / 2), round(line.v1 / 2))
                if place not in seen:
                    found.append(line)
                seen.add(place)
            if self._wide:
                shift += sum(char > "\uffff" for char in piece)
            start = end + len(separator)
        return found

    def split(self, line: Line, left: float, right: float) -> tuple[Line, Line] | None:
        """Parts ``line`` at its widest gap that lies on the gutter from ``left`` to ``right``.

        None when there is no gap there that is wider than the blanks between words.
        """
        widest = max(6.0, 0.6 * line.height)
        found: tuple[int, int, float, int, int, float] | None = None
        before: tuple[int, float, int] | None = None
        place = line.first
        for position, char in enumerate(line.text):
            if not char.isspace():
                u0, u1, _, _ = _turned(self._at(place), line.turn)
                if before is not None and before[1] < right and u0 > left:
                    gap = u0 - before[1]
                    if gap > widest:
                        widest = gap
                        found = (before[0], position, before[1], before[2], place, u0)
                before = (position, u1, place)
            place += 2 if char > "\uffff" else 1
        if found is None:
            return None
        end, start, u1, last, first, u0 = found
        head, tail = copy(line), copy(line)
        head.text, head.u1, head.last, head.cut = line.text[: end + 1], u1, last, False
        tail.text, tail.u0, tail.first = line.text[start:], u0, first
        return head, tail

    def _without_false_spaces(self, line: Line) -> str:
        """Joins words that only a blank of no width parts behind a ligature ("defi nition")."""
        parts, done = [], 0
        for match in _LIGATURE.finditer(line.text):
            _, right, _, _ = _turned(self._at(line.first + match.end() - 2), line.turn)
            left, _, _, _ = _turned(self._at(line.first + match.end()), line.turn)
            if left - right < 0.05 * line.height:
                parts.append(line.text[done : match.end() - 1])
                done = match.end()
        return "".join(parts) + line.text[done:]

    def runs(self, turn: int) -> list[tuple[float, float, float]]:
        """Every run of text (pdfium's rectangles): its extent along the reading direction, and
        where its middle stands on the page."""
        left, top, right, bottom = (ctypes.c_double() for _ in range(4))
        refs = [ctypes.byref(value) for value in (left, top, right, bottom)]
        found = []
        rect = pdfium.FPDFText_GetRect
        for index in range(pdfium.FPDFText_CountRects(self.raw, 0, -1)):
            if not rect(self.raw, index, *refs):
                continue
            if turn == 0:
                found.append((left.value, right.value, -(top.value + bottom.value) / 2))
            else:
                box = (left.value, bottom.value, right.value, top.value)
                u0, u1, v0, v1 = _turned(box, turn)
                found.append((u0, u1, (v0 + v1) / 2))
        return found

    def unmapped(self) -> float:
        """The share of characters for which the file has no letter (a sample of 200)."""
        total = pdfium.FPDFText_CountChars(self.raw)
        step = max(1, total // 200)
        sample = range(0, total, step)
        bad = sum(pdfium.FPDFText_HasUnicodeMapError(self.raw, index) == 1 for index in sample)
        return bad / len(sample) if total else 0.0

    def _line(self, text: str, first: int, last: int, turn_before: int) -> Line:
        first = max(0, pdfium.FPDFText_GetCharIndexFromTextIndex(self.raw, first))
        last = pdfium.FPDFText_GetCharIndexFromTextIndex(self.raw, last)
        last = first + len(text) - 1 if last < first else last
        a, b = self._at(first), self._at(last)
        turn = _turn(a, b, text) if last > first else turn_before
        if turn == 0 and _area(a) and a[0] <= b[0] and a[2] <= b[2]:  # nearly every line
            u0, u1, v0, v1 = a[0], b[2], -a[3], -a[1]
        else:
            u0, u1, v0, v1 = _turned(
                (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])), turn
            )
            # The line's height is that of its first character: the last may be a superscript.
            _, _, v0, v1 = _turned(a, turn) if _area(a) else (u0, u1, v0, v1)
        return Line(text, u0, u1, v0, v1, turn, self._bold(first), first=first, last=last)

    def _at(self, index: int) -> tuple[float, float, float, float]:
        if not pdfium.FPDFText_GetLooseCharBox(self.raw, index, self._box_ref):
            return (0.0, 0.0, 0.0, 0.0)
        box = self._box
        left, right, bottom, top = box.left, box.right, box.bottom, box.top
        # Asked for every line: sorting two numbers by hand is a third of a call of min and max.
        if left > right:
            left, right = right, left
        if bottom > top:
            bottom, top = top, bottom
        return left, bottom, right, top

    def _bold(self, index: int) -> bool:
        if pdfium.FPDFText_GetFontWeight(self.raw, index) >= 600:
            return True
        pdfium.FPDFText_GetFontInfo(
            self.raw, index, self._name, len(self._name), ctypes.byref(self._flags)
        )
        return bool(_BOLD.search(self._name.value))


def _area(box: tuple[float, float, float, float]) -> bool:
    return box[2] > box[0] and box[3] > box[1]


def _turn(
    first: tuple[float, float, float, float], last: tuple[float, float, float, float], text: str
) -> int:
    """By how many degrees, counter-clockwise, the text is turned: 0, 90, 180 or 270.

    Vertical writing (CJK) goes as 270: downwards, the next line to the left.
    """
    along = (last[0] + last[2] - first[0] - first[2]) / 2
    up = (last[1] + last[3] - first[1] - first[3]) / 2
    if abs(along) >= abs(up):
        return 180 if along < 0 and not _RTL.search(text) else 0
    return 90 if up > 0 else 270


def _turned(box: tuple[float, float, float, float], turn: int) -> tuple[float, float, float, float]:
    """A box of the page as ``u0, u1, v0, v1`` of the reading direction."""
    x0, y0, x1, y1 = box
    if turn == 0:
        return x0, x1, -y1, -y0
    if turn == 180:
        return -x1, -x0, y0, y1
    if turn == 90:
        return y0, y1, x0, x1
    return -y1, -y0, -x1, -x0
