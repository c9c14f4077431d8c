"""Time in an English question, by rules: "in May", "last week", "two days ago", "on 3 May 2026".

Pure: text and the present in, a period out. Periods are half-open and in the time zone of
``now``. A month or weekday without a year is the latest one that has begun, unless the words say
"next". "Since", "before", "until" and "after" open a period on one side, "between … and …" and
"from … to …" join two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from jarvis.retrieval.date_rules import RULES, SIDE, YEAR, Span, add_months, midnight, plain


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: from ``start`` up to, not including, ``end``. ``text`` names it."""

    start: datetime
    end: datetime
    text: str

    def contains(self, moment: datetime) -> bool:
        """Whether ``moment`` lies in it."""
        return self.start <= moment < self.end

    def overlaps(self, start: datetime, end: datetime | None) -> bool:
        """Whether something that lasted from ``start`` to ``end`` (None: still) touches it."""
        return start < self.end and (end is None or end > self.start)

    def describe(self) -> str:
        """For a note: the words of the question, and the days they were read as."""
        last = self.end - timedelta(microseconds=1)
        if self.start.year == _EVER:
            return f"{self.text!r} (up to {last:%Y-%m-%d})"
        days = f"{self.start:%Y-%m-%d}"
        if last.date() != self.start.date():
            days += f" to {last:%Y-%m-%d}"
        return f"{self.text!r} ({days})"


_EVER = 1900
"""The year in which a period begins that has no beginning."""

_TALK = re.compile(
    r"\b(?:sa(?:y|id)|tell|told|talk(?:ed|ing)?|mention(?:ed)?|discuss(?:ed)?|ask(?:ed)?|"
    r"chat(?:ted)?|conversations?|spoke|speak|wrote)\b",
    re.IGNORECASE,
)


def asks_about_talk(text: str) -> bool:
    """Whether the question is about what was said, not about what happened."""
    return _TALK.search(text) is not None


def find(text: str, now: datetime) -> Period | None:
    """The first expression of time in ``text``, or None.

    Args:
        text: an English sentence; only its first 2,000 characters are read.
        now: aware; "today" is its day in its zone.
    """
    text = text[:2_000]
    for match in _BETWEEN.finditer(text):
        span = _between(match["first"] or match["first_"], match["second"], now)
        if span is not None:
            return Period(*span, text=plain(match.group()))
    found = _match(text, now)
    if found is None:
        return None
    match, span = found
    side = _BEFORE.search(text[: match.start()]) or _BEGINS.match(match.group())
    if side is None:
        return Period(*span, text=plain(match.group()))
    begins = min(match.start(), side.start()) if side.re is _BEFORE else match.start()
    word = plain(side["side"]).lower()
    return Period(*_opened(word, span, now), text=plain(text[begins : match.end()]))


def _match(text: str, now: datetime) -> tuple[re.Match[str], Span] | None:
    for pattern, read in RULES:
        for match in pattern.finditer(text):
            try:
                span = read(match, now)
            except (ValueError, OverflowError):
                continue  # the 31st of June, a million years ago
            if span is not None:
                return match, span
    return None


def _opened(word: str, span: Span, now: datetime) -> Span:
    """A period that a word like "since" opens on one side."""
    start, end = span
    tomorrow = midnight(now) + timedelta(days=1)
    ever = midnight(now).replace(year=_EVER, month=1, day=1)
    if word == "since":
        return start, max(end, tomorrow)
    if word == "after":
        return end, tomorrow if end < tomorrow else end + timedelta(days=36_525)
    return min(ever, start), start if word in {"before", "prior to"} else end


def _between(first: str, second: str, now: datetime) -> Span | None:
    """From the start of one period to the end of another; a year that only the second names is
    the first one's, too."""
    year = re.search(rf"\b{YEAR}\b", second)
    if year and not re.search(rf"\b{YEAR}\b", first):
        first = f"{first} {year.group()}"
    spans = []
    for part in (first, second):
        found = _match(part, now) or _match(f"in {part}", now)
        if found is None:
            return None
        spans.append(found[1])
    (start, _), (later, end) = spans
    if start > later:  # "from November to March", in March
        start = add_months(start, -12)
    return (start, end) if start < end else None


_BETWEEN = re.compile(
    r"\b(?:between\s+(?P<first>\w.{2,30}?)\s+and|from\s+(?P<first_>\w.{2,30}?)\s+(?:to|until|till))"
    r"\s+(?P<second>\w.{2,40})",
    re.IGNORECASE,
)
_BEFORE = re.compile(rf"\b(?P<side>{SIDE})\s+(?:(?:the|in|on|at)\s+)*$", re.IGNORECASE)
_BEGINS = re.compile(rf"(?P<side>{SIDE})\b", re.IGNORECASE)
