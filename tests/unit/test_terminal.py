"""Text from outside on a terminal: what acts is gone, the text stays, however it is cut."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.security.terminal import (
    MAX_SEQUENCE,
    TerminalFilter,
    escape_controls,
    escape_json,
    sanitise,
)

ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)

CASES = [
    ("plain\n\ttext", "plain\n\ttext"),
    ("a\x1b[31mred\x1b[0m", "ared"),
    ("a\x1b[2J\x1b[Hb", "ab"),
    ("a\x1b]0;title\x07b", "ab"),
    ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
    ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
    ("a\x9b31mb\x9d0;t\x9cc", "abc"),
    ("a\x1bPq#0\x1b\\b\x1b_app\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
    ("a\x1b(0b\x1bcc\x1b7d", "abcd"),
    ("a\x07\x08\x00b", "ab"),
    ("one\r\ntwo\rthree\x85four\u2028five", "one\ntwo\nthree\nfour\nfive"),
    ("user\u202etxt.exe\u2066x\u2069", "usertxt.exex"),
    ("hidden\U000e0041\U000e007f", "hidden"),
    ("\ud800x", "\ufffdx"),
    ("a\x1b]never ends\nnext", "a]never ends\nnext"),
    ("a\x1b[12", "a[12"),
    ("a\x1b[1é", "a[1é"),
    ("a\x1b\x1b[31mb", "ab"),
    ("a\x1b]0;x\x1b[31mb", "a]0;xb"),
    ("a\x1b", "a"),
    ("日本語 👩‍🌾 e\u0301", "日本語 👩‍🌾 e\u0301"),
    ("[/] :smile: [bold]", "[/] :smile: [bold]"),
]


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_what_is_shown(text: str, shown: str) -> None:
    assert sanitise(text) == shown


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_every_split_in_two_shows_the_same(text: str, shown: str) -> None:
    for cut in range(len(text) + 1):
        stream = TerminalFilter()
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.flush() == shown


nasty = st.text(
    st.sampled_from("ab1;?[]P\\^_Xm\x1b\x07\x9b\x9c\x9d\x90\n\r\x18\x00\u202e日\U000e0041\ud800 ")
)


@given(nasty, st.data())
def test_any_pieces_show_the_same_and_nothing_acts(text: str, data: st.DataObject) -> None:
    stream, out, rest = TerminalFilter(), "", text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        out += stream.feed(rest[:size])
        rest = rest[size:]
    out += stream.flush()
    assert out == sanitise(text)
    assert not ACTING.search(out)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_text_without_controls_is_untouched(text: str) -> None:
    assert sanitise(text) == text
    assert escape_controls(text) == text


def test_an_endless_control_string_is_not_held_back_for_ever() -> None:
    stream = TerminalFilter()
    shown = stream.feed("\x1b]52;" + "A" * (2 * MAX_SEQUENCE))
    assert len(shown) > MAX_SEQUENCE
    assert not ACTING.search(shown)


@given(st.text())
def test_an_escaped_text_is_one_line_that_acts_on_nothing(text: str) -> None:
    line = escape_controls(text)
    assert len(line.splitlines()) <= 1
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in line)
    assert not ACTING.search(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31m", "\\x1b[31m"),
        ("x\u202ey", "x\\u202ey"),
        ("\U000e0041", "\\U000e0041"),
        (r"C:\new", r"C:\new"),
    ],
)
def test_escapes(text: str, line: str) -> None:
    assert escape_controls(text) == line


@given(st.text(st.characters(exclude_categories=[])), st.booleans())
def test_a_line_of_json_keeps_its_value_and_acts_on_nothing(text: str, ascii_only: bool) -> None:
    line = escape_json(json.dumps([text], ensure_ascii=ascii_only))
    assert json.loads(line) == json.loads(json.dumps([text]))
    assert len(line.splitlines()) == 1
    assert not ACTING.search(line)
    line.encode()  # a lone surrogate would raise
