"""Time in English questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.retrieval import dates

NOW = datetime(2026, 5, 13, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did I do today?", "2026-05-13", "2026-05-14"),
        ("what happened yesterday", "2026-05-12", "2026-05-13"),
        ("the day before yesterday we spoke", "2026-05-11", "2026-05-12"),
        ("where was I last night", "2026-05-12", "2026-05-13"),
        ("what did I say two days ago?", "2026-05-11", "2026-05-12"),
        ("3 days ago", "2026-05-10", "2026-05-11"),
        ("a week ago", "2026-05-03", "2026-05-10"),
        ("two weeks ago I told you", "2026-04-26", "2026-05-03"),
        ("three months ago", "2026-02-01", "2026-03-01"),
        ("a year ago", "2025-01-01", "2026-01-01"),
        ("last week", "2026-05-04", "2026-05-11"),
        ("this week", "2026-05-11", "2026-05-18"),
        ("next week", "2026-05-18", "2026-05-25"),
        ("last weekend", "2026-05-09", "2026-05-11"),
        ("last month", "2026-04-01", "2026-05-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("in the last three days", "2026-05-10", "2026-05-14"),
        ("over the past month", "2026-04-13", "2026-05-14"),
        ("on Monday", "2026-05-11", "2026-05-12"),
        ("on Wednesday", "2026-05-13", "2026-05-14"),
        ("last Wednesday", "2026-05-06", "2026-05-07"),
        ("next Friday", "2026-05-15", "2026-05-16"),
        ("Where did I live in May?", "2026-05-01", "2026-06-01"),
        ("in June", "2025-06-01", "2025-07-01"),
        ("in early March 2024", "2024-03-01", "2024-04-01"),
        ("June 2023", "2023-06-01", "2023-07-01"),
        ("last December", "2025-12-01", "2026-01-01"),
        ("on 3 May 2026", "2026-05-03", "2026-05-04"),
        ("on the 3rd of May", "2026-05-03", "2026-05-04"),
        ("May 3rd, 2025", "2025-05-03", "2025-05-04"),
        ("on 20 May", "2025-05-20", "2025-05-21"),
        ("2026-02-28", "2026-02-28", "2026-03-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
        ("last summer", "2025-06-01", "2025-09-01"),
        ("in the winter of 2022", "2022-12-01", "2023-03-01"),
        ("in mid-May", "2026-05-01", "2026-06-01"),
        ("at the end of April", "2026-04-01", "2026-05-01"),
        ("in late 2024", "2024-01-01", "2025-01-01"),
        ("in the 90s", "1990-01-01", "2000-01-01"),
        ("in Q3 2025", "2025-07-01", "2025-10-01"),
        ("at Christmas", "2025-12-24", "2025-12-27"),
        ("the week before last", "2026-04-27", "2026-05-04"),
        ("at the weekend", "2026-05-09", "2026-05-11"),
        ("Monday morning", "2026-05-11", "2026-05-12"),
        ("on the 3rd", "2026-05-03", "2026-05-04"),
        ("on the 20th?", "2026-04-20", "2026-04-21"),
        ("3.5.2026", "2026-05-03", "2026-05-04"),
        ("5/13/2026", "2026-05-13", "2026-05-14"),
        ("2026/05/03", "2026-05-03", "2026-05-04"),
        ("a couple weeks ago", "2026-04-26", "2026-05-03"),
        ("half a year ago", "2025-11-01", "2025-12-01"),
        ("an hour ago", "2026-05-13", "2026-05-14"),
        ("a decade ago", "2016-01-01", "2017-01-01"),
        ("what do I have in three days", "2026-05-16", "2026-05-17"),
        ("two weeks from now", "2026-05-24", "2026-05-31"),
        ("where have I lived since March?", "2026-03-01", "2026-05-14"),
        ("since 2023", "2023-01-01", "2026-05-14"),
        ("after 3 May 2026", "2026-05-04", "2026-05-14"),
        ("what did I do before June 2025", "1900-01-01", "2025-06-01"),
        ("until last week", "1900-01-01", "2026-05-11"),
        ("between March and May", "2026-03-01", "2026-06-01"),
        ("from March to May 2025", "2025-03-01", "2025-06-01"),
        ("between November and February", "2025-11-01", "2026-03-01"),
        ("from 3 May 2025 until 10 May 2025", "2025-05-03", "2025-05-11"),
    ],
)
def test_is_read_as(text: str, start: str, end: str) -> None:
    found = dates.find(text, NOW)
    assert found is not None, text
    assert (f"{found.start:%Y-%m-%d}", f"{found.end:%Y-%m-%d}") == (start, end)
    assert found.start.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "may I ask something",
        "march on",
        "the fall of Rome",
        "I sat down",
        "which sun cream is best",
        "9999999 years ago",
        "the second time",
        "v1.2023",
        "what is my dog called?",
        "3/5/2026",
        "on the 3rd floor",
        "between you and me",
        "from Ghent to Oslo",
        "before I forget",
        "later in the day of doom",
        "",
    ],
)
def test_is_no_date(text: str) -> None:
    assert dates.find(text, NOW) is None


def test_a_period_says_how_it_was_read() -> None:
    for text, said in (
        ("before  June 2025", "'before June 2025' (up to 2025-05-31)"),
        ("on 3 May 2026", "'3 May 2026' (2026-05-03)"),
        ("since March", "'since March' (2026-03-01 to 2026-05-13)"),
    ):
        found = dates.find(text, NOW)
        assert found is not None
        assert found.describe() == said


def test_days_are_those_of_the_zone() -> None:
    zone = timezone(timedelta(hours=10))
    found = dates.find("today", datetime(2026, 5, 13, 20, 0, tzinfo=UTC).astimezone(zone))
    assert found is not None
    assert found.start == datetime(2026, 5, 14, tzinfo=zone)


def test_what_lasted_touches_a_period() -> None:
    may = dates.find("in May 2026", NOW)
    assert may is not None
    before, after = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
    assert may.overlaps(before, None)
    assert may.overlaps(before, after)
    assert not may.overlaps(after, None)
    assert not may.overlaps(before, may.start)
    assert may.contains(NOW)
    assert not may.contains(may.end)


def test_a_question_about_talk() -> None:
    assert dates.asks_about_talk("What did we discuss last week?")
    assert not dates.asks_about_talk("Where did I run last week?")


@given(
    st.text(alphabet=st.sampled_from("0123456789 agodysweekmonthinlastMay-th,of")), st.datetimes()
)
def test_no_text_fails(text: str, now: datetime) -> None:
    found = dates.find(text, now.replace(tzinfo=UTC))
    assert found is None or found.start < found.end
