"""A person at a terminal: types, waits, reads the whole transcript."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pexpect
import pyte

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0
"""Seconds until a test gives up on something that must happen."""


class Person:
    """Runs a program on a terminal of a fixed size.

    Args:
        arguments: of the program.
        program: the Python interpreter, unless told.
        env: beside the inherited environment, which loses its JARVIS_ variables.
    """

    def __init__(
        self,
        *arguments: str,
        program: str = sys.executable,
        env: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        unset: tuple[str, ...] = (),
    ) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("JARVIS_") and name not in {"NO_COLOR", "FORCE_COLOR", *unset}
        }
        self.raw = b""
        self.screen = pyte.HistoryScreen(columns, rows, history=50_000, ratio=1.0)
        self._stream = pyte.ByteStream(self.screen)
        self.process: Any = pexpect.spawn(
            program,
            list(arguments),
            dimensions=(rows, columns),
            env={**kept, "TERM": "xterm-256color", "PYTHONDEVMODE": "", **env},
            cwd=str(ROOT),
            encoding=None,
        )
        # The terminal answers questions (where is the cursor?), as real ones do.
        setattr(self.screen, "write_process_input", self.process.send)  # noqa: B010 -- a method

    def type(self, text: str) -> None:
        """Presses keys."""
        self.process.send(text)

    def send(self, text: str) -> None:
        """Types a line and presses Enter, as two presses that a person makes."""
        self.type(text)
        self.look(0.1)
        self.type("\r")

    def look(self, seconds: float) -> None:
        """Reads what comes for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                data = self.process.read_nonblocking(65536, 0.02)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                return
            self.raw += data
            self._stream.feed(data)

    def until(self, condition: Callable[[], bool] | str) -> None:
        """Reads until something holds, or a text is on the screen."""
        holds = condition if callable(condition) else lambda: condition in self.text
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"waited in vain for {condition!r}:\n{self.text}"
            self.look(0.05)

    def resize(self, columns: int, rows: int) -> None:
        """Makes the window another size."""
        self.screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    @property
    def lines(self) -> list[str]:
        """The scrollback and the screen, without blanks at the ends of lines."""
        old = [
            "".join(row[x].data for x in range(self.screen.columns)).rstrip()
            for row in self.screen.history.top
        ]
        return [*old, *(line.rstrip() for line in self.screen.display)]

    @property
    def text(self) -> str:
        """The lines as one text, blank ones at the end left out."""
        return "\n".join(self.lines).rstrip()

    def transcript(self) -> list[str]:
        """The lines that are not blank, without the toolbar."""
        return [line for line in self.lines if line and "· /help" not in line]

    @property
    def at_prompt(self) -> bool:
        """Whether the cursor stands in an empty input line."""
        row = self.screen.display[self.screen.cursor.y].rstrip()
        return row in {"›", ">"} and self.screen.cursor.x == 2

    def leave(self) -> int:
        """Presses Ctrl-D and returns the exit code."""
        self.type("\x04")
        self.until(lambda: not self.process.isalive())
        self.look(0.1)
        self.process.close()
        return int(self.process.exitstatus)

    def kill(self) -> None:
        """Ends the program whatever it does."""
        self.process.close(force=True)
