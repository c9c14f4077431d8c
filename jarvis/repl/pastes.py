"""Long pastes: shown as one short mark, sent as what they are."""

from __future__ import annotations

import re

SHOWN_LINES = 8
SHOWN_CHARACTERS = 1_000
"""A paste up to this size is put into the line itself, where it can be edited."""

KEPT = 20
"""Pastes that a recalled line can still send."""

_MARK = re.compile(r"\[pasted \d+ lines?(?: #\d+)?\]")


def normalise(text: str) -> str:
    """A paste with ``\\n`` line ends, whatever the terminal sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Pastes:
    """The long pastes of this chat, by their marks."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """What stands in the line for ``text``: itself, or a mark when it is long."""
        text = normalise(text)
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= SHOWN_LINES and len(text) <= SHOWN_CHARACTERS:
            return text
        mark = name = f"[pasted {lines} line{'s' if lines != 1 else ''}]"
        number = 2
        while mark in self._kept:
            mark = f"{name[:-1]} #{number}]"
            number += 1
        self._kept[mark] = text
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return mark

    def expand(self, line: str) -> str:
        """The message with every mark replaced by what was pasted."""
        return _MARK.sub(lambda match: self._kept.get(match.group(), match.group()), line)

    def mark_before(self, text: str) -> str:
        """The mark that ``text`` ends with, or "": Backspace takes it away as one."""
        return next((mark for mark in self._kept if text.endswith(mark)), "")
