"""Dates and times: now, zones, differences, sums, and the calendar of a month."""

from __future__ import annotations

import calendar
import datetime as dt
import difflib
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from jarvis.tools.protocol import Effect, ToolContext, tool
from jarvis.tools.schema import ToolError

_OFFSET = re.compile(r"^(?:utc|gmt)?\s*([+-])(\d{1,2})(?::?(\d{2}))?$", re.I)
_AMOUNT = re.compile(r"([+-]?\s*\d+)\s*([a-z]+)", re.I)
_TIME = re.compile(r"(?:^|[T\s])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([ap]m)?$", re.I)
_FORMATS = ("%Y-%m-%d", "%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y", "%d.%m.%Y", "%Y-%m")
_ABBREVIATIONS = {
    "z": "UTC",
    "est": "America/New_York",
    "edt": "America/New_York",
    "cst": "America/Chicago",
    "cdt": "America/Chicago",
    "mst": "America/Denver",
    "mdt": "America/Denver",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "bst": "Europe/London",
    "cest": "Europe/Berlin",
    "jst": "Asia/Tokyo",
    "ist": "Asia/Kolkata",
}
_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")


@dataclass(frozen=True, slots=True)
class _When:
    """A moment as it was said; ``timed``: with a time of day."""

    moment: dt.datetime
    timed: bool


@tool(
    Effect.PURE,
    name="datetime",
    when=r"\btime (?:is it|zone|in)\b|\bwhat time\b|\btimezone|o'clock|\bweekday\b|day of the week"
    r"|\b(?:days?|weeks?|months?|hours?|minutes?|years?)\b.*\b(?:until|till|since|between|from|after"
    r"|before|ago)\b|\b(?:what|which) (?:day|date|week)\b|\bleap year|\bcalendar\b",
)
def clock(
    context: ToolContext,
    action: Literal["now", "convert", "difference", "add", "calendar"] = "now",
    when: str = "now",
    to: str = "",
    zone: str = "",
) -> str:
    """Tells the time anywhere, converts zones, counts days between dates, adds to a date.

    Args:
        when: e.g. 2026-12-24 18:30, today
        to: another date (difference), 3 weeks (add), a zone (convert)
        zone: e.g. Europe/Oslo, Tokyo
    """
    here = find_zone(zone) if zone else context.now.tzinfo or dt.UTC
    now = context.now.astimezone(here)
    start = parse(when or "now", now)
    if action == "now" and to and {to.casefold(), when.casefold()} != {"now"}:
        # Small models leave the action out; it shows in what kind of thing ``to`` is.
        action = _action(to)
    actions: Mapping[str, Callable[[], str]] = {
        "now": lambda: _say(now),
        "convert": lambda: _convert(start, to, context.now),
        "difference": lambda: _difference(start, parse(to or "now", now)),
        "add": lambda: _add(start, to),
        "calendar": lambda: _calendar(start.moment),
    }
    try:
        return actions[action]()
    except OverflowError:
        raise ToolError("that date is outside the years 1 to 9999") from None


def _action(to: str) -> Literal["convert", "difference", "add"]:
    """What is wanted with ``to``: a span is added, a zone converted to, a date counted to."""
    if any(word.casefold().rstrip("s") in _UNITS for _, word in _AMOUNT.findall(to)):
        return "add"
    try:
        find_zone(to)
    except ToolError:
        return "difference"
    return "convert"


def find_zone(name: str) -> dt.tzinfo:
    """The zone of an IANA name, a city, an abbreviation or an offset.

    Raises:
        ToolError: unknown; the message names near ones.
    """
    wanted = name.strip()
    offset = _OFFSET.match(wanted)
    if offset:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours > 14 or minutes > 59:
            raise ToolError(f"no zone {wanted!r}: offsets go to 14 hours")
        delta = dt.timedelta(hours=hours, minutes=minutes)
        return dt.timezone(delta if offset[1] == "+" else -delta)
    key = wanted.casefold().replace(" ", "_")
    names = {entry.casefold(): entry for entry in zoneinfo.available_timezones()}
    cities = {entry.rpartition("/")[2]: full for entry, full in sorted(names.items())}
    found = names.get(_ABBREVIATIONS.get(key, key).casefold()) or cities.get(key)
    if found is None:
        near = difflib.get_close_matches(key, [*cities, *names], n=3)
        hint = "; near: " + ", ".join(names.get(n) or cities[n] for n in near) if near else ""
        raise ToolError(f"no time zone {wanted!r}{hint}")
    return zoneinfo.ZoneInfo(found)


def parse(text: str, now: dt.datetime) -> _When:
    """Reads a date, a time or both, in the zone of ``now``.

    Raises:
        ToolError: it is none, or has two readings (``03/04/2026``).
    """
    wanted = " ".join(text.strip().split())
    lowered = wanted.casefold()
    if lowered in {"now", ""}:
        return _When(now, True)
    try:
        moment = dt.datetime.fromisoformat(wanted)
        timed = len(wanted) > 10
        return _When(moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo), timed)
    except ValueError:
        pass
    if re.match(r"^\d{1,2}/\d{1,2}/\d{2,4}", wanted):
        raise ToolError(f"{wanted!r} can be read in two ways: write it as YYYY-MM-DD")
    time_of_day = _TIME.search(wanted)
    rest = wanted[: time_of_day.start()].strip(" ,T") if time_of_day else wanted
    day = _day(rest, now) if rest else now.date()
    try:
        clock_time = _time(time_of_day) if time_of_day else dt.time()
    except ValueError:
        raise ToolError(f"no such time of day: {wanted!r}") from None
    return _When(dt.datetime.combine(day, clock_time, now.tzinfo), time_of_day is not None)


def _time(match: re.Match[str]) -> dt.time:
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4].lower() == "pm" else 0)
    return dt.time(hour, int(match[2]), int(match[3] or 0))


def _day(text: str, now: dt.datetime) -> dt.date:
    lowered = text.casefold().removeprefix("on ").removeprefix("next ")
    words = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    if lowered in words:
        return now.date() + dt.timedelta(days=words[lowered])
    days = [name.casefold() for name in calendar.day_name]
    if lowered in days:
        ahead = (days.index(lowered) - now.weekday() - 1) % 7 + 1
        return now.date() + dt.timedelta(days=ahead)
    plain = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text.replace(",", " "), flags=re.I)
    plain = " ".join(plain.split())
    for pattern in _FORMATS:
        try:
            return dt.datetime.strptime(plain, pattern).date()
        except ValueError:
            continue
    raise ToolError(f"cannot read {text!r} as a date: write it as YYYY-MM-DD")


def _say(moment: dt.datetime, timed: bool = True) -> str:
    day = f"{moment:%A}, {moment.date().isoformat()}"
    if not timed:
        return day
    offset = moment.strftime("%z")
    return f"{day} {moment:%H:%M:%S} {moment.tzname()} (UTC{offset[:3]}:{offset[3:5]})"


def _convert(start: _When, to_zone: str, now: dt.datetime) -> str:
    target = find_zone(to_zone) if to_zone else now.tzinfo
    return f"{_say(start.moment)} is {_say(start.moment.astimezone(target))}"


def _difference(start: _When, end: _When) -> str:
    first, last = start.moment, end.moment
    sign = "" if first <= last else "minus "
    if first > last:
        first, last = last, first
    if start.timed and end.timed:
        # Between moments, so that a change to summer time counts.
        seconds = round((last.astimezone(dt.UTC) - first.astimezone(dt.UTC)).total_seconds())
        days, rest = divmod(seconds, 86_400)
        hours, minutes = rest // 3600, rest % 3600 // 60
        return (
            f"{sign}{_count(days, 'day')} {_count(hours, 'hour')} {_count(minutes, 'minute')}"
            f" ({seconds:,} seconds)"
        )
    days = (last.date() - first.date()).days
    years, months, remaining = _apart(first.date(), last.date())
    return (
        f"{sign}{_count(days, 'day')} from {_say(first, False)} to {_say(last, False)}:"
        f" {_count(days // 7, 'week')} and {_count(days % 7, 'day')};"
        f" {_count(years, 'year')}, {_count(months, 'month')}, {_count(remaining, 'day')};"
        f" {_count(_working_days(first.date(), days), 'working day')}, the last day not counted"
    )


def _apart(first: dt.date, last: dt.date) -> tuple[int, int, int]:
    months = (last.year - first.year) * 12 + last.month - first.month
    if _add_months(first, months) > last:
        months -= 1
    return months // 12, months % 12, (last - _add_months(first, months)).days


def _working_days(first: dt.date, days: int) -> int:
    """Mondays to Fridays in ``days`` days from ``first`` on."""
    weeks, rest = divmod(days, 7)
    return weeks * 5 + sum((first.weekday() + day) % 7 < 5 for day in range(rest))


def _add(start: _When, amount: str) -> str:
    parts = _AMOUNT.findall(amount)
    if not parts:
        raise ToolError(f"cannot read the amount {amount!r}: write it like 3 weeks")
    moment, timed = start.moment, start.timed
    for number, word in parts:
        unit = word.casefold().rstrip("s")
        count = int(number.replace(" ", ""))
        if unit not in _UNITS or abs(count) > 10**9:
            raise ToolError(f"cannot add {number} {word}; units: {', '.join(_UNITS)}")
        if unit in {"month", "year"}:
            day = _add_months(moment.date(), count * (12 if unit == "year" else 1))
            moment = dt.datetime.combine(day, moment.timetz())
        elif unit in {"day", "week"}:
            moment += dt.timedelta(days=count * (7 if unit == "week" else 1))
        else:
            zone, timed = moment.tzinfo, True
            moved = moment.astimezone(dt.UTC) + dt.timedelta(**{f"{unit}s": count})
            moment = moved.astimezone(zone)
    return _say(moment, timed)


def _add_months(day: dt.date, months: int) -> dt.date:
    """The same day some months on, or the month's last one."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise OverflowError
    return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _calendar(moment: dt.datetime) -> str:
    year, week, _ = moment.isocalendar()
    leap = "a leap year" if calendar.isleap(moment.year) else "not a leap year"
    return (
        f"{_say(moment, False)}: day {moment.timetuple().tm_yday} of the year, ISO week {week} of"
        f" {year}, {moment.year} is {leap}\n{calendar.month(moment.year, moment.month)}".rstrip()
    )


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"
