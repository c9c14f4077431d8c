"""Dates in English sentences: "next Friday" becomes a day, by the day on which it was said.

``resolve`` rewrites the relative expressions of a fact, and dates without their year ("on
Monday", "12 March"), and says from when to when it holds. What comes round every year or week
("birthday", "every Monday") is left as it is.
``parse`` reads one date that somebody typed. Weeks begin on Monday; months and years begin and
end in the zone of the day of reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from jarvis.errors import UsageError
from jarvis.services.extraction.spans import (
    MONTH,
    MONTHS,
    PARTS,
    SEASONS,
    WEEKDAYS,
    Span,
    day_span,
    month_number,
    month_span,
    part_of_day,
    season,
    shift,
    week,
    weekend,
    year_span,
)
from jarvis.services.extraction.yearless import YEARLY, with_year

_NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(),
        start=1,
    )
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A fact with absolute dates. ``valid_to`` is the first moment at which it is over."""

    text: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS.get(text, 1)


def _ago(count: int, unit: str, today: date) -> Span:
    count = min(count, 1500)
    if unit == "day":
        return day_span(today - timedelta(days=count))
    if unit == "week":
        return week(today - timedelta(weeks=count))
    if unit == "month":
        day = shift(today, months=-count)
        return month_span(day.year, day.month)
    return year_span(today.year - count)


def _ahead(count: int, unit: str, today: date) -> Span:
    count = min(count, 1500)
    if unit == "day":
        return day_span(today + timedelta(days=count))
    if unit == "week":
        return week(today + timedelta(weeks=count))
    if unit == "month":
        day = shift(today, months=count)
        return month_span(day.year, day.month)
    return year_span(today.year + count)


def _relative(which: str, unit: str, today: date) -> Span:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "week":
        return week(today + timedelta(weeks=step))
    if unit == "weekend":
        return weekend(today + timedelta(weeks=step))
    if unit == "month":
        day = shift(today, months=step)
        return month_span(day.year, day.month)
    if unit == "year":
        return year_span(today.year + step)
    if unit in SEASONS:
        month = SEASONS[unit]
        year = today.year
        if which == "last" and (today.month < month + 3 or unit == "winter"):
            year -= 1
        elif which == "next" and today.month >= month:
            year += 1
        return season(unit, year)
    if unit in WEEKDAYS:
        return day_span(_weekday(which, WEEKDAYS.index(unit), today))
    month = MONTHS.index(unit) + 1
    year = today.year
    if which == "last" and month >= today.month:
        year -= 1
    elif which == "next" and month <= today.month:
        year += 1
    return month_span(year, month)


def _weekday(which: str, weekday: int, today: date) -> date:
    if which == "last":
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    ahead = (weekday - today.weekday()) % 7
    if which == "this":
        return today + timedelta(days=ahead)
    # "next Friday", said on a Monday, is mostly the coming one; said on a Friday, in a week.
    return today + timedelta(days=ahead or 7)


_N = r"(?P<n>\d{1,4}|a couple of|couple of|" + "|".join(_NUMBERS) + r")"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_NAMES = "|".join([*WEEKDAYS, *SEASONS, *MONTHS, "weekend", "week", "month", "year"])

_Maker = Callable[["re.Match[str]", date], Span]
_RELATIVE: tuple[tuple[re.Pattern[str], _Maker], ...] = tuple(
    (re.compile(rf"\b(?:on |in |during )?(?:{pattern})\b", re.IGNORECASE), maker)
    for pattern, maker in (
        (r"the day after tomorrow", lambda m, t: day_span(t + timedelta(days=2))),
        (r"the day before yesterday", lambda m, t: day_span(t - timedelta(days=2))),
        (
            rf"tomorrow (?P<part>{PARTS})",
            lambda m, t: part_of_day(t + timedelta(days=1), m["part"].lower()),
        ),
        (
            rf"yesterday (?P<part>{PARTS})",
            lambda m, t: part_of_day(t - timedelta(days=1), m["part"].lower()),
        ),
        (r"yesterday|last night", lambda m, t: day_span(t - timedelta(days=1))),
        (r"tomorrow", lambda m, t: day_span(t + timedelta(days=1))),
        (r"today|tonight", lambda m, t: day_span(t)),
        (rf"{_N} {_UNIT} ago", lambda m, t: _ago(_count(m["n"].lower()), m["unit"].lower(), t)),
        (
            rf"in {_N} {_UNIT}(?: from now)?(?! time)",
            lambda m, t: _ahead(_count(m["n"].lower()), m["unit"].lower(), t),
        ),
        (
            rf"(?P<which>last|this|next) (?P<what>{_NAMES})",
            lambda m, t: _relative(m["which"].lower(), m["what"].lower(), t),
        ),
    )
)

_YEAR = r"(?P<y>(?:19|20)\d\d)"
_ABSOLUTE: tuple[tuple[re.Pattern[str], _Maker], ...] = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), maker)
    for pattern, maker in (
        (r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)", lambda m, t: _safe(m["y"], m["m"], m["d"])),
        (
            rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m>{MONTH}),? (?P<y>\d{{4}})",
            lambda m, t: _safe(m["y"], m["m"], m["d"]),
        ),
        (
            rf"(?P<m>{MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})",
            lambda m, t: _safe(m["y"], m["m"], m["d"]),
        ),
        (
            rf"(?P<m>{MONTH}) (?P<y>\d{{4}})",
            lambda m, t: month_span(int(m["y"]), month_number(m["m"])),
        ),
        (
            rf"(?P<s>{'|'.join(SEASONS)}) (?P<y>(?:19|20)\d\d)",
            lambda m, t: season(m["s"].lower(), int(m["y"])),
        ),
        (_YEAR, lambda m, t: year_span(int(m["y"]))),
    )
)


def _safe(year: str, month: str, day: str) -> Span:
    number = int(month) if month.isdecimal() else month_number(month)
    try:
        return day_span(date(int(year), number, int(day)))
    except (ValueError, OverflowError):
        return year_span(int(year))


_FOR = re.compile(rf"\bfor (?:the (?:last|past) )?{_N} (?P<unit>month|year)s?\b", re.IGNORECASE)
_LASTED = re.compile(r"\b(?:has|have) (?:\w+ )?(?:been|lived|worked|had|played|known|owned)\b")
_ENDS = re.compile(r"\b(?:until|till|through|to)\s*$", re.IGNORECASE)
_BEGINS = re.compile(r"\b(?:since|from|starting|as of)\s*(?:on |in )?$", re.IGNORECASE)
_BY = re.compile(r"\b(?:by|before|no later than)\s*(?:the end of )?$", re.IGNORECASE)
"""A deadline: what has to be done by then does not begin then."""
_AFTER_PREPOSITION = re.compile(
    r"\b(?:until|till|through|to|since|from|starting|as of|by|before|after|of|around|during)\s*$",
    re.IGNORECASE,
)
_DATES_YEAR = re.compile(
    r"\b(?:in|since|from|to|until|till|through|by|before|after|of|around|during|and|year|early|late)"
    r"\s*$|[-–/]$|^$",
    re.IGNORECASE,
)
"""Before a number that is a year: "a blue 2015 Golf" is none."""


def resolve(fact: str, said_at: datetime, *, max_words: int = 12) -> Resolved:
    """``fact`` with its relative dates made absolute, and when it holds.

    Args:
        fact: one clause in English.
        said_at: when it was said, with the speaker's zone.
        max_words: longer facts get dates in figures.
    """
    today = said_at.date()
    text = fact
    spans: list[tuple[int, Span]] = []
    try:
        if (match := _FOR.search(text)) and _LASTED.search(text):
            span = _ago(_count(match["n"].lower()), match["unit"].lower(), today)
            since = "since " + span.words.removeprefix("in ")
            text = text[: match.start()] + since + text[match.end() :]
        for pattern, maker in _RELATIVE:
            match = pattern.search(text)
            if match is None:
                continue
            span = maker(match, today)
            before, after = text[: match.start()], text[match.end() :]
            words = span.words
            if len((before + words + after).split()) > max_words:
                words = span.short
            if _AFTER_PREPOSITION.search(before):
                words = words.removeprefix("on ").removeprefix("in ")
            text = before + words + after
            break
        if not YEARLY.search(text):
            if text == fact:
                text = with_year(text, today, max_words)
            spans = _absolute(text, today)
    except (ValueError, OverflowError):
        return Resolved(fact)
    start = end = None
    for number, (position, span) in enumerate(spans):
        last = number == len(spans) - 1
        before = text[:position]
        if _ENDS.search(before):
            end = _midnight(span.end, said_at)
        elif _BY.search(before):
            continue
        elif _BEGINS.search(before) or last or start is None:
            start = _midnight(span.start, said_at)
    if start is not None and end is not None and end <= start:
        end = None
    return Resolved(text, start, end)


def _absolute(text: str, today: date) -> list[tuple[int, Span]]:
    found: list[tuple[int, int, Span]] = []
    for pattern, maker in _ABSOLUTE:
        for match in pattern.finditer(text):
            if maker is _ABSOLUTE[-1][1] and not _DATES_YEAR.search(text[: match.start()]):
                continue
            if all(match.end() <= s or match.start() >= e for s, e, _ in found):
                found.append((match.start(), match.end(), maker(match, today)))
    return [(start, span) for start, _, span in sorted(found, key=lambda item: item[0])]


def _midnight(day: date, like: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=like.tzinfo)


def parse(text: str, now: datetime) -> datetime:
    """Reads a date or time that somebody typed: ISO 8601, "3 May 2026", "last week", "May 2026".

    Returns:
        The moment, or the first moment of the day, week, month or year; in the zone of ``now``
        where none is given.

    Raises:
        UsageError: it is no date.
    """
    words = text.strip()
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        pass
    else:
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    if words.casefold() == "now":
        return now
    try:
        for pattern, maker in (*_RELATIVE, *_ABSOLUTE):
            match = pattern.fullmatch(words)
            if match is not None:
                return _midnight(maker(match, now.date()).start, now)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{text!r} is no date", "write 2026-05-01, 2026-05-01T18:30 or 3 May 2026")
