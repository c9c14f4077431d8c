"""Tool calls in an answer's text: kept out of it, and read where they can be meant in one way."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.tools import written

NAMES = {"add", "time", "read_file"}
ADD = [("add", {"a": 1, "b": 2})]

READABLE: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "whole": ('{"name": "add", "arguments": {"a": 1, "b": 2}}', ADD),
    "fenced": ('```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```', ADD),
    "a bracket too few": ('{"name": "add", "arguments": {"a": 1, "b": 2}', ADD),
    "a bracket too many": ('{"name": "add", "arguments": {"a": 1, "b": 2}}}', ADD),
    "a comma too many": ('{"name": "add", "arguments": {"a": 1, "b": 2,},}', ADD),
    "single quotes": ("{'name': 'add', 'arguments': {'a': 1, 'b': 2}}", ADD),
    "bare keys": ('{name: "add", arguments: {a: 1, b: 2}}', ADD),
    "doubled braces": ('{{"name": "add", "arguments": {{"a": 1, "b": 2}}}}', ADD),
    "arguments in a string": ('{"name": "add", "arguments": "{\'a\': 1, \'b\': 2}"}', ADD),
    "two": ('[{"name": "time"}, {"name": "add", "a": 1, "b": 2}]', [("time", {}), *ADD]),
    "tool_calls": (
        '{"tool_calls": [{"function": {"name": "time", "arguments": {}}}',
        [("time", {})],
    ),
    "a name that there is not": (
        '{"name": "error", "arguments": {"message": "it\'s \\"bad\\""}}',
        [("error", {"message": 'it\'s "bad"'})],
    ),
    "a lone backslash": (
        '{"name": "read_file", "arguments": {"path": "C:\\Users\\me"}}',
        [("read_file", {"path": "C:\\Users\\me"})],
    ),
    "python": (
        "{'name': 'add', 'arguments': {'a': None, 'b': True, 'c': 'it\\'s \"so\"'}}",
        [("add", {"a": None, "b": True, "c": 'it\'s "so"'})],
    ),
    "words behind": ('{"name": "time", "arguments": {}}\n```\nIt is noon.', [("time", {})]),
}

UNREADABLE = {
    "cut in a string": '{"name": "read_file", "arguments": {"path": "/home/me/not',
    "cut in a number": '{"name": "add", "arguments": {"a": 1, "b": 2',
    "no value": '{"name": "add", "arguments": {"a": , "b": 2}}',
    "a comma missing": '{"name": "add" "arguments": {"a": 1 "b": 2}}',
    "crossed brackets": '{"name": "add", "arguments": {"a": [1, 2}]}',
    "a sum for a number": '{"name": "add", "arguments": {"a": 1 + 1, "b": 2}}',
    "arguments that are none": '{"name": "add", "arguments": "one and two"}',
}

TEXTS = [
    "",
    "Two and two are four.",
    '{"name": "Dana", "age": 3}',
    '{"city": "Oslo", "arguments": {}}',
    "```python\nprint({'a': 1})\n```\nThat prints a dict.",
    '```json\n{\n  "name": "Dana",\n  "born": 1990\n}\n```',
    "[a link](http://x) and\n[another](http://y)",
    "a < b\n<b>bold</b>\n<tool> is no tag",
    "{ braces } in\n  { a line }",
    'a call looks like {"name": "add", "arguments": {}} inside a line',
    "    \n\n  x  ",
    "[1, 2, 3]",
    "``` ```",
]


def run(text: str, cuts: list[int]) -> tuple[str, written.WrittenCalls]:
    sieve = written.WrittenCalls(NAMES)
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(sieve.feed(text[a:b]) for a, b in itertools.pairwise(bounds))
    return shown + sieve.finish(), sieve


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("before", ["", "Let me see.\n\n"])
def test_a_call_is_kept_out_and_read(name: str, step: int, before: str) -> None:
    text, calls = READABLE[name]
    text = before + text
    shown, sieve = run(text, list(range(0, len(text), step)))
    assert shown.strip() == before.strip()
    assert written.read(sieve.text) == calls


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("step", [1, 1000])
def test_what_may_mean_two_things_is_kept_out_and_not_guessed(name: str, step: int) -> None:
    text = UNREADABLE[name]
    shown, sieve = run(text, list(range(0, len(text), step)))
    assert shown == ""
    assert sieve.name in NAMES
    assert written.read(sieve.text) == []


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("step", [1, 4, 1000])
def test_text_comes_through_unchanged(text: str, step: int) -> None:
    shown, sieve = run(text, list(range(0, len(text), step)))
    assert (shown, sieve.text) == (text, "")


def test_ordinary_text_is_not_held_back() -> None:
    sieve = written.WrittenCalls(NAMES)
    assert sieve.feed("Hello there") == "Hello there"
    assert sieve.feed('\n```python\nx = {"name') == '\n```python\nx = {"name'


@given(st.text(alphabet='`{}[]",:<>/ \n\\nameargutsool1'), st.lists(st.integers(0, 60)))
def test_nothing_is_lost_in_any_pieces(text: str, cuts: list[int]) -> None:
    shown, sieve = run(text, cuts)
    assert (shown + sieve.text).replace(" ", "").replace("\n", "") == text.replace(" ", "").replace(
        "\n", ""
    )
    written.read(text)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none()))
def test_any_arguments_come_back(arguments: dict[str, object]) -> None:
    text = json.dumps({"name": "add", "arguments": arguments})
    assert written.read(text) == [("add", arguments)]
    assert written.read(text[:-1]) == [("add", arguments)]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('I will call the "add" function with the arguments {"a": 1, "b": 2}.', ADD),
        ("To add, I use time and then `add`: `{'a': 1, 'b': 2}`", ADD),
        ('The add function takes {"a": 1, "b": 2} and returns 3.', []),
        ("Let me add {a, b}.", []),
        ("It is time to add the two.", []),
        ('The address is {"a": 1, "b": 2}', []),
        ("", []),
    ],
)
def test_a_call_that_is_announced_in_words_at_the_end(text: str, calls: list[Any]) -> None:
    assert written.announced(text, NAMES) == calls
    assert written.announced(text, ()) == []


def test_deep_nesting_ends() -> None:
    assert written.read('{"name": "add", "arguments": ' + "[" * 100_000) == []
