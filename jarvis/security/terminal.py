"""Text from outside, made harmless for a terminal.

Everything that a model, a memory, a document or a tool said passes through here before it is
shown. Two ways, for two places:

``TerminalFilter`` (and ``sanitise``, for a whole text)
    keeps text as text over several lines and takes out what would *act* on the terminal. It
    works on a stream: a sequence split over any number of pieces is still recognised.
``escape_controls``
    makes one line of a text and shows what would act, instead of hiding it
    (``escape_json`` does the same for a line of JSON, in JSON's own escapes).

What acts: the C0 and C1 controls, the escape sequences they begin (CSI, OSC, DCS, APC, PM, SOS
and the short ones; ECMA-48, 5.2–5.6), bidirectional controls (the "Trojan Source" attack,
CVE-2021-42574) and Unicode tag characters, which are invisible.

A complete escape sequence is dropped whole, an incomplete one loses only the control characters
in it: what stood behind a stray ESC is still shown.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OTHER = "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
_ACTING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}{_OTHER}]")
_ACTING_IN_A_LINE = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{_BIDI}{_OTHER}]")

_LINE_ENDS = frozenset("\x0b\x0c\x85\u2028\u2029")
_C1_INTRODUCERS = {"\x9b": "[", "\x9d": "]", "\x90": "P", "\x98": "X", "\x9e": "^", "\x9f": "_"}
_STRING_INTRODUCERS = frozenset("]PX^_")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

MAX_SEQUENCE = 65_536
"""Characters of an unfinished control string that are held back before they count as text."""


class _State(Enum):
    TEXT = auto()
    ESCAPE = auto()
    CSI = auto()
    STRING = auto()
    STRING_ESCAPE = auto()


class TerminalFilter:
    """Takes what acts on a terminal out of a stream of text.

    Line ends of every kind become ``\\n``; tabs stay. A lone surrogate becomes U+FFFD.
    Feeding a text in any pieces gives the same as feeding it whole.
    """

    def __init__(self) -> None:
        self._state = _State.TEXT
        self._held: list[str] = []
        self._after_return = False

    def feed(self, text: str) -> str:
        """Returns what may be shown of ``text``, and of what was held back before it."""
        if self._state is _State.TEXT and not self._after_return and not _ACTING.search(text):
            return text
        out: list[str] = []
        position, length = 0, len(text)
        while position < length:
            if self._state is _State.TEXT:
                position = self._plain(text, position, out)
            elif self._step(text[position], out):
                position += 1
        return "".join(out)

    def flush(self) -> str:
        """Ends the stream: returns the text of a sequence that never ended."""
        out: list[str] = []
        self._give_up(out)
        self._after_return = False
        return "".join(out)

    def _plain(self, text: str, position: int, out: list[str]) -> int:
        if self._after_return:
            self._after_return = False
            if text[position] == "\n":
                return position + 1
        match = _ACTING.search(text, position)
        if match is None:
            out.append(text[position:])
            return len(text)
        out.append(text[position : match.start()])
        character = match.group()
        if character == "\r":
            out.append("\n")
            self._after_return = True
        elif character in _LINE_ENDS:
            out.append("\n")
        elif character == "\x1b":
            self._state = _State.ESCAPE
        elif character in _C1_INTRODUCERS:
            self._begin(_C1_INTRODUCERS[character])
        elif "\ud800" <= character <= "\udfff":
            out.append("\ufffd")
        return match.end()

    def _begin(self, introducer: str) -> None:
        self._held = [introducer]
        self._state = _State.STRING if introducer in _STRING_INTRODUCERS else _State.CSI

    def _step(self, character: str, out: list[str]) -> bool:
        """Takes one character inside a sequence; False: look at it again as text."""
        if self._state is _State.STRING_ESCAPE:
            self._state = _State.STRING
            if character == "\\":
                self._drop()
                return True
            self._give_up(out)
            self._state = _State.ESCAPE
            return False
        if character == "\x1b":
            if self._state is _State.STRING:
                self._state = _State.STRING_ESCAPE
            else:
                self._give_up(out)
                self._state = _State.ESCAPE
            return True
        if self._state is _State.ESCAPE:
            return self._step_escape(character, out)
        if self._state is _State.CSI:
            return self._step_csi(character, out)
        return self._step_string(character, out)

    def _step_escape(self, character: str, out: list[str]) -> bool:
        if not self._held and (character == "[" or character in _STRING_INTRODUCERS):
            self._begin(character)
        elif " " <= character <= "/" and len(self._held) < 8:
            self._held.append(character)
        elif "0" <= character <= "~":
            self._drop()
        else:
            self._give_up(out)
            return False
        return True

    def _step_csi(self, character: str, out: list[str]) -> bool:
        if "@" <= character <= "~":
            self._drop()
        elif " " <= character <= "?" and len(self._held) < 256:
            self._held.append(character)
        else:
            self._give_up(out)
            return False
        return True

    def _step_string(self, character: str, out: list[str]) -> bool:
        if character == "\x9c" or (character == "\x07" and self._held[0] == "]"):
            self._drop()
        elif character in "\n\r\x18\x1a" or len(self._held) >= MAX_SEQUENCE:
            self._give_up(out)
            return False
        else:
            self._held.append(character)
        return True

    def _drop(self) -> None:
        self._held.clear()
        self._state = _State.TEXT

    def _give_up(self, out: list[str]) -> None:
        """The sequence never ended: what it held is text, without its control characters."""
        out.append(_ACTING.sub("", "".join(self._held)))
        self._drop()


def sanitise(text: str) -> str:
    """Returns ``text`` as it may be shown on a terminal, lines and tabs kept."""
    if not _ACTING.search(text):
        return text
    stream = TerminalFilter()
    return stream.feed(text) + stream.flush()


def escape_controls(text: str) -> str:
    r"""Returns ``text`` as one line; line ends, tabs and what acts stand there as escapes.

    ``\n``, ``\t``, ``\r``, else ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``. A backslash of the text
    stays as it is: the line is for reading, the exact text is in the JSON output.
    """
    return _ACTING_IN_A_LINE.sub(_escaped, text)


def escape_json(line: str) -> str:
    r"""Returns ``line``, a JSON text without line ends, with what acts as JSON escapes.

    It stands for the same value: these characters occur only in strings. A lone surrogate (a
    file name in another encoding) has no UTF-8, but its escape has.
    """
    return _ACTING_IN_A_LINE.sub(_json_escaped, line)


def _json_escaped(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
