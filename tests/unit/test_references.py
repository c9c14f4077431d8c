"""Numbered parts of documents as terms of their own."""

from __future__ import annotations

import pytest

from jarvis.retrieval.references import BEGINS, asked, written


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does clause 7 say?", ["clause#7", "#7"]),
        ("Compare Section 3.2 and § 5", ["section#3.2", "#3.2", "§#5", "#5"]),
        ("Article IV", ["article#4", "#4"]),
        ("Sec. 12", ["section#12", "#12"]),
        ("is 7 more than 5?", []),
        ("a part I like", []),
        ("the Article civil servants read", []),
        ("clause 7% of it", []),
    ],
)
def test_asked(question: str, expected: list[str]) -> None:
    assert asked(question) == expected


def test_what_begins_a_line_counts_more_than_a_mention() -> None:
    found = written("Agreement > Clause 7\nClause 7. Termination\nSee clause 8 and\nclause 9.\n")
    assert found["clause#7"] == 2 * BEGINS
    assert found["clause#8"] == found["clause#9"] == 1.0


def test_a_numbered_heading_is_found_without_its_word() -> None:
    assert written("7. Termination\n7.2 Notice\nIn 2019 it rained.") == {
        "#7": BEGINS,
        "#7.2": BEGINS,
    }
