"""One answer on the terminal: what streams in, what is being waited for, what is typed ahead.

Safe to be called from two threads: the one that receives the answer, and the one that watches
the keyboard and redraws while nothing comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from jarvis.repl.inline import DIM
from jarvis.repl.markdown import Markdown
from jarvis.repl.screen import Screen
from jarvis.repl.spans import IN_ASCII, Line, Span, expand_tabs, fold_spans
from jarvis.security.terminal import TerminalFilter, sanitise

FRAME = 0.04
"""Seconds between two drawings at least: 25 a second look smooth."""
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER = "|/-\\"
_TYPED_LINES = 3


class AnswerView:
    """Draws one answer.

    Args:
        screen: where.
        theme: colours of code.
        typed: what has been typed ahead so far.
        unicode: whether the terminal shows more than ASCII.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        theme: str = "ansi_dark",
        typed: Callable[[], str] = lambda: "",
        unicode: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen = screen
        self._typed = typed
        self._unicode = unicode
        self._clock = clock
        self._lock = threading.RLock()
        self._filter = TerminalFilter()
        self._thoughts = TerminalFilter()
        self._markdown = Markdown(screen.width, theme, unicode=unicode)
        self._thought = ""
        self._settled: list[Line] = []
        self._status = ""
        self._status_since = clock()
        self._drawn_at = 0.0
        self._ended = False
        self.shown = False

    def status(self, text: str) -> None:
        """What is being waited for; empty: nothing."""
        with self._lock:
            if text != self._status:
                self._status, self._status_since = sanitise(text), self._clock()

    def answer(self, text: str) -> None:
        """A piece of the answer."""
        with self._lock:
            self._end_thought()
            self._status = ""
            self.shown = True
            self._markdown.width = self._screen.width
            self._settled += self._markdown.feed(self._filter.feed(text))
            self._draw_soon()

    def thinking(self, text: str) -> None:
        """A piece of the model's thoughts: dimmed, line by line."""
        with self._lock:
            self._status = ""
            *lines, self._thought = (self._thought + self._thoughts.feed(text)).split("\n")
            for line in lines:
                self._settled += self._dim(line)
            rows = self._dim(self._thought)
            if len(rows) > 1 and len(self._thought) > 2 * self._screen.width:
                cut = self._thought.rfind(" ", 0, -1)
                if cut > 0:
                    self._settled += self._dim(self._thought[:cut])
                    self._thought = self._thought[cut + 1 :]
            self._draw_soon()

    def line(self, text: str, style: str = DIM) -> None:
        """A line of our own between the pieces (a tool that runs, a warning)."""
        with self._lock:
            self._end_thought()
            if self.shown:
                self._settled += self._markdown.finish()
            width = self._screen.width
            for part in sanitise(text).split("\n"):
                self._settled += fold_spans([Span(expand_tabs(part), style)], width)
            self._draw(force=True)

    def tick(self) -> None:
        """Draws again where time alone changed something."""
        with self._lock:
            if not self._ended:
                self._draw_soon()

    def end(self, closing: Iterable[str] = ()) -> None:
        """The answer is over: everything is settled; ``closing`` are dim lines below it."""
        with self._lock:
            self._end_thought()
            self._markdown.width = self._screen.width
            self._settled += self._markdown.feed(self._filter.flush())
            self._settled += self._markdown.finish()
            for text in closing:
                self._settled += self._dim(sanitise(text))
            lines, self._settled = self._settled, []
            self._ended = True
            self._screen.end(lines)

    def _end_thought(self) -> None:
        if self._thought.strip():
            self._settled += self._dim(self._thought)
            self._settled.append([])
        self._thought = ""

    def _dim(self, text: str) -> list[Line]:
        if not self._unicode:
            text = text.translate(IN_ASCII)
        return fold_spans([Span(expand_tabs(text), DIM)], self._screen.width)

    def _draw_soon(self) -> None:
        if self._clock() - self._drawn_at >= FRAME:
            self._draw()

    def _draw(self, *, force: bool = False) -> None:
        if self._ended and not force:
            return
        lines, self._settled = self._settled, []
        self._screen.draw(lines, self._tail())
        self._drawn_at = self._clock()

    def _tail(self) -> list[Line]:
        rows = self._dim(self._thought) if self._thought else []
        rows += self._markdown.tail()
        if self._status:
            frames = _SPINNER if self._unicode else _ASCII_SPINNER
            seconds = self._clock() - self._status_since
            frame = frames[int(seconds * 10) % len(frames)]
            waited = f" {seconds:.0f} s" if seconds >= 2 else ""
            rows += fold_spans(
                [Span(f"{frame} ", "36"), Span(f"{self._status}{waited}", DIM)],
                self._screen.width,
            )
        typed = self._typed()
        if typed:
            mark = "› " if self._unicode else "> "
            for line in sanitise(typed).rstrip("\n").split("\n")[-_TYPED_LINES:]:
                rows += fold_spans([Span(mark + expand_tabs(line), DIM)], self._screen.width)
        return rows
