"""Where a chat is shown: a real terminal, or one that can only print lines.

Both offer the same: show an answer, echo words, ask yes or no, run work that Ctrl-C ends.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from jarvis.cli import output
from jarvis.repl.interrupts import Interrupts
from jarvis.repl.keyboard import Watch, cooked
from jarvis.repl.screen import Screen
from jarvis.repl.view import AnswerView
from jarvis.security.terminal import sanitise

T = TypeVar("T")


class Surface(Protocol):
    """What commands need of the terminal."""

    def answer(self, text: str, closing: Iterable[str] = ()) -> None:
        """Shows a whole answer, with dim lines below it."""
        ...

    def echo(self, text: str) -> None:
        """Shows words of the user as if they had just been typed."""
        ...

    def yes(self, question: str) -> bool:
        """Asks; anything but y is no."""
        ...

    def interruptible(self, work: Callable[[], T]) -> T | None:
        """Runs ``work``, which Ctrl-C ends (and not the chat); None when it was ended."""
        ...

    def pick(self, rows: Sequence[str], question: str) -> int | None:
        """Lets the user choose a row; None when nothing was chosen."""
        ...

    def edit(self, draft: str) -> str:
        """Lets the user write in their editor."""
        ...

    def take_typed(self) -> str:
        """What was typed while ``interruptible`` work ran, once; it ends with Enter if that did."""
        ...


def write(text: str) -> None:
    """Writes to the terminal at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


class Terminal:
    """A terminal that can move its cursor, in raw mode while the chat lasts.

    Args:
        theme: colours of code.
    """

    def __init__(self, theme: str = "ansi_dark") -> None:
        self.out = output.stdout()
        self.theme = theme
        self.descriptor = sys.stdin.fileno()
        self.interrupts = Interrupts()
        self._typed = ""
        self.mark = "› " if self.out.unicode else "> "

    def size(self) -> os.terminal_size:
        """Columns and rows, now."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return os.terminal_size((80, 24))
        columns = size.columns or 80
        wanted = os.environ.get("COLUMNS", "")
        if wanted.isdecimal() and int(wanted):
            columns = min(columns, int(wanted))  # set by hand; a stale one may be too large
        return os.terminal_size((columns, size.lines or 24))

    def view(self, typed: Callable[[], str] = lambda: "") -> AnswerView:
        """A place for one answer."""
        return AnswerView(
            Screen(write, self.size, colour=self.out.colour),
            theme=self.theme,
            typed=typed,
            unicode=self.out.unicode,
        )

    def answer(self, text: str, closing: Iterable[str] = ()) -> None:
        """Shows a whole answer."""
        view = self.view()
        view.answer(text)
        view.end(closing)

    def echo(self, text: str) -> None:
        """Shows words of the user."""
        view = self.view()
        for number, line in enumerate(text.split("\n")):
            view.line((self.mark if number == 0 else "  ") + line, "1")
        view.end()

    def yes(self, question: str) -> bool:
        """Asks for one key."""
        write(f"{sanitise(question)} [y/N] ")
        watch = Watch(self.descriptor, self.interrupts)
        try:
            with watch.during():
                key = watch.ask()
        except KeyboardInterrupt:
            key = ""
        write(f"{key if key.isprintable() else ''}\r\n")
        return key.lower() == "y"

    def interruptible(self, work: Callable[[], T]) -> T | None:
        """Runs ``work``; Ctrl-C breaks out of it."""
        watch = Watch(self.descriptor, self.interrupts)
        try:
            with watch.during():
                return work()
        except KeyboardInterrupt:
            output.note("(interrupted)")
            # Whoever stops the work looks at it first: what was typed waits in the next line.
            watch.typed.text = watch.typed.text.rstrip("\n")
            return None
        finally:
            self._typed += watch.typed.take()

    def take_typed(self) -> str:
        """What was typed meanwhile."""
        typed, self._typed = self._typed, ""
        return typed

    def pick(self, rows: Sequence[str], question: str) -> int | None:
        """Lets the user choose with the arrows."""
        from jarvis.repl.picker import pick

        return pick(rows, question)

    def edit(self, draft: str) -> str:
        """Runs the editor with the terminal as other programs expect it."""
        from jarvis.services.editor import edited

        with cooked(self.descriptor):
            return edited(draft)


class PlainTerminal:
    """A terminal without a cursor: raw text, whole lines, no escapes."""

    def __init__(self) -> None:
        self.out = output.stdout()

    def ask(self) -> str:
        """The next message; lines that arrive together (a paste) are one.

        Raises:
            EOFError: the input has ended.
        """
        output.stderr().write("> ")
        descriptor = sys.stdin.fileno()
        data = os.read(descriptor, 65536)
        while data and select.select([descriptor], [], [], 0.015)[0]:
            more = os.read(descriptor, 65536)
            if not more:
                break
            data += more
        if not data:
            output.stderr().write("\n")
            raise EOFError
        text = data.decode("utf-8", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")

    def answer(self, text: str, closing: Iterable[str] = ()) -> None:
        """Prints an answer as it is."""
        output.emit_text(text)
        for line in closing:
            output.note(line)

    def echo(self, text: str) -> None:
        """Prints words of the user."""
        output.emit_text(f"> {text}")

    def yes(self, question: str) -> bool:
        """Asks for a line."""
        output.stderr().write(f"{sanitise(question)} [y/N] ")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def interruptible(self, work: Callable[[], T]) -> T | None:
        """Runs ``work``; SIGINT breaks out of it."""
        try:
            return work()
        except KeyboardInterrupt:
            output.note("(interrupted)")
            return None

    def pick(self, rows: Sequence[str], question: str) -> int | None:
        """Prints the rows and asks for a number."""
        for number, row in enumerate(rows, 1):
            output.emit_text(f"{number:3} {row}")
        output.stderr().write(f"{question} ")
        answer = sys.stdin.readline().strip()
        chosen = int(answer) if answer.isdecimal() else 0
        return chosen - 1 if 0 < chosen <= len(rows) else None

    def edit(self, draft: str) -> str:
        """Runs the editor."""
        from jarvis.services.editor import edited

        return edited(draft)

    def take_typed(self) -> str:
        """Nothing: the terminal itself keeps it for the next line."""
        return ""
