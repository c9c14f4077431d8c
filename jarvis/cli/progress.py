"""A spinner or a bar on stderr, for people who wait.

Shown only where stderr is a terminal that can move its cursor, and only after a moment; where
it is not, a bar says a line at every tenth, and a spinner says nothing. The cursor is never
hidden, so nothing has to be put back after Ctrl-C.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from jarvis.cli.output import Output, stderr
from jarvis.security.terminal import escape_controls

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_FRAMES = "|/-\\"
DELAY = 0.3
"""Seconds before the line appears: what is quick needs no spinner."""
INTERVAL = 0.1

_lock = threading.RLock()
_shown: list[Progress] = []


@contextmanager
def out_of_the_way() -> Iterator[None]:
    """Takes a running line off the terminal while something else is written there."""
    with _lock:
        for line in _shown:
            line.erase()
        yield


class Progress:
    """One line that changes until the block ends; then it is gone.

    Args:
        text: what is being done.
        total: the amount that is 100 %, in whatever unit ``update`` counts; None: a spinner.
    """

    def __init__(self, text: str, total: float | None = None) -> None:
        self._out: Output = stderr()
        self._text = text
        self._total = total
        self._done = 0.0
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._visible = False
        self._tenth = 0
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._out.cursor:
            with _lock:
                _shown.append(self)
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        with _lock:
            self.erase()
            if self in _shown:
                _shown.remove(self)
        if self._thread is not None:
            self._thread.join()

    def update(
        self, text: str | None = None, *, done: float | None = None, total: float | None = None
    ) -> None:
        """Changes the line; any thread may call it."""
        with _lock:
            self._text = self._text if text is None else text
            self._done = self._done if done is None else done
            self._total = self._total if total is None else total
            if not self._out.cursor and self._total:
                tenth = int(10 * self._done / self._total)
                if tenth > self._tenth:
                    self._tenth = tenth
                    self._out.write(f"{escape_controls(self._text)}: {tenth * 10} %\n")

    def erase(self) -> None:
        """Takes the line off the terminal; the next tick draws it again."""
        if self._visible:
            self._out.write("\r\x1b[K")
            self._visible = False

    def _run(self) -> None:
        tick = 0
        if self._stop.wait(DELAY):
            return
        while not self._stop.is_set():
            with _lock:
                if not self._stop.is_set() and _shown and _shown[-1] is self:
                    self._out.write("\r\x1b[K" + self._line(tick))
                    self._visible = True
            tick += 1
            if self._stop.wait(INTERVAL):
                return

    def _line(self, tick: int) -> str:
        from jarvis.cli.table import cell_width, fold

        frames = FRAMES if self._out.unicode else ASCII_FRAMES
        head = frames[tick % len(frames)] + " "
        if self._total:
            share = min(1.0, self._done / self._total)
            seconds = time.monotonic() - self._started
            left = f" {seconds * (1 - share) / share:.0f} s left" if 0.01 < share < 1 else ""
            head += f"{share * 100:3.0f} %{left} "
        room = max(1, (Output.of(sys.stderr).width or 80) - cell_width(head) - 1)
        return self._out.style(head, "cyan") + fold(escape_controls(self._text), room)[0]
