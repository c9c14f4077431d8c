"""Relative dates become absolute by the day on which they were said."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.errors import UsageError
from jarvis.services.extraction import dates

SAID = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fact", "text", "start", "end"),
    [
        ("User moved to Oslo last year", "User moved to Oslo in 2025", day(2025, 1, 1), None),
        ("User's exam is next Friday", "User's exam is on 4 December 2026", day(2026, 12, 4), None),
        ("User quit two months ago", "User quit in September 2026", day(2026, 9, 1), None),
        ("User has been vegan for three years", "User has been vegan since 2023",
         day(2023, 1, 1), None),
        ("User is in Bonn until next Friday", "User is in Bonn until 4 December 2026",
         None, day(2026, 12, 5)),
        ("User lived in Rome from 2010 to 2015", "User lived in Rome from 2010 to 2015",
         day(2010, 1, 1), day(2016, 1, 1)),
        ("User's birthday is on 12 March", "User's birthday is on 12 March", None, None),
        ("User was born in 1984", "User was born in 1984", None, None),
        ("User arrived yesterday", "User arrived on 29 November 2026", day(2026, 11, 29), None),
        ("User goes skiing this winter", "User goes skiing in winter 2026", day(2026, 12, 1), None),
        ("User likes tea", "User likes tea", None, None),
        # Without a year: the next one, or with a past verb the last one.
        ("User is flying to Rome on 12 March", "User is flying to Rome on 12 March 2027",
         day(2027, 3, 12), None),
        ("User's flight leaves on Dec 20 at 7:45",
         "User's flight leaves on 20 December 2026 at 7:45", day(2026, 12, 20), None),
        ("User moved out on 12 December", "User moved out on 12 December 2025",
         day(2025, 12, 12), None),
        ("User stopped smoking in March", "User stopped smoking in March 2026",
         day(2026, 3, 1), None),
        ("User's baby is due in February", "User's baby is due in February 2027",
         day(2027, 2, 1), None),
        ("User has an exam on Thursday", "User has an exam on 3 December 2026",
         day(2026, 12, 3), None),
        ("User broke a leg on Thursday", "User broke a leg on 26 November 2026",
         day(2026, 11, 26), None),
        ("User's car is in repair since Friday", "User's car is in repair since 27 November 2026",
         day(2026, 11, 27), None),
        ("User has a call tomorrow morning",
         "User has a call on the morning of 1 December 2026", day(2026, 12, 1), None),
        ("User must pay rent by Friday", "User must pay rent by 4 December 2026", None, None),
        ("User is away next weekend", "User is away on the weekend of 12 December 2026",
         day(2026, 12, 12), None),
        # What comes round, and a number that is no year.
        ("User has choir practice on Thursday", "User has choir practice on Thursday", None, None),
        ("User skis every year in March", "User skis every year in March", None, None),
        ("User goes skiing in January", "User goes skiing in January", None, None),
        ("User's car is a blue 2015 Golf", "User's car is a blue 2015 Golf", None, None),
        ("User is on leave on 31 February", "User is on leave on 31 February", None, None),
    ],
)  # fmt: skip
def test_resolve(fact: str, text: str, start: datetime | None, end: datetime | None) -> None:
    found = dates.resolve(fact, SAID)
    assert (found.text, found.valid_from, found.valid_to) == (text, start, end)


def test_a_long_fact_gets_its_date_in_figures() -> None:
    fact = "User flies to the far end of the coast with friends tomorrow"
    assert dates.resolve(fact, SAID).text.endswith("on 2026-12-01")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01", day(2026, 5, 1)),
        ("3 May 2026", day(2026, 5, 3)),
        ("May 2026", day(2026, 5, 1)),
        ("yesterday", day(2026, 11, 29)),
        ("last week", day(2026, 11, 23)),
    ],
)
def test_parse(text: str, expected: datetime) -> None:
    assert dates.parse(text, SAID) == expected


def test_no_date_is_refused() -> None:
    with pytest.raises(UsageError, match="is no date"):
        dates.parse("soonish", SAID)


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_any_text_at_any_time_is_survived(text: str, said: datetime) -> None:
    found = dates.resolve(text, said)
    if found.valid_from and found.valid_to:
        assert found.valid_from < found.valid_to
    with contextlib.suppress(UsageError):
        dates.parse(text, said)


@given(
    st.sampled_from(["last", "next", "this"]),
    st.sampled_from(["week", "month", "year", "Friday", "summer", "May"]),
    st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),
)
def test_last_is_before_and_next_is_after(which: str, unit: str, said: datetime) -> None:
    found = dates.resolve(f"User travels {which} {unit}", said).valid_from
    assert found is not None
    if which == "last":
        assert found < said
    elif which == "next":
        assert found > said or unit in {"week", "summer"}
