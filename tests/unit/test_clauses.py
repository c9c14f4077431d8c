"""What is cut out of a message is what its writer states about themselves, in their own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.services.extraction import lasting
from jarvis.services.extraction.clauses import candidates
from jarvis.services.extraction.cutting import words_of
from jarvis.services.extraction.lasting import Verdict
from jarvis.services.extraction.rewriting import MAX_WORDS, third_person
from jarvis.types import MemoryType


def texts(message: str, before: str = "") -> list[str]:
    return [clause.text for clause in candidates(message, before)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("I'm a glazier and I live in Turku.", ["User is a glazier", "User lives in Turku"]),
        ("hi , i restore organs", ["User restores organs"]),
        ("Ingrid here.", ["User's name is Ingrid"]),
        ("Bruno is my name", ["User's name is Bruno"]),
        ("do you like jazz ? i hate it", ["User hates jazz"]),
        ("rowing is my favourite sport", ["User's favourite sport is rowing"]),
        ("I paint in oils because it relaxes me", ["User paints in oils"]),
        ("Based in Cork, I guess", ["User is based in Cork"]),
        ("We sold the boat and we moved to Nantes", ["User sold the boat", "User moved to Nantes"]),
        (
            "I grew up in Jaffa but now I live in Ulm",
            ["User grew up in Jaffa", "User lives in Ulm"],
        ),
    ],
)
def test_statements_are_cut_out(message: str, expected: list[str]) -> None:
    assert texts(message)[: len(expected)] == expected


@pytest.mark.parametrize(
    "message",
    [
        "Where do I find the station?",
        "if I lived in Rome, I would take the tram",
        'She said "I live in Rome" and left',
        "> I live in Rome",
        "```\nI live in Rome\n```",
        "you live in Rome",
        "what do you do for a living",
    ],
)
def test_what_is_no_statement_of_the_writer_is_not(message: str) -> None:
    assert texts(message) == []


def test_relatives_are_the_subject_of_what_they_do() -> None:
    found = candidates("My cousin hates swimming; his mother signed him up anyway")
    assert ("User's cousin hates swimming", "cousin") in [(c.text, c.subject) for c in found]
    assert not any(c.text.startswith("User hates") for c in found)


def test_possession_is_presupposed() -> None:
    assert "User has a dog" in texts("I walked my dog this morning")
    assert "User's wife is called Noor" in texts("My wife Noor and I went out")


def test_the_message_before_tells_what_it_is() -> None:
    assert texts("I can't stand it now", "I love mushroom soup") == [
        "User can not stand mushroom soup"
    ]
    assert texts("I can't stand it now") == []


@pytest.mark.parametrize(
    ("verb", "form"),
    [("live", "lives"), ("am", "is"), ("have", "has"), ("teach", "teaches"), ("study", "studies"),
     ("play", "plays"), ("moved", "moved"), ("need", "needs"), ("grew", "grew"), ("go", "goes")],
)  # fmt: skip
def test_third_person(verb: str, form: str) -> None:
    assert third_person(verb) == form


@given(st.text(max_size=300))
def test_any_message_is_survived(message: str) -> None:
    for clause in candidates(message):
        assert len(words_of(clause.text)) <= MAX_WORDS
        assert clause.text.startswith("User")
        lasting.judge(clause.text, presupposed=clause.presupposed)


@given(st.lists(st.sampled_from("i my am and the dog love , . ? in , because it that".split())))
def test_any_order_of_common_words_is_survived(tokens: list[str]) -> None:
    for clause in candidates(" ".join(tokens)):
        assert len(words_of(clause.text)) <= MAX_WORDS


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        ("User's name is Ingrid", MemoryType.FACT),
        ("User is allergic to latex", MemoryType.FACT),
        ("User prefers short answers", MemoryType.PREFERENCE),
        ("User hates olives", MemoryType.PREFERENCE),
        ("User wants to learn Basque", MemoryType.GOAL),
        ("User is writing a cookbook", MemoryType.CONTEXT),
    ],
)
def test_what_lasts_is_kept_with_its_kind(fact: str, kind: MemoryType) -> None:
    judged = lasting.judge(fact)
    assert (judged.verdict, judged.type) == (Verdict.YES, kind)


@pytest.mark.parametrize(
    "fact",
    [
        "User is hungry",
        "User needs a synonym",
        "User wants a recipe with three eggs",
        "User thinks that works",
        "User reads your answer twice",
        "User's screen just went black",
        "User will come back to you",
        "User is trying to install it",
        "User loves this answer",
        "User has a quick question",
    ],
)
def test_what_passes_is_not(fact: str) -> None:
    assert lasting.judge(fact).verdict is Verdict.NO
