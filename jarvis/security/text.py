"""Cleaning at the edge: what may be stored and put before a model.

Everything that comes from a user, a model, a document, a tool or the network goes through
``clean`` once, where it enters. Postgres takes neither NUL nor lone surrogates; invisible
format characters and tag characters carry instructions that nobody can see.
"""

from __future__ import annotations

import re
import unicodedata

_DROPPED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls but tab, newline, CR, NEL
    "\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control, invisible, bidi and tag characters, and variation selectors without a glyph."""

_JOINERS = re.compile("(?<![^\\s])[\u200c\u200d]+|[\u200c\u200d]{2,}|[\u200c\u200d]+(?![^\\s])")
"""Joiners that join nothing: at an edge of a word or several in a row."""


def clean(text: str) -> str:
    """``text`` without what a database refuses or a reader cannot see.

    NUL and other control characters (but tab and newline), lone surrogates, bidi controls, tag
    characters and invisible fillers are removed; line ends become ``\\n``. The result is NFC
    where that loses nothing. Letters, emoji sequences and spaces stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n")
    text = text.replace("\u2028", "\n").replace("\u2029", "\n\n")
    text = _DROPPED.sub("", text)
    text = _JOINERS.sub("", text)
    return unicodedata.normalize("NFC", text)


def clean_line(text: str) -> str:
    """``clean``, and white space collapsed: for titles, names, categories, facts."""
    return " ".join(clean(text).split())


def clean_deep(value: object) -> object:
    """``clean`` for every string inside JSON-like data (keys too)."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_deep(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): clean_deep(item) for key, item in value.items()}
    return value
