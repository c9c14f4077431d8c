"""Replies of any shape are read, facts that the message does not say are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.services.extraction import checks, prompt, reading
from jarvis.services.extraction.parse import UnreadableReply, parse_reply
from jarvis.types import MemoryType

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ('{"facts":["a b"]}', ["a b"]),
        ('{"facts":[]}', []),
        ('Sure! Here they are:\n{"facts":["a b"]}\nAnything else?', ["a b"]),
        ('```json\n{"facts":["a b"]}', ["a b"]),
        ('```\n["a b","c d"]\n```', ["a b", "c d"]),
        ("1. a b\n2) c d", ["a b", "c d"]),
        ("- a b\n* c d", ["a b", "c d"]),
        ('["a","b"]', ["a", "b"]),
        ('{"result":{"facts":["a b"]}}', ["a b"]),
        ('{"facts":{"facts":["a b"]}}', ["a b"]),
        ('{"facts":[["a b"],["c d"]]}', ["a b", "c d"]),
        ('{"facts":[{"text":"a b"},{"fact":"c d"}]}', ["a b", "c d"]),
        ('<think>{"facts":["wrong"]}</think>{"facts":["a b"]}', ["a b"]),
        ('thoughts {"facts":["wrong"]}</think>{"facts":["a b"]}', ["a b"]),
        ('{"facts":["a b","c d","cut o', ["a b", "c d"]),
        ('{"facts":[', []),
        (r'{"facts":["a \u65 b","c d"]}', ["a  b", "c d"]),
        (r'{"facts":["a \ud83d b","c d"]}', ["a \ud83d b", "c d"]),
        ("None.", []),
        ("No facts to remember here.", []),
        ("[]", []),
        ('{"facts":null}', []),
    ],
)
def test_facts_are_found_wherever_they_stand(reply: str, facts: list[str]) -> None:
    assert parse_reply(reply) == facts


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "I am afraid that I cannot do this.",
        '<think>{"facts":["wrong"]}',
        json.dumps(prompt.schema(3)),
        "{",
        "42",
    ],
)
def test_a_reply_without_an_answer_is_a_failure_and_not_nothing(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(reply)


@given(st.text(max_size=400))
def test_any_reply_is_facts_or_a_failure(reply: str) -> None:
    try:
        found = parse_reply(reply)
    except UnreadableReply:
        return
    assert all(isinstance(fact, str) for fact in found)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["facts", "text", "type", "x"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_facts_or_a_failure(value: object) -> None:
    try:
        found = parse_reply(json.dumps(value))
    except UnreadableReply:
        return
    assert all(isinstance(fact, str) for fact in found)


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("User owns a kayak", "I own a kayak"),  # said otherwise than word for word
        ("User has 2 sisters", "i have two sisters"),
        ("Spiders scare User", "there are spiders here , spiders scare me"),
        ("User sammelt Briefmarken", "Ich sammle Briefmarken"),
        ("User 住在上海", "我住在上海，是一名医生"),
    ],
)
def test_what_the_message_says_passes(fact: str, message: str) -> None:
    assert checks.problem(fact, message) == ""


@pytest.mark.parametrize(
    ("fact", "message", "why"),
    [
        ("User owns a yacht", "I own a kayak", "not in the message"),
        ("User has 3 sisters", "I have two sisters", "not in the message"),
        ("User likes films", "what films do you like ? i am tired", "not in the message"),
        ("User does not eat fish", "I eat fish", "negation"),
        ("User eats fish", "I never eat fish", "negation"),
        ("I own a kayak", "I own a kayak", "subject"),
        ("User says I own it", "I own a kayak and I say it", "third person"),
        ("User " + "very " * 12 + "tired", "I am very tired", "length"),
        ("User owns a kayak. It is red", "I own a kayak. It is red", "third person"),
        ("User lives in Bern", "My friend lives in Bern, she said", ""),
        ("User agent is a tool", "the agent is a tool . I sleep", "no sentence"),
        ("User owns a barn", "my friend sings . a barn owns a cat", "not about the writer"),
        ("User visits the coast", "I hope you visit the coast", "not in the message"),
    ],
)
def test_what_it_does_not_say_is_refused(fact: str, message: str, why: str) -> None:
    found = checks.problem(fact, message)
    assert why in found
    assert bool(found) == bool(why)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_fact_with_a_number_that_was_not_said_is_never_believed(fact: str, message: str) -> None:
    if "73914" not in message:
        assert checks.problem(f"User {fact} 73914", message) != ""


@pytest.mark.parametrize(
    "message",
    [
        "hi",
        "ok thanks!",
        "nice",
        "Where are you from?",
        "tests just passed, brb",
        "good morning , how are you ?",
        "😀😀😀😀😀😀😀😀😀😀😀",
        "```\nmy_name = 'Eve'\n```",
        "What is the capital of Peru?",
    ],
)
def test_the_cheap_filter_spares_the_model(message: str) -> None:
    def ask(text: str) -> list[str]:
        raise AssertionError(f"asked about {text!r}")

    assert reading.read(message, NOW, ask).facts == []


def test_what_the_rules_settle_needs_no_model() -> None:
    found = reading.read("My name is Ines and I live in Vigo.", NOW, None)
    assert [fact.text for fact in found.facts] == ["User's name is Ines", "User lives in Vigo"]
    assert not found.open


def test_the_model_is_heard_where_the_rules_are_not_sure_and_checked() -> None:
    message = "one sister for me . she swims"
    answers = ["User has one sister for me", "User is a pilot", "User is very tired now"]
    found = reading.read(message, NOW, lambda _: answers)
    assert [fact.text for fact in found.facts] == ["User has one sister"]
    assert {reason.partition(":")[0] for _, reason in found.dropped} >= {"not in the message"}


def test_at_most_three_facts_the_most_important_ones() -> None:
    message = "I like plums. I like figs. I am allergic to bees. My name is Ada. I live in Kiel."
    kept = [fact.text for fact in reading.read(message, NOW, None).facts]
    assert kept == ["User is allergic to bees", "User's name is Ada", "User lives in Kiel"]


def test_a_secret_is_held_and_reported() -> None:
    found = reading.read("My wifi password is hunter2!x", NOW, None)
    assert found.secret == "password"
    assert [fact.held_reason for fact in found.facts] == ["looks like a secret: password"]


def test_a_wish_about_style_is_a_preference_and_not_held() -> None:
    (fact,) = reading.read("I prefer short answers without lists.", NOW, None).facts
    assert (fact.type, fact.held_reason) == (MemoryType.PREFERENCE, "")


def test_dates_are_absolute() -> None:
    (fact,) = reading.read("I moved to Graz last year", NOW, None).facts
    assert fact.text == "User moved to Graz in 2025"
    assert fact.valid_from == datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("By the way my dentist appointment is next Friday at 3pm.",
         [("User's dentist appointment is on 4 December 2026 at 3pm", MemoryType.EVENT)]),
        ("I've got a meeting with Tom next Tuesday.",
         [("User has got a meeting with Tom on 1 December 2026", MemoryType.EVENT)]),
        ("We're getting married next June.",
         [("User is getting married in June 2027", MemoryType.EVENT)]),
        ("I need to finish my tax return by 31 July.",
         [("User needs to finish their tax return by 31 July 2027", MemoryType.GOAL)]),
        ("Remind me: my passport expires in June 2027",
         [("User's passport expires in June 2027", MemoryType.EVENT)]),
        ("The deadline for my thesis is 15 January 2027.",
         [("User's deadline for their thesis is 15 January 2027", MemoryType.EVENT)]),
        ("I have to take my medicine at 8 every evening",
         [("User has to take their medicine at 8 every evening", MemoryType.FACT)]),
        ("My grandmother died last month.",
         [("User's grandmother died in October 2026", MemoryType.FACT)]),
        ("My budget for the new laptop is 1,200 euros",
         [("User's budget for the new laptop is 1,200 euros", MemoryType.FACT)]),
        ("The name of my cat is Tom.", [("User's cat's name is Tom", MemoryType.FACT)]),
    ],
)  # fmt: skip
def test_what_is_planned_is_kept_with_its_date(
    message: str, facts: list[tuple[str, MemoryType]]
) -> None:
    found = reading.read(message, NOW, None).facts
    assert [(fact.text, fact.type) for fact in found] == facts


@pytest.mark.parametrize(
    "message",
    [
        "I will check it on Monday.",
        "I'll try again in two days.",
        "I have to go now, see you tomorrow!",
        "My build is broken since Monday.",
        "I have a question about next year.",
        "I need this by Friday, can you help?",
        "I got an error on May 3 in the log.",
    ],
)
def test_what_only_this_talk_is_about_is_not_kept_for_its_date(message: str) -> None:
    assert reading.read(message, NOW, None).facts == []


def test_no_example_is_told_of_the_tests() -> None:
    from tests.e2e.introductions import INTRODUCTIONS

    said = " ".join(" ".join(entry.lines) for entry in INTRODUCTIONS)
    stems = set(checks.content_stems(said))
    for _, facts in prompt.EXAMPLES:
        for fact in facts:
            shared = stems & set(checks.content_stems(fact))
            assert not shared, fact


@given(st.text(max_size=400), st.integers(5, 60))
def test_a_long_message_is_read_in_parts_and_no_word_is_lost(text: str, tokens: int) -> None:
    pieces = prompt.parts(text, tokens)
    assert "".join(pieces) == text
    for piece in pieces:
        assert sum(0.5 if c.isascii() else 1.5 for c in piece) <= tokens + 1.5


def test_parts_are_cut_between_sentences() -> None:
    assert prompt.parts("I row here. I sing there. I swim.", 10) == [
        "I row here. ",
        "I sing there. ",
        "I swim.",
    ]
