"""Markdown that streams: the same lines however it is cut, nothing lost, nothing twice."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from jarvis.repl.code import Highlighter
from jarvis.repl.inline import BOLD, CODE, ITALIC, LINK, STRIKE, parse
from jarvis.repl.markdown import Markdown
from jarvis.repl.spans import (
    Span,
    clusters,
    expand_tabs,
    fold_spans,
    line_width,
    paint,
    plain,
    width_of,
)

SAMPLE = """\
# Heading *one*

Some **bold** and *italic* text, `code with * star`, a [link](https://example.com/x_(y)) and
<https://auto.link>. 2 * 3 * 4 = 24, snake_case_name, **unclosed bold that goes on and on for very
long and never ends.

- item one that is so long that it must wrap around the terminal at least twice, **bold over the
- second
  - nested
  - [x] done
1. first

> quoted text with a long line that wraps around for sure because it is longer than sixty columns

| Name | Value |
|------|------:|
| a | 1 |
| 日本語 | 22 |

```python
def f(x):
    \"\"\"doc
    string\"\"\"
\treturn x * 2  # comment
```
after a | b pipe

    indented *code*

Done \\*escaped\\* ~~strike~~ ![img](u.png)
The end 👩‍🌾 日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語
"""


def whole(text: str, width: int) -> list[str]:
    markdown = Markdown(width)
    return [plain(line) for line in markdown.feed(text) + markdown.finish()]


def in_pieces(text: str, width: int, sizes: random.Random, largest: int) -> list[str]:
    markdown, lines, at = Markdown(width), [], 0
    while at < len(text):
        size = sizes.randint(1, largest)
        lines += markdown.feed(text[at : at + size])
        markdown.tail()
        at += size
    return [plain(line) for line in lines + markdown.finish()]


@pytest.mark.parametrize("width", [100, 60, 40, 20, 12, 7, 3])
@pytest.mark.parametrize("largest", [1, 4, 30])
def test_pieces_make_no_difference(width: int, largest: int) -> None:
    for seed in range(5):
        assert in_pieces(SAMPLE, width, random.Random(seed), largest) == whole(SAMPLE, width)


sources = st.lists(
    st.one_of(
        st.text("ab *_`~[]()<>!\\#-|>1. 日\t\n", max_size=30),
        st.sampled_from(
            ["```\n", "| a | b |\n|---|---|\n", "- x\n", "**b** ", "\n\n", "long " * 9]
        ),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(sources, st.integers(2, 40), st.randoms(use_true_random=False))
@example(" \t<1\n", 2, random.Random(1))
@example(" \t<1\n", 2, random.Random(2))
@example(" \t<1\n", 2, random.Random(3))
def test_any_text_in_any_pieces(text: str, width: int, sizes: random.Random) -> None:
    assert in_pieces(text, width, sizes, 6) == whole(text, width)


@settings(max_examples=300, deadline=None)
@given(sources, st.sampled_from([2, 7, 20, 500]))
def test_no_letter_is_lost_or_doubled(text: str, width: int) -> None:
    assume("](" not in text)  # a link whose words are its address is shown once
    shown = "".join(whole(text, width))
    for letter in "ab日1":
        if width == 500 or "|" not in text:
            assert shown.count(letter) == text.count(letter)
        else:  # a table that does not fit repeats its headings
            assert shown.count(letter) >= text.count(letter)


@settings(max_examples=200, deadline=None)
@given(sources, st.integers(2, 40), st.integers(2, 40))
def test_a_resize_in_between_loses_nothing(text: str, width: int, other: int) -> None:
    assume("](" not in text and "|" not in text)
    markdown = Markdown(width)
    half = len(text) // 2
    lines = markdown.feed(text[:half])
    markdown.width = other
    lines += markdown.feed(text[half:]) + markdown.finish()
    shown = "".join(plain(line) for line in lines)
    for letter in "ab日":
        assert shown.count(letter) == text.count(letter)


@pytest.mark.parametrize("width", [60, 20, 7])
def test_rows_fit_except_code_which_the_terminal_folds(width: int) -> None:
    markdown = Markdown(width)
    text = re.sub(r"```.*?```", "", SAMPLE, flags=re.DOTALL).replace("    indented *code*", "")
    for line in markdown.feed(text) + markdown.finish():
        assert line_width(line) <= width


def test_a_long_paragraph_is_settled_while_it_is_written() -> None:
    markdown = Markdown(20)
    lines = markdown.feed("word " * 100)
    assert len(lines) >= 23
    assert len(markdown.tail()) <= 2


def test_code_stays_whole_lines() -> None:
    long = "x" * 200
    assert long in whole(f"```\n{long}\n```", 30)


def test_an_open_fence_at_the_end_loses_nothing() -> None:
    assert "print(1)" in whole("```python\nprint(1)", 40)


def test_blank_lines_are_kept_once() -> None:
    assert whole("a\n\n\n\nb\n\n", 40) == ["a", "", "b"]


def test_line_ends_stay_line_ends() -> None:
    assert whole("Roses are red\nViolets are blue", 40) == ["Roses are red", "Violets are blue"]


def test_a_table_aligns_and_a_narrow_one_is_stacked() -> None:
    table = "| Name | Value |\n|---|---:|\n| 日本語 | 1 |\n| b | 22 |\n"
    lines = whole(table, 40)
    assert [width_of(line.split("│")[0]) for line in lines if "│" in line] == [7, 7, 7]
    assert lines[2].endswith("    1")
    narrow = whole("| Name | Value | More |\n|---|---|---|\n| aaaaaaaaaa | bbbbbbbbbb | c |\n", 12)
    assert any(line.startswith("Name:") for line in narrow)
    assert "|" not in "".join(narrow)


def test_lines_with_pipes_that_are_no_table_are_text() -> None:
    assert whole("| a | b |\nno table\n", 40) == ["| a | b |", "no table"]
    assert whole("cat x | grep y\n", 40) == ["cat x | grep y"]


def test_a_table_with_many_rows_does_not_wait_for_its_end() -> None:
    markdown = Markdown(40)
    lines = markdown.feed("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 250)
    assert len(lines) > 200
    assert len(markdown.tail()) <= 4


def styles(source: str) -> list[tuple[str, str]]:
    return [(s.text, s.style) for s in parse(source, complete=True).spans]


@pytest.mark.parametrize(
    ("source", "spans"),
    [
        ("**b**", [("b", BOLD)]),
        ("*i* _j_", [("i", ITALIC), (" ", ""), ("j", ITALIC)]),
        ("***both***", [("both", f"{BOLD};{ITALIC}")]),
        ("**a *b* c**", [("a ", BOLD), ("b", f"{BOLD};{ITALIC}"), (" c", BOLD)]),
        ("`**x**`", [("**x**", CODE)]),
        ("``a ` b``", [("a ` b", CODE)]),
        ("~~s~~", [("s", STRIKE)]),
        ("[t](u)", [("t", LINK), (" (u)", f"{LINK.replace('4', '2')}")]),
        ("[u](u)", [("u", LINK)]),
        ("<https://x.y>", [("https://x.y", LINK)]),
        ("2 * 3 * 4", [("2 * 3 * 4", "")]),
        ("snake_case_name", [("snake_case_name", "")]),
        ("**never closed", [("**never closed", "")]),
        (r"\*not\*", [("*not*", "")]),
        ("a[0] and (b)", [("a[0] and (b)", "")]),
        ("[/] :smile: list[str]", [("[/] :smile: list[str]", "")]),
        ("C:\\dir", [("C:\\dir", "")]),
    ],
)
def test_inline(source: str, spans: list[tuple[str, str]]) -> None:
    assert styles(source) == spans


@given(st.text("ab *_`~[]()<>!\\", max_size=40), st.text("ab *_`~[]()<>!\\", max_size=20))
def test_what_is_settled_does_not_depend_on_what_follows(begun: str, more: str) -> None:
    settled = parse(begun, complete=False).settled
    before = parse(begun[:settled], complete=True).spans
    after = parse(begun + more, complete=True).spans
    text = "".join(s.text for s in before)
    assert "".join(s.text for s in after).startswith(text)


def test_a_language_is_coloured_line_by_line_as_a_whole_would_be() -> None:
    code = ['def f(x="a"):', '    """doc', "    more", '    """', "    return 1  # end"]
    highlighter = Highlighter("python")
    lines = [highlighter.line(line) for line in code]
    assert [plain(line) for line in lines] == code
    assert {s.style for s in lines[2] if s.text.strip()} == {"32"}
    assert ("return", "35") in [(s.text, s.style) for s in lines[4]]


def test_long_code_is_coloured_to_its_end() -> None:
    highlighter = Highlighter("python")
    for _ in range(300):
        line = highlighter.line("x = 1  # comment")
        assert line[-1] == Span("# comment", "2")


@pytest.mark.parametrize("language", ["", "nosuchlanguage", "text", "python extra words"])
def test_any_language_shows_the_text(language: str) -> None:
    assert plain(Highlighter(language).line("  a <b> c")) == "  a <b> c"


@given(st.text("ab 日👩é", max_size=60), st.integers(2, 20))
def test_folding_keeps_the_text_and_the_width(text: str, width: int) -> None:
    lines = fold_spans([Span(text)], width)
    assert "".join(plain(line) for line in lines).replace(" ", "") == text.replace(" ", "")
    assert all(line_width(line) <= width for line in lines)


def test_joined_characters_stay_together() -> None:
    assert list(clusters("a👩‍🌾e\u0301b")) == ["a", "👩‍🌾", "e\u0301", "b"]


def test_tabs_reach_the_next_stop() -> None:
    assert expand_tabs("\tx\t日\ty") == "    x   日  y"


@given(st.lists(st.tuples(st.text("ab ", min_size=1), st.sampled_from(["", "1", "36"]))))
def test_painting_without_colour_is_the_text(parts: list[tuple[str, str]]) -> None:
    line = [Span(text, style) for text, style in parts]
    assert paint(line, False) == plain(line)
    assert re.sub(r"\x1b\[[0-9;]*m", "", paint(line, True)) == plain(line)
    for first, second in pairwise(line):
        if first.style == second.style:
            assert first.text + second.text in paint(line, True)
