"""The keyboard while an answer streams: Ctrl-C, and typing ahead.

For the whole chat the terminal neither echoes nor makes signals of keys (``raw``), so Ctrl-C
reaches Jarvis alone and not the ``make`` around it. While work runs, a thread reads the keys:
Ctrl-C goes to the state machine, anything else is kept and becomes the next message. Work that
does not come to an event is broken out of with SIGINT, sent to the main thread itself: only that
wakes it out of a blocking read.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import select
import signal
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jarvis.repl.interrupts import Interrupts

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_processor import KeyPress

TICK = 0.05
"""Seconds between two looks at the clock while no key comes."""
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Keys arrive at once, unechoed, and make no signals; output stays as it is."""
    before = termios.tcgetattr(descriptor)
    mode = termios.tcgetattr(descriptor)
    mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def cooked(descriptor: int) -> Iterator[None]:
    """The usual mode, for a program of the user's (an editor) or a question."""
    before = termios.tcgetattr(descriptor)
    mode = termios.tcgetattr(descriptor)
    mode[0] |= termios.ICRNL | termios.IXON
    mode[3] |= termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class TypedAhead:
    """What was typed while work ran: one text, with the usual editing keys.

    It ends with a line end where Enter was pressed last: a finished message.
    """

    def __init__(self) -> None:
        self.text = ""

    def take(self) -> str:
        """The text, which is then forgotten here."""
        text, self.text = self.text, ""
        return text

    def key(self, name: str, data: str) -> None:
        """One key, by prompt-toolkit's name."""
        if name in {"c-m", "c-j"}:
            self.text += "\n"
        elif name == "<bracketed-paste>":
            # The line end that a copied line brings along is no Enter.
            self.text += data.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
        elif name in {"c-h", "delete"}:
            self.text = self.text[:-1]
        elif name == "c-u":
            self.text = ""
        elif name == "c-w":
            self.text = self.text.rstrip().rpartition(" ")[0]
            self.text += " " if self.text else ""
        elif name == "c-i":
            self.text += "\t"
        elif len(name) == 1 and name.isprintable():
            self.text += name


class Watch:
    """Reads the keys while work runs.

    Args:
        descriptor: the terminal, in raw mode.
        interrupts: told of Ctrl-C.

    Attributes:
        tick: called often, on the watching thread.
        typed: what was typed ahead.
    """

    def __init__(self, descriptor: int, interrupts: Interrupts) -> None:
        self._descriptor = descriptor
        self._interrupts = interrupts
        self.tick: Callable[[], None] = lambda: None
        self.typed = TypedAhead()
        self._wake = (-1, -1)
        self._lock = threading.Lock()
        self._break_allowed = False
        self._asked: queue.SimpleQueue[str] | None = None

    def ask(self) -> str:
        """Waits for one key, which is not typed ahead; Ctrl-C answers "" and stops the work."""
        answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked = answers
        try:
            return answers.get()
        finally:
            self._asked = None

    @contextlib.contextmanager
    def during(
        self, write: Callable[[str], None] = lambda _: None, before: Sequence[KeyPress] = ()
    ) -> Iterator[Watch]:
        """Watches until the block ends. The block may be left by ``KeyboardInterrupt``.

        Args:
            write: writes to the terminal; asked to mark pastes.
            before: keys that were read already.
        """
        previous = signal.signal(signal.SIGINT, self._on_signal)
        self._wake = os.pipe()
        self._interrupts.begin()
        self._break_allowed = True
        thread = threading.Thread(target=self._run, name="keyboard", daemon=True)
        for press in before:
            self._on_key(press)
        write(_PASTE_ON)
        thread.start()
        try:
            yield self
        finally:
            # Before anything else: from here on no signal may break into the cleaning-up.
            self._break_allowed = False
            with self._lock:
                self._interrupts.end()
            os.write(self._wake[1], b"x")
            thread.join()
            os.close(self._wake[0])
            os.close(self._wake[1])
            write(_PASTE_OFF)
            signal.signal(signal.SIGINT, previous)

    def _on_signal(self, number: int, frame: Any) -> None:
        """SIGINT from our own thread breaks; one from outside counts as a press."""
        if self._broken:
            self._broken = False
            if self._break_allowed:
                raise KeyboardInterrupt
            return
        self._interrupts.press(time.monotonic())

    _broken = False

    def _run(self) -> None:
        from prompt_toolkit.input.vt100_parser import Vt100Parser

        parser = Vt100Parser(self._on_key)
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        main = threading.main_thread().ident
        idle_since_escape = False
        while True:
            ready, _, _ = select.select([self._descriptor, self._wake[0]], [], [], TICK)
            if self._wake[0] in ready:
                parser.flush()
                return
            if self._descriptor in ready:
                data = self._read()
                if not data:
                    self._interrupts.press(time.monotonic())  # the terminal went away
                    time.sleep(TICK)
                parser.feed(decoder.decode(data))
                idle_since_escape = False
            elif not idle_since_escape:
                parser.flush()
                idle_since_escape = True
            with self._lock:
                due = self._interrupts.due(time.monotonic())
                if due and main is not None:
                    self._broken = True
                    signal.pthread_kill(main, signal.SIGINT)
            self.tick()

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 65536)
        except OSError:
            return b""

    def _on_key(self, press: KeyPress) -> None:
        name = str(getattr(press.key, "value", press.key))
        stop = name == "c-c"
        if stop:
            with self._lock:
                self._interrupts.press(time.monotonic())
        asked = self._asked
        if asked is not None:
            asked.put("" if stop else name)
        elif not stop:
            self.typed.key(name, press.data)
