"""Tool calls that a model writes as text, in whatever pieces they come."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.engine.toolcalls import Call, ToolCallFilter

TOOLS = [
    {
        "function": {
            "name": "add",
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
        }
    },
    {"function": {"name": "time", "parameters": {"type": "object", "properties": {}}}},
]
ADD = Call("add", {"a": 1, "b": 2})
BARE = '{"name": "add", "arguments": {"a": 1, "b": 2}}'

CALLS = {
    "bare": (BARE, "", [ADD]),
    "parameters": ('{"name": "add", "parameters": {"a": 1, "b": 2}}', "", [ADD]),
    "nested": ('{"type": "function", "function": ' + BARE + "}", "", [ADD]),
    "string arguments": ('{"name": "add", "arguments": "{\\"a\\": 1, \\"b\\": 2}"}', "", [ADD]),
    "beside the name": ('{"name": "add", "a": 1, "b": 2}', "", [ADD]),
    "no arguments": ('{"name": "time"}', "", [Call("time", {})]),
    "fenced": ("```json\n" + BARE + "\n```", "", [ADD]),
    "fenced, no language": ("```\n" + BARE + "\n```\n", "", [ADD]),
    "fenced, never closed": ("```json\n" + BARE, "", [ADD]),
    "tagged": ("<tool_call>\n" + BARE + "\n</tool_call>", "", [ADD]),
    "tag never closed": ("<tool_call>" + BARE, "", [ADD]),
    "list": ("[" + BARE + ', {"name": "time"}]', "", [ADD, Call("time", {})]),
    "two in a row": (BARE + '\n{"name": "time"}', "", [ADD, Call("time", {})]),
    "tool_calls": ('{"tool_calls": [' + BARE + "]}", "", [ADD]),
    "after a sentence": ("Let me see.\n\n```json\n" + BARE + "\n```", "Let me see.", [ADD]),
    "bare after a sentence": ("I will add.\n" + BARE, "I will add.", [ADD]),
    "doubled braces": ("{" + BARE + "}", "", [ADD]),
    "doubled braces, fenced": ("```json\n{" + BARE + "}\n```", "", [ADD]),
    "a bracket too many": (BARE + "}", "", [ADD]),
    "fenced, a bracket too many": ("```json\n" + BARE + "}\n```\nDone.", "Done.", [ADD]),
    "before a sentence": (BARE + "\nDone.", "Done.", [ADD]),
}

TEXTS = [
    "",
    "Two and two are four.",
    "Use {braces} and [lists] in a line.",
    '{"name": "unknown", "arguments": {}}',
    '{"a": 1}',
    "```python\nprint({'a': 1})\n```\nThat prints a dict.",
    '```json\n{"name": "Dana"}\n```',
    "a < b and <tool> is no tag, `code` and ``` too",
    "[1, 2, 3]",
    "[a link](http://x)",
    '{"name": "add", "arguments": ',
    "{{{{",
    "x\n\n{not json}\n\ny",
]


def run(text: str, cuts: list[int]) -> tuple[str, list[Call]]:
    sieve = ToolCallFilter(TOOLS)
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [sieve.feed(text[a:b]) for a, b in itertools.pairwise(bounds)]
    pieces.append(sieve.finish())
    return "".join(p.text for p in pieces), [call for p in pieces for call in p.calls]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_call_is_recognised(name: str, step: int) -> None:
    text, shown, calls = CALLS[name]
    got_text, got_calls = run(text, list(range(0, len(text), step)))
    assert got_calls == calls
    assert got_text.strip() == shown


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("step", [1, 4, 1000])
def test_text_comes_through_unchanged(text: str, step: int) -> None:
    assert run(text, list(range(0, len(text), step))) == (text, [])


@given(st.text(alphabet='`{}[]",:<>/ \n\\tool_caljsn1'), st.lists(st.integers(0, 60)))
def test_no_text_is_lost_in_any_pieces(text: str, cuts: list[int]) -> None:
    got, calls = run(text, cuts)
    assert calls == []
    assert got == text


@given(
    st.dictionaries(st.sampled_from("ab"), st.text() | st.integers()), st.lists(st.integers(0, 90))
)
def test_any_arguments_come_back(arguments: dict[str, object], cuts: list[int]) -> None:
    text = json.dumps({"name": "add", "arguments": arguments})
    assert run(text, cuts) == ("", [Call("add", arguments)])


def test_ordinary_text_is_not_held_back() -> None:
    sieve = ToolCallFilter(TOOLS)
    assert sieve.feed("Hello there").text == "Hello there"


def test_deep_nesting_is_text() -> None:
    text = "[" * 100_000
    assert run(text, []) == (text, [])
