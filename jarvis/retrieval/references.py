"""Numbered parts of documents: "Clause 7", "Section 3.2", "Article IV", "§ 5".

By its words "clause 7" is two of the commonest terms of a contract. A reference is one term of its
own, so that the question finds the clause and not every page with a seven on it. What begins a
line counts more than a mention: there the part itself stands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

BEGINS = 4.0
"""Weight of a reference that begins a line, against 1 for a mention."""

_KINDS = (
    "annex|appendix|article|chapter|clause|exercise|exhibit|figure|item|lesson|paragraph|part|"
    "question|rule|schedule|section|sec|art|step|table|unit|"
    "abschnitt|absatz|anhang|artikel|kapitel|klausel|teil|ziffer|"
    "artículo|capítulo|cláusula|sección|chapitre|annexe"
)
# Numbers are rarer than words: they are looked for first, then what stands before each.
_NUMBER = re.compile(r"(?:\d{1,4}(?:\.\d{1,3})*|[IVXLC]{1,7}\b)(?![\w%€$£])")
_BEFORE = re.compile(rf"(?P<kind>\b(?i:{_KINDS})\.?|§§?)\s*(?:(?i:no|nr)\.?\s*)?\Z")
_MAY_END = re.compile(r"[\s.§]|[^\W\d_]")
_REACH = 40
"""Characters before a number among which its kind stands."""
_BEGINS = re.compile(
    r"^[ \t#*|>-]*(?P<number>\d{1,3}(?:\.\d{1,3})*)[.)]?[ \t]+[^\W\d_]", re.MULTILINE
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def written(text: str) -> dict[str, float]:
    """The references in a passage, with their weights."""
    found: defaultdict[str, float] = defaultdict(float)
    for start, kind, written_number in _named(text):
        number = _plain(written_number)
        before = text[text.rfind("\n", 0, start) + 1 : start]
        inside = any(char.isalnum() for char in before.rpartition(" > ")[2])
        # A wrapped line may begin with "clause 8" in the middle of a sentence.
        weight = 1.0 if inside or kind[0].islower() else BEGINS
        found[f"#{number}"] += weight
        found[f"{_kind(kind)}#{number}"] += weight
    for match in _BEGINS.finditer(text):
        found[f"#{_plain(match['number'])}"] += BEGINS
    return dict(found)


def asked(text: str) -> list[str]:
    """The references in a question, each once."""
    found: dict[str, None] = {}
    for _, kind, written_number in _named(text):
        number = _plain(written_number)
        found[f"{_kind(kind)}#{number}"] = None
        found[f"#{number}"] = None
    return list(found)


def _named(text: str) -> Iterator[tuple[int, str, str]]:
    """Where each reference begins, its kind and its number, as they stand there."""
    for match in _NUMBER.finditer(text):
        place = match.start()
        if not place or not _MAY_END.match(text, place - 1):
            continue
        first = max(0, place - _REACH)
        before = _BEFORE.search(text[first:place])
        # "Part I" is a reference, "the part I like" is not.
        if before and (match[0][0].isdigit() or not before["kind"][0].islower()):
            yield first + before.start(), before["kind"], match[0]


def _kind(word: str) -> str:
    word = word.casefold().rstrip(".")
    return {"sec": "section", "art": "article", "§§": "§"}.get(word, word)


def _plain(number: str) -> str:
    """Digits as they stand; a Roman number in digits."""
    if number[0].isdigit():
        return number
    values = [_ROMAN[letter] for letter in number.upper()]
    total = sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
    return str(total)
