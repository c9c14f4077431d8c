"""Writing an answer to a terminal: finished lines once, the unfinished tail again and again.

No alternate screen and no absolute position: finished lines scroll into the scrollback like the
output of any program. After the tail is drawn, the cursor goes back to where the tail begins.
Erasing is then "from here to the end of the screen", which stays right when the window was
resized in between, whether the terminal folds old lines anew or not; moving up by a counted
number of rows would not. A terminal may be narrower already than it says (tmux tells a new size
a quarter of a second late), so the tail is drawn without wrapping: a row of it is one row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from jarvis.repl.spans import Line, paint

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_ERASE_BELOW = "\x1b[J"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Screen:
    """Draws lines and a tail.

    Args:
        write: takes the text for the terminal, at once.
        size: tells columns and rows, as they are now.
        colour: whether styles are written.
    """

    def __init__(
        self, write: Callable[[str], None], size: Callable[[], os.terminal_size], *, colour: bool
    ) -> None:
        self._write = write
        self._size = size
        self._colour = colour
        self._drawn = ""
        self._hidden = False

    @property
    def width(self) -> int:
        """Columns of the terminal, now."""
        return max(2, self._size().columns)

    def draw(self, settled: Sequence[Line], tail: Sequence[Line] = ()) -> None:
        """Writes ``settled`` for good and shows ``tail`` below it, in place of the last tail."""
        below = self._tail(tail)
        if not settled and below == self._drawn:
            return
        out = _BEGIN + ("" if self._hidden else _HIDE)
        out += _ERASE_BELOW if self._drawn else ""
        out += "".join(paint(line, self._colour) + "\r\n" for line in settled)
        self._write(out + below + _END)
        self._drawn, self._hidden = below, True

    def end(self, settled: Sequence[Line] = ()) -> None:
        """Writes the last lines; the tail is gone and the cursor is back."""
        if not (settled or self._drawn or self._hidden):
            return
        out = _ERASE_BELOW if self._drawn else ""
        out += "".join(paint(line, self._colour) + "\r\n" for line in settled)
        self._write(out + (_SHOW if self._hidden else ""))
        self._drawn, self._hidden = "", False

    def _tail(self, lines: Sequence[Line]) -> str:
        """The tail as it is written: only what fits, with the cursor put back to its begin."""
        lines = lines[-max(1, self._size().lines - 1) :]
        if not lines:
            return ""
        text = "\r\n".join(paint(line, self._colour) for line in lines)
        up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        return f"{_NO_WRAP}{text}{_WRAP}\r{up}"
