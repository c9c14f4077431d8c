"""Time in an English question, by rules: "in May", "last week", "two days ago", "on 3 May 2026".

Pure: text and the present in, a period out. Periods are half-open and in the time zone of
``now``. A month or weekday without a year is the latest one that has begun, unless the words say
"next".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


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
        days = f"{self.start:%Y-%m-%d}"
        if last.date() != self.start.date():
            days += f" to {last:%Y-%m-%d}"
        return f"{self.text!r} ({days})"


_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}
_DAYS = {
    name.lower(): number
    for names in (calendar.day_name, calendar.day_abbr)
    for number, name in enumerate(names)
} | {"tues": 1, "thur": 3, "thurs": 3}
_NUMBERS = {
    word: number
    for number, word in enumerate(
        """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen twenty""".split(),
        1,
    )
} | {"a": 1, "an": 1, "the": 1, "a couple of": 2, "couple of": 2, "a few": 3, "several": 4}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_M = "|".join(sorted(_MONTHS, key=len, reverse=True))
_D = "|".join(sorted(_DAYS, key=len, reverse=True))
_N = r"\d{1,4}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT = r"day|week|fortnight|month|year"
_YEAR = r"(?:19|20)\d\d"
_ORD = r"(?:st|nd|rd|th)?"

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
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            try:
                span = read(match, now)
            except (ValueError, OverflowError):
                continue  # the 31st of June, a million years ago
            if span is not None:
                return Period(*span, text=" ".join(match.group().split()))
    return None


_Span = tuple[datetime, datetime]


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> _Span:
    return start, start + timedelta(days=count)


def _months(year: int, month: int, now: datetime, count: int = 1) -> _Span:
    start = _midnight(now).replace(year=year, month=month, day=1)
    return start, _add_months(start, count)


def _add_months(moment: datetime, count: int) -> datetime:
    index = moment.year * 12 + moment.month - 1 + count
    year, month = divmod(index, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _number(word: str) -> int:
    word = " ".join(word.lower().split())
    return int(word) if word.isdigit() else _NUMBERS[word]


def _latest_year(month: int, day: int, now: datetime) -> int:
    return now.year if (month, day) <= (now.month, now.day) else now.year - 1


def _iso(match: re.Match[str], now: datetime) -> _Span:
    year, month, day = (int(part) for part in match.group("y", "m", "d"))
    return _days(_midnight(now).replace(year=year, month=month, day=day))


def _date(match: re.Match[str], now: datetime) -> _Span:
    month, day = _MONTHS[match["m"].lower()], int(match["d"])
    year = int(match["y"]) if match["y"] else _latest_year(month, day, now)
    return _days(_midnight(now).replace(year=year, month=month, day=day))


def _month(match: re.Match[str], now: datetime) -> _Span | None:
    month = _MONTHS[match["m"].lower()]
    relation = (match["rel"] or "").lower()
    if match["y"]:
        year = int(match["y"])
    elif relation == "next":
        year = now.year if month > now.month else now.year + 1
    elif relation == "last":
        year = now.year if month < now.month else now.year - 1
    else:
        year = _latest_year(month, 1, now)
    return _months(year, month, now)


def _year(match: re.Match[str], now: datetime) -> _Span:
    return _months(int(match["y"]), 1, now, 12)


def _season(match: re.Match[str], now: datetime) -> _Span:
    month = _SEASONS[match["s"].lower()]
    if match["y"]:
        year = int(match["y"])
    else:
        year = _latest_year(month, 1, now)
        relation = (match["rel"] or "").lower()
        if relation == "next":
            year += 1
        elif relation == "last" and _add_months(_months(year, month, now)[0], 3) > now:
            year -= 1
    return _months(year, month, now, 3)


def _ago(match: re.Match[str], now: datetime) -> _Span:
    count, unit = _number(match["n"]), match["u"].lower()
    today = _midnight(now)
    if unit == "day":
        return _days(today - timedelta(days=count))
    if unit in {"week", "fortnight"}:
        middle = today - timedelta(days=count * (7 if unit == "week" else 14))
        return middle - timedelta(days=3), middle + timedelta(days=4)
    if unit == "month":
        return _months(*_year_month(_add_months(today, -count)), now)
    return _months(today.year - count, 1, now, 12)


def _year_month(moment: datetime) -> tuple[int, int]:
    return moment.year, moment.month


def _past(match: re.Match[str], now: datetime) -> _Span:
    count = _number(match["n"]) if match["n"] else 1
    unit, today = match["u"].lower(), _midnight(now)
    end = today + timedelta(days=1)
    if unit in {"day", "week", "fortnight"}:
        return end - timedelta(days=count * {"day": 1, "week": 7, "fortnight": 14}[unit] + 1), end
    return _add_months(today, -count * (1 if unit == "month" else 12)), end


def _relative(match: re.Match[str], now: datetime) -> _Span:
    step = {"last": -1, "previous": -1, "this": 0, "next": 1}[match["rel"].lower()]
    unit, today = match["u"].lower(), _midnight(now)
    monday = today - timedelta(days=today.weekday())
    if unit == "week":
        return _days(monday + timedelta(days=7 * step), 7)
    if unit == "weekend":
        return _days(monday + timedelta(days=5 + 7 * step), 2)
    if unit == "month":
        return _months(*_year_month(_add_months(today.replace(day=1), step)), now)
    return _months(today.year + step, 1, now, 12)


def _weekday(match: re.Match[str], now: datetime) -> _Span:
    today, wanted = _midnight(now), _DAYS[match["d"].lower()]
    if (match["rel"] or "").lower() == "next":
        return _days(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1))
    back = (today.weekday() - wanted) % 7
    if back == 0 and (match["rel"] or "").lower() in {"last", "past"}:
        back = 7
    return _days(today - timedelta(days=back))


_NAMED = {
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "yesterday": -1,
    "last night": -1,
    "the day before yesterday": -2,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}


def _named(match: re.Match[str], now: datetime) -> _Span:
    name = " ".join(match.group().lower().split())
    return _days(_midnight(now) + timedelta(days=_NAMED[name]))


def _rule(
    pattern: str, read: Callable[[re.Match[str], datetime], _Span | None]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Span | None]]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), read


_RULES = (
    _rule(rf"\b(?P<y>{_YEAR})-(?P<m>\d\d)-(?P<d>\d\d)\b", _iso),
    _rule(rf"\b(?P<d>\d{{1,2}}){_ORD} (?:of )?(?P<m>{_M})\b\.?(?:,? (?P<y>{_YEAR}))?", _date),
    _rule(rf"\b(?P<m>{_M})\.? (?P<d>\d{{1,2}}){_ORD}\b(?!:)(?:,? (?P<y>{_YEAR}))?", _date),
    _rule(
        "|".join(rf"\b{name}\b" for name in sorted(_NAMED, key=len, reverse=True)),
        _named,
    ),
    _rule(rf"\b(?P<n>{_N}) (?P<u>{_UNIT})s? ago\b", _ago),
    _rule(
        rf"\b(?:in|over|during|within|for) the (?:last|past) (?:(?P<n>{_N}) )?(?P<u>{_UNIT})s?\b",
        _past,
    ),
    _rule(rf"\b(?:last|past) (?P<n>{_N}) (?P<u>{_UNIT})s\b", _past),
    _rule(r"\b(?P<rel>last|previous|this|next) (?P<u>week|weekend|month|year)\b", _relative),
    _rule(rf"\b(?:(?P<rel>last|past|this|next) |on )(?P<d>{_D})\b", _weekday),
    _rule(
        r"\b(?:(?P<rel>last|this|next) |(?:in|during|over) (?:the )?(?:\w+ )?)"
        rf"(?P<s>{'|'.join(_SEASONS)})\b(?: (?:of )?(?P<y>{_YEAR}))?",
        _season,
    ),
    # "May" and "March" are also other words: they need "in" or a year.
    _rule(
        r"\b(?:(?P<rel>last|this|next) |(?:in|during|since|until|by|around) (?:early |late |mid)?)"
        rf"(?P<m>{_M})\b(?!-)(?:,? (?:of )?(?P<y>{_YEAR}))?",
        _month,
    ),
    _rule(rf"(?P<rel>)\b(?P<m>{_M}),? (?P<y>{_YEAR})\b", _month),
    _rule(rf"\b(?:in|during|since|of|year) (?P<y>{_YEAR})\b", _year),
)
"""Tried in this order: what says more comes first."""
