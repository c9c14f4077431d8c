"""Dates that leave their year out: "on 12 March", "by Friday", "in July".

The tense says which is meant: the next one, or after a past verb the last one.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from jarvis.services.extraction.spans import (
    MONTH,
    MONTHS,
    PARTS,
    WEEKDAYS,
    Span,
    day_span,
    month_number,
    month_span,
    part_of_day,
)
from jarvis.services.extraction.words import BASE_IN_ED, IRREGULAR_PAST

YEARLY = re.compile(
    r"\b(?:birthdays?|anniversary|name day|every|each|born|always|usually|annual\w*|yearly|weekly|"
    r"celebrates?)\b",
    re.IGNORECASE,
)
"""What comes round: its dates have no year."""

_PREPOSITION = r"(?:(?P<prep>on|until|till|by|before|after|since|from|for) )(?:the )?"
_YEARLESS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"\b(?:{pattern})(?!\w|,? ?\d{{4}}\b)", re.IGNORECASE), kind)
    for pattern, kind in (
        (rf"(?:{_PREPOSITION})?(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m>{MONTH})", "day"),
        (rf"(?:{_PREPOSITION})?(?P<m>{MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?![:.]\d)", "day"),
        (
            rf"{_PREPOSITION}(?:this |coming )*(?P<w>{'|'.join(WEEKDAYS)})"
            rf"(?: (?P<part>{PARTS}))?",
            "weekday",
        ),
        (
            r"(?P<prep>in|until|till|by|before|after|since|from) (?P<m>" + "|".join(MONTHS) + ")",
            "month",
        ),
    )
)
_ONCE = re.compile(
    r"\b(?:is|are|will|going|(?:has|have|got) (?:an?|another|got|to)|needs? to|must|leaves?|"
    r"arrives?|lands?|flies|starts?|begins?|ends?|opens?|closes|expires?|due|gets|moves|marries|retires)\b",
    re.IGNORECASE,
)
"""Verbs with which "on Monday" and "in July" mean one day and one month, not all of them."""


def _past(fact: str) -> bool:
    """Whether the first verb of a fact in the third person is a past or perfect form."""
    words = fact.split()[1:]
    for index, word in enumerate(words):
        if word in {"is", "are", "will", "goes", "does", "can", "wants", "plans", "needs"}:
            return False
        if word in {"has", "have"}:
            after = words[index + 1] if index + 1 < len(words) else ""
            return after in IRREGULAR_PAST | {"been"} or after.endswith("ed")
        if word in IRREGULAR_PAST or (
            len(word) > 3 and word.endswith("ed") and word.islower() and word not in BASE_IN_ED
        ):
            return True
    return False


def with_year(text: str, today: date, max_words: int) -> str:
    """``text`` with the year, by its tense, of the first date that is without one."""
    past = _past(text)
    for pattern, kind in _YEARLESS:
        match = pattern.search(text)
        if match is None or (kind != "day" and not past and not _ONCE.search(text)):
            continue
        since = (match["prep"] or "").lower() == "since"
        span = _nearest(match, kind, today, past=past or since)
        before, after = text[: match.start()], text[match.end() :]
        words = span.words
        if len((before + words + after).split()) > max_words:
            words = span.short
        preposition = match["prep"] or ("on" if kind == "day" else "")
        if preposition.lower() not in {"on", "in"}:
            words = f"{preposition} {words.partition(' ')[2]}"
        return before + words + after
    return text


def _nearest(match: re.Match[str], kind: str, today: date, *, past: bool) -> Span:
    """The last such day or month in the past, or the next one, today among both."""
    if kind == "weekday":
        weekday = WEEKDAYS.index(match["w"].lower())
        ahead = (weekday - today.weekday()) % 7
        day = today + timedelta(days=ahead - 7 if past and ahead else ahead)
        return part_of_day(day, match["part"].lower()) if match["part"] else day_span(day)
    month = month_number(match["m"])
    if kind == "month":
        later = month > today.month if past else month < today.month
        return month_span(today.year + (-later if past else later), month)
    day = date(today.year, month, int(match["d"]))
    if past and day > today:
        day = day.replace(year=today.year - 1)
    elif not past and day < today:
        day = day.replace(year=today.year + 1)
    return day_span(day)
