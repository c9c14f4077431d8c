"""Two progress bars on stderr: one for the file at hand, one for all of them.

Where stderr is no terminal that can move its cursor, a line at every tenth of the whole
(``jarvis.cli.progress``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from jarvis.cli import output
from jarvis.cli.progress import Progress
from jarvis.security.terminal import escape_controls

READING_SHARE = 0.1
"""Part of a file's bar that is reading; embedding is what takes the time."""


class FileBars:
    """How far the current file is, and how far all of them are.

    Args:
        files: how many there are.
    """

    def __init__(self, files: int) -> None:
        self.files = files
        self._rich: Any = None
        self._plain: Progress | None = None
        self._file: Any = None
        self._all: Any = None
        self._state = ("", 1, "", "", 0, 0)

    def __enter__(self) -> FileBars:
        if not output.stderr().cursor:
            self._plain = Progress("reading", total=self.files or None)
            self._plain.__enter__()
            return self
        self._open()
        return self

    def _open(self) -> None:
        """Draws the bars anew. A bar that was stopped would, started again, wipe what was written
        below it since."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        out = output.stderr()
        self._rich = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True, no_color=not out.colour),
            transient=True,
        )
        self._file = self._rich.add_task("", total=None, unit="")
        self._all = self._rich.add_task(
            "all files", total=self.files, unit="files", visible=self.files > 1
        )
        self._show()
        self._rich.start()

    def _show(self) -> None:
        name, number, stage, unit, done, total = self._state
        self._rich.update(
            self._file,
            description=f"{stage} {name}",
            completed=done,
            total=total or None,
            unit=unit if total else "",
        )
        self._rich.update(self._all, completed=number - 1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._rich is not None:
            self._rich.stop()
        if self._plain is not None:
            self._plain.__exit__(kind, error, trace)

    def update(self, name: str, number: int, stage: str, unit: str, done: int, total: int) -> None:
        """Shows that file ``number`` (from 1) is at ``done`` of ``total`` in a stage."""
        part = done / total if total else 0.0
        reading = stage == "reading"
        share = part * READING_SHARE if reading else READING_SHARE + part * (1 - READING_SHARE)
        safe = escape_controls(name)
        if self._plain is not None:
            amount = f" {done}/{total} {unit}" if total else ""
            text = f"{number}/{self.files} {safe}: {stage}{amount}"
            self._plain.update(text, done=number - 1 + share)
            return
        self._state = (safe, number, stage, unit, done, total)
        self._show()

    @contextmanager
    def away(self) -> Iterator[None]:
        """While it lasts, the bars are off the terminal: something else is written there."""
        if self._rich is None:
            with output.quiet_line():
                yield
            return
        self._rich.stop()
        try:
            yield
        finally:
            self._open()
