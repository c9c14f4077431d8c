"""The numbers that Word writes before paragraphs, and the styles that make headings.

ECMA-376 part 1, 17.9 (numbering) and 17.7 (styles).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"heading\s*([1-9])$", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


class Styles:
    """The paragraph styles of a document."""

    def __init__(self, tree: Any) -> None:
        self._levels: dict[str, int] = {}
        self._numbers: dict[str, tuple[str, int]] = {}
        self._parents: dict[str, str] = {}
        for style in () if tree is None else tree.iter(f"{_W}style"):
            identity = style.get(f"{_W}styleId", "")
            self._parents[identity] = _value(style.find(f"{_W}basedOn"))
            name = _value(style.find(f"{_W}name"))
            match = _HEADING.match(name)
            outline = _value(style.find(f"{_W}pPr/{_W}outlineLvl"))
            if match:
                self._levels[identity] = int(match[1])
            elif name.lower() == "title":
                self._levels[identity] = 1
            elif outline.isdigit() and int(outline) < 9:
                self._levels[identity] = int(outline) + 1
            number = _value(style.find(f"{_W}pPr/{_W}numPr/{_W}numId"))
            level = _value(style.find(f"{_W}pPr/{_W}numPr/{_W}ilvl"))
            if number:
                self._numbers[identity] = (number, int(level) if level.isdigit() else -1)

    def heading_level(self, paragraph: Any) -> int:
        """1 to 9 for a heading, 0 for anything else."""
        outline = _value(paragraph.find(f"{_W}pPr/{_W}outlineLvl"))
        if outline.isdigit():
            return int(outline) + 1 if int(outline) < 9 else 0
        for style in self.chain(paragraph):
            if style in self._levels:
                return self._levels[style]
        return 0

    def numbering(self, paragraph: Any) -> tuple[str, int, str] | None:
        """The list, level and style that the paragraph's style puts it into."""
        for style in self.chain(paragraph):
            if style in self._numbers:
                return (*self._numbers[style], style)
        return None

    def chain(self, paragraph: Any) -> list[str]:
        """The paragraph's style and those that it is based on."""
        style = _value(paragraph.find(f"{_W}pPr/{_W}pStyle"))
        found: list[str] = []
        while style and style not in found and len(found) < 20:
            found.append(style)
            style = self._parents.get(style, "")
        return found


@dataclass(slots=True)
class _Level:
    start: int = 1
    form: str = "decimal"
    text: str = ""
    style: str = ""


class Numbering:
    """Counts the numbered paragraphs of a document as Word does."""

    def __init__(self, tree: Any, styles: Styles) -> None:
        self._styles = styles
        self._kinds: dict[str, dict[int, _Level]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        if tree is None:
            return
        for kind in tree.iter(f"{_W}abstractNum"):
            levels = {}
            for level in kind.iter(f"{_W}lvl"):
                start = _value(level.find(f"{_W}start"))
                levels[_int(level.get(f"{_W}ilvl"))] = _Level(
                    int(start) if start.isdigit() else 1,
                    _value(level.find(f"{_W}numFmt")) or "decimal",
                    _value(level.find(f"{_W}lvlText")),
                    _value(level.find(f"{_W}pStyle")),
                )
            self._kinds[kind.get(f"{_W}abstractNumId", "")] = levels
        for item in tree.iter(f"{_W}num"):
            identity = item.get(f"{_W}numId", "")
            self._lists[identity] = _value(item.find(f"{_W}abstractNumId"))
            self._starts[identity] = {
                _int(override.get(f"{_W}ilvl")): _int(_value(override.find(f"{_W}startOverride")))
                for override in item.iter(f"{_W}lvlOverride")
                if override.find(f"{_W}startOverride") is not None
            }

    def label(self, paragraph: Any) -> str:
        """Counts ``paragraph`` and returns what Word writes before it ("7.", "(a)", "-")."""
        number = _value(paragraph.find(f"{_W}pPr/{_W}numPr/{_W}numId"))
        place = _int(_value(paragraph.find(f"{_W}pPr/{_W}numPr/{_W}ilvl")))
        if not number:
            inherited = self._styles.numbering(paragraph)
            if inherited is None:
                return ""
            number, level, style = inherited
            place = level if level >= 0 else self._level_of(number, style)
        kind = self._lists.get(number)
        if number == "0" or kind is None:
            return ""
        levels = self._kinds.get(kind, {})
        # Lists of one kind go on counting, unless one says where it starts.
        counts = self._counts.setdefault(kind, {})
        if number not in self._begun:
            self._begun.add(number)
            for level, start in self._starts.get(number, {}).items():
                counts[level] = start - 1
        own = levels.get(place, _Level())
        counts[place] = counts.get(place, own.start - 1) + 1
        for deeper in [level for level in counts if level > place]:
            del counts[deeper]
        if own.form == "bullet":
            return "-"
        if own.form == "none":
            return ""

        def written(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            shape = levels.get(level, _Level())
            return _written(counts.get(level, shape.start), shape.form)

        return _PLACE.sub(written, own.text).strip()

    def _level_of(self, number: str, style: str) -> int:
        levels = self._kinds.get(self._lists.get(number, ""), {})
        return next((place for place, level in levels.items() if level.style == style), 0)


def _written(number: int, form: str) -> str:
    if form in {"lowerLetter", "upperLetter"}:
        # a … z, aa, bb, … (17.18.59): the letter is repeated, not carried.
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1) if number > 0 else ""
        return letter.upper() if form == "upperLetter" else letter
    if form in {"lowerRoman", "upperRoman"}:
        text = ""
        for value, sign in _ROMAN:
            while number >= value and len(text) < 30:
                text, number = text + sign, number - value
        return text.upper() if form == "upperRoman" else text
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _value(element: Any) -> str:
    return "" if element is None else str(element.get(f"{_W}val", ""))


def _int(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
