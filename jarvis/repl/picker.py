"""Choosing one of several lines, in place: no alternate screen, gone when it is done."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from jarvis.security.terminal import escape_controls

SHOWN = 10
"""Lines shown at once."""


def pick(rows: Sequence[str], question: str) -> int | None:
    """Lets the user choose a row with the arrows or by typing a part of it.

    Returns:
        The index of the row; None when the user left with Escape or Ctrl-C.
    """
    chooser = Chooser(rows)
    keys = KeyBindings()

    @keys.add("up")
    @keys.add("c-p")
    def up(event: KeyPressEvent) -> None:
        chooser.move(-1)

    @keys.add("down")
    @keys.add("c-n")
    def down(event: KeyPressEvent) -> None:
        chooser.move(1)

    @keys.add("enter")
    def take(event: KeyPressEvent) -> None:
        event.app.exit(result=chooser.chosen)

    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d")
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    @keys.add("backspace")
    def shorten(event: KeyPressEvent) -> None:
        chooser.filter(chooser.words[:-1])

    @keys.add("<any>")
    def typed(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            chooser.filter(chooser.words + event.data)

    def text() -> StyleAndTextTuples:
        lines: StyleAndTextTuples = [("bold", f"{question} {chooser.words}\n")]
        for shown, row in chooser.visible():
            style = "reverse" if shown == chooser.chosen else ""
            lines.append((style, f"  {escape_controls(row)}"))
            lines.append(("", "\n"))
        return lines[:-1]

    application: Application[int | None] = Application(
        layout=Layout(Window(FormattedTextControl(text, show_cursor=False), wrap_lines=False)),
        key_bindings=keys,
        erase_when_done=True,
    )
    return application.run()


class Chooser:
    """Which rows fit what was typed, and which one is chosen."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._fitting = list(range(len(rows)))
        self._at = 0
        self.words = ""

    @property
    def chosen(self) -> int | None:
        """The index of the chosen row; None when no row fits."""
        return self._fitting[self._at] if self._fitting else None

    def move(self, step: int) -> None:
        """Goes up or down, round the ends."""
        if self._fitting:
            self._at = (self._at + step) % len(self._fitting)

    def filter(self, words: str) -> None:
        """Keeps the rows that hold every word."""
        self.words = words
        wanted = words.casefold().split()
        self._fitting = [
            index
            for index, row in enumerate(self._rows)
            if all(word in row.casefold() for word in wanted)
        ]
        self._at = 0

    def visible(self) -> list[tuple[int, str]]:
        """The rows around the chosen one, with their indexes."""
        first = max(0, min(self._at - SHOWN // 2, len(self._fitting) - SHOWN))
        return [(index, self._rows[index]) for index in self._fitting[first : first + SHOWN]]
