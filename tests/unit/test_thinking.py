"""The thinking splitter: every split of a stream gives the same two texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.llm.protocols import ChatChunk, ChatUsage
from jarvis.llm.thinking import ThinkingSplitter, separate, split_text


def run(pieces: list[str], inside: bool = False) -> tuple[str, str]:
    splitter = ThinkingSplitter(inside)
    parts = [splitter.feed(piece) for piece in pieces] + [splitter.finish()]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


CASES = [
    ("plain answer", "", "plain answer"),
    ("<think>a</think>b", "a", "b"),
    ("\n\n<think>\na\n</think>\n\nb\n", "\na\n", "b\n"),
    ("<think>never closed", "never closed", ""),
    ("<think>", "", ""),
    ("<think>a</think>", "a", ""),
    ("<think>a</think>\n \n", "a", ""),
    ("<THINK>a</Think>b", "a", "b"),
    ("<thinking>a </think> still</thinking>b", "a </think> still", "b"),
    ("<think>a</think><think>b</think>c", "ab", "c"),
    ("one\n<think>two</think>\nthree", "two", "one\n\nthree"),
    ("<thin air>", "", "<thin air>"),
    ("<thin", "", "<thin"),
    ("The tag <think> opens a thought.", "", "The tag <think> opens a thought."),
    ("```xml\n<think>x</think>\n```\nend", "", "```xml\n<think>x</think>\n```\nend"),
    ("  indented\n    code", "", "  indented\n    code"),
    ("", "", ""),
    ('<think>{"facts":["wrong"]}</think>{"facts":[]}', '{"facts":["wrong"]}', '{"facts":[]}'),
]


@pytest.mark.parametrize(("text", "thinking", "answer"), CASES)
def test_whole_by_character_and_in_two(text: str, thinking: str, answer: str) -> None:
    assert run([text]) == (thinking, answer)
    assert run(list(text)) == (thinking, answer)
    for at in range(len(text)):
        assert run([text[:at], text[at:]]) == (thinking, answer)


@given(st.lists(st.sampled_from(["<think>", "</think>", "\n", "```", "<", "th", "a", " "])))
def test_the_chunking_never_matters(pieces: list[str]) -> None:
    assert run(pieces) == run(["".join(pieces)]) == run(list("".join(pieces)))


@given(st.text(alphabet="ab<>/ \n`"))
def test_text_without_tags_is_untouched(text: str) -> None:
    assert run([text]) == ("", text)


def test_a_stream_that_begins_inside_a_thought() -> None:
    assert run(["so ", "it is</th", "ink>\nYes"], inside=True) == ("so it is", "Yes")


def test_unclosed_is_known_after_the_end() -> None:
    splitter = ThinkingSplitter()
    splitter.feed("<think>and on")
    splitter.finish()
    assert splitter.unclosed


def test_separate_joins_both_forms_and_keeps_the_usage_last() -> None:
    chunks = [
        ChatChunk(thinking="own field "),
        ChatChunk(text="<thi"),
        ChatChunk(text="nk>inline</think>Hel"),
        ChatChunk(text="lo <"),
        ChatChunk(usage=ChatUsage(prompt_tokens=3)),
    ]
    result = list(separate(chunks))
    assert "".join(chunk.thinking for chunk in result) == "own field inline"
    assert "".join(chunk.text for chunk in result) == "Hello <"
    assert result[-1].usage == ChatUsage(prompt_tokens=3)
    assert all(chunk.usage is None for chunk in result[:-1])


def test_closing_the_result_closes_the_source() -> None:
    closed = []

    def source() -> Iterator[ChatChunk]:
        try:
            while True:
                yield ChatChunk(text="x")
        finally:
            closed.append(True)

    stream = separate(source())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert closed == [True]


def test_a_lone_closing_tag_ends_a_thought_that_the_template_opened() -> None:
    assert split_text("hmm\n</think>\n\nYes") == ("hmm", "Yes")
    assert split_text("Close it with </think> at the end") == (
        "",
        "Close it with </think> at the end",
    )
