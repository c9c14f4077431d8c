"""Expressions of time in English, each a pattern and what reads it: from a match and the present
to a stretch of time. ``jarvis.retrieval.dates`` says how they are used."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import datetime, timedelta

Span = tuple[datetime, datetime]
"""From the first moment up to, not including, the second."""

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
} | {
    "a": 1,
    "an": 1,
    "the": 1,
    "a couple of": 2,
    "a couple": 2,
    "couple of": 2,
    "a few": 3,
    "few": 3,
    "several": 4,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "a hundred": 100,
}
_HOLIDAYS = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "new year": (12, 31, 2),
    "new year's": (12, 31, 2),
    "new year's eve": (12, 31, 1),
    "new year's day": (1, 1, 1),
    "halloween": (10, 31, 1),
    "valentine's day": (2, 14, 1),
}
"""Month, day, and how many days it lasts."""
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_M = "|".join(sorted(_MONTHS, key=len, reverse=True))
_D = "|".join(sorted(_DAYS, key=len, reverse=True))
_N = r"\d{1,4}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT = r"day|week|fortnight|month|year|decade"
_DAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
SIDE = "since|before|prior to|until|till|up to|after"
_PART = r"(?:(?:early|late|mid)[ -])?"
_H = "|".join(name.replace("'", "['’]") for name in sorted(_HOLIDAYS, key=len, reverse=True))
YEAR = r"(?:19|20)\d\d"
_ORD = r"(?:st|nd|rd|th)?"


def plain(text: str) -> str:
    """With single spaces."""
    return " ".join(text.split())


def midnight(now: datetime) -> datetime:
    """When today began."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> Span:
    return start, start + timedelta(days=count)


def _months(year: int, month: int, now: datetime, count: int = 1) -> Span:
    start = midnight(now).replace(year=year, month=month, day=1)
    return start, add_months(start, count)


def add_months(moment: datetime, count: int) -> datetime:
    """The same day so many months later, or the last one of that month."""
    index = moment.year * 12 + moment.month - 1 + count
    year, month = divmod(index, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _number(word: str) -> int:
    word = " ".join(word.lower().split())
    return int(word) if word.isdigit() else _NUMBERS[word]


def _latest_year(month: int, day: int, now: datetime) -> int:
    return now.year if (month, day) <= (now.month, now.day) else now.year - 1


def _holiday(match: re.Match[str], now: datetime) -> Span:
    month, day, count = _HOLIDAYS[plain(match["h"].lower().replace("’", "'"))]
    year = int(match["y"]) if match["y"] else _latest_year(month, day, now)
    relation = (match["rel"] or "").lower()
    if not match["y"] and relation == "next":
        year += 1
    if not match["y"] and relation == "this":
        year = now.year
    return _days(midnight(now).replace(year=year, month=month, day=day), count)


def _figures(match: re.Match[str], now: datetime) -> Span | None:
    """3.5.2026 is a day and a month; 13/5/2026 can be nothing else; 3/5/2026 is either."""
    day, month = int(match["d"]), int(match["m"])
    if match["sep"] == "/":
        if day <= 12 and month <= 12 and day != month:
            return None
        if month > 12:
            day, month = month, day
    return _days(midnight(now).replace(year=int(match["y"]), month=month, day=day))


def _day_of_month(match: re.Match[str], now: datetime) -> Span:
    day = int(match["d"])
    month = midnight(now).replace(day=1)
    if day > now.day:
        month = add_months(month, -1)
    return _days(month.replace(day=day))


def _iso(match: re.Match[str], now: datetime) -> Span:
    year, month, day = (int(part) for part in match.group("y", "m", "d"))
    return _days(midnight(now).replace(year=year, month=month, day=day))


def _date(match: re.Match[str], now: datetime) -> Span:
    month, day = _MONTHS[match["m"].lower()], int(match["d"])
    year = int(match["y"]) if match["y"] else _latest_year(month, day, now)
    return _days(midnight(now).replace(year=year, month=month, day=day))


def _month(match: re.Match[str], now: datetime) -> Span | None:
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


def _year(match: re.Match[str], now: datetime) -> Span:
    return _months(int(match["y"]), 1, now, 12)


def _decade(match: re.Match[str], now: datetime) -> Span:
    decade = int(match["d"])
    century = match["c"] or ("20" if 2000 + 10 * decade <= now.year else "19")
    return _months(int(century) * 100 + 10 * decade, 1, now, 120)


def _quarter(match: re.Match[str], now: datetime) -> Span:
    month = 3 * int(match["q"]) - 2
    year = int(match["y"]) if match["y"] else _latest_year(month, 1, now)
    return _months(year, month, now, 3)


def _season(match: re.Match[str], now: datetime) -> Span:
    month = _SEASONS[match["s"].lower()]
    if match["y"]:
        year = int(match["y"])
    else:
        year = _latest_year(month, 1, now)
        relation = (match["rel"] or "").lower()
        if relation == "next":
            year += 1
        elif relation == "last" and add_months(_months(year, month, now)[0], 3) > now:
            year -= 1
    return _months(year, month, now, 3)


def _ago(match: re.Match[str], now: datetime) -> Span:
    count, unit = _number(match["n"]), match["u"].lower()
    today = midnight(now)
    if unit == "day":
        return _days(today - timedelta(days=count))
    if unit in {"week", "fortnight"}:
        middle = today - timedelta(days=count * (7 if unit == "week" else 14))
        return middle - timedelta(days=3), middle + timedelta(days=4)
    if unit == "month":
        return _months(*_year_month(add_months(today, -count)), now)
    return _months(today.year - count * (10 if unit == "decade" else 1), 1, now, 12)


def _hours_ago(match: re.Match[str], now: datetime) -> Span:
    unit = timedelta(hours=1) if match["u"].lower() == "hour" else timedelta(minutes=1)
    return _days(midnight(now - _number(match["n"]) * unit))


def _half_ago(match: re.Match[str], now: datetime) -> Span:
    months = 6 + 12 * (_number(match["n"]) if match["n"] else 0)
    return _months(*_year_month(add_months(midnight(now), -months)), now)


def _ahead(match: re.Match[str], now: datetime) -> Span:
    count, unit, today = _number(match["n"]), match["u"].lower(), midnight(now)
    if unit == "day":
        return _days(today + timedelta(days=count))
    if unit in {"week", "fortnight"}:
        middle = today + timedelta(days=count * (7 if unit == "week" else 14))
        return middle - timedelta(days=3), middle + timedelta(days=4)
    if unit == "month":
        return _months(*_year_month(add_months(today, count)), now)
    return _months(today.year + count * (10 if unit == "decade" else 1), 1, now, 12)


def _before_last(match: re.Match[str], now: datetime) -> Span:
    start, end = _steps(match["u"].lower(), -2, now)
    return start, end


def _weekend(match: re.Match[str], now: datetime) -> Span:
    return _steps("weekend", 0 if now.weekday() >= 5 else -1, now)


def _year_month(moment: datetime) -> tuple[int, int]:
    return moment.year, moment.month


def _past(match: re.Match[str], now: datetime) -> Span:
    count = _number(match["n"]) if match["n"] else 1
    unit, today = match["u"].lower(), midnight(now)
    end = today + timedelta(days=1)
    if unit in {"day", "week", "fortnight"}:
        return end - timedelta(days=count * {"day": 1, "week": 7, "fortnight": 14}[unit] + 1), end
    return add_months(today, -count * {"month": 1, "year": 12, "decade": 120}[unit]), end


def _relative(match: re.Match[str], now: datetime) -> Span:
    step = {"last": -1, "previous": -1, "this": 0, "next": 1}[match["rel"].lower()]
    return _steps(match["u"].lower(), step, now)


def _steps(unit: str, step: int, now: datetime) -> Span:
    """The week, weekend, month, quarter or year so many from this one."""
    today = midnight(now)
    monday = today - timedelta(days=today.weekday())
    if unit == "week":
        return _days(monday + timedelta(days=7 * step), 7)
    if unit == "weekend":
        return _days(monday + timedelta(days=5 + 7 * step), 2)
    if unit == "month":
        return _months(*_year_month(add_months(today.replace(day=1), step)), now)
    if unit == "quarter":
        first = today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)
        return _months(*_year_month(add_months(first, 3 * step)), now, 3)
    return _months(today.year + step, 1, now, 12)


def _weekday(match: re.Match[str], now: datetime) -> Span:
    today, wanted = midnight(now), _DAYS[match["d"].lower()]
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


def _named(match: re.Match[str], now: datetime) -> Span:
    name = " ".join(match.group().lower().split())
    return _days(midnight(now) + timedelta(days=_NAMED[name]))


def _rule(
    pattern: str, read: Callable[[re.Match[str], datetime], Span | None]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Span | None]]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), read


RULES = (
    _rule(rf"\b(?P<y>{YEAR})([-/])(?P<m>\d\d)\2(?P<d>\d\d)\b", _iso),
    _rule(rf"\b(?P<d>\d\d?)(?P<sep>[./])(?P<m>\d\d?)(?P=sep)(?P<y>{YEAR})\b", _figures),
    _rule(rf"\b(?P<d>\d{{1,2}}){_ORD} (?:of )?(?P<m>{_M})\b\.?(?:,? (?P<y>{YEAR}))?", _date),
    _rule(rf"\b(?P<m>{_M})\.? (?P<d>\d{{1,2}}){_ORD}\b(?!:)(?:,? (?P<y>{YEAR}))?", _date),
    _rule(
        "|".join(rf"\b{name}\b" for name in sorted(_NAMED, key=len, reverse=True)),
        _named,
    ),
    _rule(
        rf"\b(?:(?P<rel>last|this|next) |(?:at|on|over|around|{SIDE}) )"
        rf"(?P<h>{_H})\b(?:,? (?P<y>{YEAR}))?",
        _holiday,
    ),
    _rule(rf"\b(?:half a year|(?P<n>{_N}) years? and a half) ago\b", _half_ago),
    _rule(rf"\b(?P<n>{_N}) (?P<u>{_UNIT})s? ago\b", _ago),
    _rule(rf"\b(?P<n>{_N}) (?P<u>hour|minute)s? ago\b", _hours_ago),
    _rule(rf"\b(?P<n>{_N}) (?P<u>{_UNIT})s? from (?:now|today)\b", _ahead),
    _rule(
        rf"\b(?:in|over|during|within|for) the (?:last|past) (?:(?P<n>{_N}) )?(?P<u>{_UNIT})s?\b",
        _past,
    ),
    _rule(rf"\b(?:last|past) (?P<n>{_N}) (?P<u>{_UNIT})s\b", _past),
    _rule(r"\b(?P<u>week|weekend|month|year) before last\b", _before_last),
    _rule(
        r"\b(?P<rel>last|previous|this|next) (?P<u>week|weekend|month|quarter|year)\b", _relative
    ),
    _rule(r"\b(?:on|at|over|during) the weekend\b", _weekend),
    _rule(rf"\b(?:(?P<rel>last|past|this|next) |(?:on|{SIDE}) )(?P<d>{_D})\b", _weekday),
    _rule(rf"(?P<rel>)\b(?P<d>{_DAY}) (?:morning|afternoon|evening|night)\b", _weekday),
    _rule(rf"\bQ(?P<q>[1-4])\b(?:,? (?:of )?(?P<y>{YEAR}))?", _quarter),
    _rule(
        rf"\b(?:(?P<rel>last|this|next) |(?:in|during|over|{SIDE}) (?:the )?(?:\w+ )?)"
        rf"(?P<s>{'|'.join(_SEASONS)})\b(?: (?:of )?(?P<y>{YEAR}))?",
        _season,
    ),
    # "May" and "March" are also other words: they need "in" or a year.
    _rule(
        rf"\b(?:(?P<rel>last|this|next) |(?:in|by|during|around|{SIDE}) {_PART}"
        r"|(?:week|weekend|start|beginning|middle|end) of )"
        rf"(?P<m>{_M})\b(?!-)(?:,? (?:of )?(?P<y>{YEAR}))?",
        _month,
    ),
    _rule(rf"(?P<rel>)\b(?P<m>{_M}),? (?P<y>{YEAR})\b", _month),
    _rule(rf"\b(?:in|during|of|from|around|{SIDE}) the (?P<c>19|20)?['’]?(?P<d>\d)0s\b", _decade),
    _rule(
        rf"\b(?:(?:in|during|of|year|around|{SIDE}) {_PART}|(?:early|late|mid)[ -])"
        rf"(?P<y>{YEAR})\b",
        _year,
    ),
    _rule(
        rf"\bin (?!the\b)(?P<n>{_N}) (?P<u>day|week|fortnight|month|year)s?(?:['’] time)?\b", _ahead
    ),
    _rule(r"\bon the (?P<d>\d{1,2})(?:st|nd|rd|th)\b(?=\W*$|[?.,!;])", _day_of_month),
)
"""Tried in this order: what says more comes first."""
