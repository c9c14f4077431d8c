"""Two memories are merged or closed only when words and grammar leave no doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.services.compare import Relation, compare


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("wiki at localhost:7070", "the wiki listens on 7070"),
        ("User loves rowing", "User likes rowing"),
        ("User works as a glazier", "User is a glazier"),
        ("User has two cats", "User has 2 cats"),
        ("User's favourite colour is teal", "User's favorite color is teal"),
        ("User currently lives in Turku", "User lives in Turku"),
        ("User moved to Turku", "User lives in Turku"),
        ("User lives in Turku", "User lives in Turku, near the river"),
    ],
)
def test_the_same_in_other_words(new: str, old: str) -> None:
    assert compare(new, old) is Relation.SAME


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User moved to Turku in 2025", "User lives in Cork"),
        ("User now lives in Turku", "User lives in Cork"),
        ("User can not stand plums", "User loves plums"),
        ("User dislikes plums", "User likes plums"),
        ("User no longer rows", "User rows"),
        ("User quit smoking", "User smokes"),
        ("User does not eat meat anymore", "User eats meat"),
        ("User sold their car", "User has a car"),
        ("User works at Nokia", "User works for Siemens"),
        ("User's favourite colour is teal", "User's favorite color is grey"),
        ("User is divorced", "User is married to Noor"),
        ("we moved to Turku", "I live in Cork"),
        ("User turned 41", "User is 40 years old"),
        ("User's sister lives in Turku", "User's sister lives in Cork"),
    ],
)
def test_what_is_over(new: str, old: str) -> None:
    assert compare(new, old) is Relation.ENDS


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("User prefers tea over coffee", "User prefers coffee over tea"),
        ("User has 12 files", "User has 9 files"),
        ("User has a son called Bo", "User has a son called Al"),
        ("User's sister lives in Lima", "User lives in Cork"),
        ("User's sister lives in Lima", "User's brother lives in Cork"),
        ("User lived in Rome", "User lives in Cork"),
        ("User likes plums", "User likes figs"),
        ("User plays chess", "User plays the piano"),
        ("User has a cat", "User has a dog"),
        ("用户住在上海", "用户喜欢喝茶"),
        ("", "User rows"),
    ],
)
def test_what_only_looks_alike(first: str, second: str) -> None:
    for one, two in ((first, second), (second, first)):
        assert compare(one, two) in {Relation.DIFFERENT, Relation.OPEN}


@pytest.mark.parametrize(
    "more", ["User lives in Turku, near the river", "User lives in Turku with her aunt Aino"]
)
def test_what_says_more_is_not_merged_into_what_says_less(more: str) -> None:
    assert compare(more, "User lives in Turku") in {Relation.OPEN, Relation.DIFFERENT}


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_same_fact_is_the_same_either_way_round(first: str, second: str) -> None:
    found = compare(first, second)
    assert (found is Relation.SAME) == (compare(second, first) is Relation.SAME)


@given(st.integers(0, 99), st.integers(0, 99))
def test_other_numbers_are_never_the_same(first: int, second: int) -> None:
    found = compare(f"User owns {first} boats", f"User owns {second} boats")
    assert (found is Relation.SAME) == (first == second)
