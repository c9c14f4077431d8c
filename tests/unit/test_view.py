"""Answers on a terminal: every line once in the scrollback, whatever the window does."""

from __future__ import annotations

import os
import random

import pyte
import pytest

from jarvis.repl.screen import Screen
from jarvis.repl.view import AnswerView

WORDS = "\n\n".join(f"line {n} of the answer" for n in range(200))


class Terminal:
    """A terminal with a scrollback, into which a view draws."""

    def __init__(self, columns: int = 40, rows: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=1.0)
        self.stream = pyte.Stream(self.screen)
        self.clock = 0.0
        self.typed = ""
        self.written = 0
        self.late: tuple[int, int] | None = None

    def view(self) -> AnswerView:
        return AnswerView(
            Screen(self._write, self._size, colour=False),
            typed=lambda: self.typed,
            clock=self._tick,
        )

    def _tick(self) -> float:
        self.clock += 0.01
        return self.clock

    def _write(self, text: str) -> None:
        self.written += len(text)
        self.stream.feed(text)

    def _size(self) -> os.terminal_size:
        return os.terminal_size(self.late or (self.screen.columns, self.screen.lines))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)

    def transcript(self) -> list[str]:
        width = self.screen.columns
        old = [
            "".join(row[x].data for x in range(width)).rstrip() for row in self.screen.history.top
        ]
        return [*old, *(line.rstrip() for line in self.screen.display)]


def stream(view: AnswerView, text: str, sizes: random.Random) -> None:
    at = 0
    while at < len(text):
        size = sizes.randint(1, 12)
        view.answer(text[at : at + size])
        view.tick()
        at += size


def test_two_hundred_lines_in_24_rows() -> None:
    terminal = Terminal()
    view = terminal.view()
    view.status("reading")
    view.tick()
    stream(view, WORDS, random.Random(1))
    view.end(["done"])
    text = [line for line in terminal.transcript() if line]
    assert text == [f"line {n} of the answer" for n in range(200)] + ["done"]


@pytest.mark.parametrize("seed", range(5))
def test_twenty_resizes_while_it_streams(seed: int) -> None:
    sizes = random.Random(seed)
    terminal = Terminal(columns=40, rows=30)
    view = terminal.view()
    view.status("reading")
    for part in range(20):
        stream(view, "\n".join(f"<{n}>" for n in range(part * 10, part * 10 + 10)) + "\n", sizes)
        terminal.resize(sizes.randint(12, 80), 30)
    view.end()
    shown = " ".join(terminal.transcript()).split()
    assert shown == [f"<{n}>" for n in range(200)]


def test_a_terminal_that_tells_its_new_width_late() -> None:
    terminal = Terminal(columns=30, rows=30)
    terminal.late = (40, 30)
    view = terminal.view()
    text = " ".join(f"word{n}" for n in range(200))
    stream(view, text, random.Random(4))
    view.end()
    assert "".join(terminal.transcript()).replace(" ", "") == text.replace(" ", "")


def test_a_long_line_of_code_and_tabs_in_thirty_columns() -> None:
    terminal = Terminal(columns=30)
    view = terminal.view()
    stream(view, "```\n" + "x" * 200 + "\n\ta\tb\n```\n", random.Random(2))
    view.end()
    text = "".join(terminal.transcript())
    assert text.count("x") == 200
    assert "    a   b" in text


def test_wide_characters_are_neither_cut_nor_doubled() -> None:
    terminal = Terminal(columns=21)
    view = terminal.view()
    stream(view, "日本語" * 40, random.Random(3))
    view.end()
    assert "".join(terminal.transcript()).replace(" ", "") == "日本語" * 40


def test_controls_never_reach_the_terminal() -> None:
    out: list[str] = []
    view = AnswerView(
        Screen(out.append, lambda: os.terminal_size((80, 24)), colour=False), clock=lambda: 1.0
    )
    for piece in ("a\x1b]0;ti", "tle\x07b\x1b", "[31mc\x9b2J", "\u202ed"):
        view.answer(piece)
        view.thinking(piece)
        view.line(piece)
    view.end(["\x1b[2Jclosing"])
    text = "".join(out)
    for mark in ("\x1b[31m", "\x1b[2J", "\x07", "\x9b", "\x1b]", "\u202e"):
        assert mark not in text


def test_what_is_typed_ahead_is_shown_and_then_gone() -> None:
    terminal = Terminal()
    view = terminal.view()
    view.answer("word ")
    terminal.typed = "my next question"
    for _ in range(20):
        view.tick()
    assert any("my next question" in line for line in terminal.transcript())
    view.end()
    assert not any("my next question" in line for line in terminal.transcript())


def test_the_spinner_leaves_nothing_behind() -> None:
    terminal = Terminal()
    view = terminal.view()
    view.status("reading")
    for _ in range(50):
        view.tick()
    assert any("reading" in line for line in terminal.transcript())
    view.end(["(interrupted)"])
    assert [line for line in terminal.transcript() if line] == ["(interrupted)"]
    assert terminal.screen.cursor.hidden is False


def test_thoughts_and_our_own_lines_keep_their_place() -> None:
    terminal = Terminal()
    view = terminal.view()
    view.thinking("let me ")
    view.thinking("see\nyes")
    view.answer("first")
    view.line("→ calculator(1+1)")
    view.answer("second")
    view.end()
    text = [line for line in terminal.transcript() if line]
    assert text == ["let me see", "yes", "first", "→ calculator(1+1)", "second"]
