"""Stretches of days (a day, a week, a season) with the words for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = (
    "january february march april may june july august september october november december"
).split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


@dataclass(frozen=True, slots=True)
class Span:
    """Days from ``start`` until before ``end``, with words for them, long and short."""

    start: date
    end: date
    words: str
    short: str


def day_span(day: date) -> Span:
    return Span(day, day + timedelta(days=1), f"on {day.day} {day:%B %Y}", f"on {day.isoformat()}")


def part_of_day(day: date, part: str) -> Span:
    words = f"on the {part} of {day.day} {day:%B %Y}"
    return Span(day, day + timedelta(days=1), words, f"on {day.isoformat()}")


def weekend(day: date) -> Span:
    saturday = day - timedelta(days=day.weekday() - 5)
    words = f"on the weekend of {saturday.day} {saturday:%B %Y}"
    return Span(saturday, saturday + timedelta(days=2), words, f"on {saturday.isoformat()}")


def week(day: date) -> Span:
    monday = day - timedelta(days=day.weekday())
    words = f"in the week of {monday.day} {monday:%B %Y}"
    return Span(monday, monday + timedelta(days=7), words, f"in {monday:%G-W%V}")


def month_span(year: int, month: int) -> Span:
    start = shift(date(year, 1, 1), months=month - 1)
    return Span(start, shift(start, months=1), f"in {start:%B %Y}", f"in {start:%Y-%m}")


def year_span(year: int) -> Span:
    year = min(max(year, 1), 9998)
    return Span(date(year, 1, 1), date(year + 1, 1, 1), f"in {year}", f"in {year}")


def season(name: str, year: int) -> Span:
    start = date(year, SEASONS[name], 1)
    return Span(start, shift(start, months=3), f"in {name} {year}", f"in {name} {year}")


def shift(day: date, *, months: int = 0) -> date:
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    year = min(max(year, 1), 9998)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


_SHORT = {name[:3]: name for name in MONTHS} | {"sept": "september"}
MONTH = "|".join([*MONTHS, *sorted(_SHORT, key=len, reverse=True)])
PARTS = "morning|afternoon|evening|night"


def month_number(name: str) -> int:
    low = name.lower()
    return MONTHS.index(_SHORT.get(low, low)) + 1
