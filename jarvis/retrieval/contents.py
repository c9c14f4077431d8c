"""Whether a passage is a table of contents: it names every part of a document and says nothing.

By its words it answers every question about the document, so it would stand before the page that
the question is about.
"""

from __future__ import annotations

import itertools
import re

FEWEST = 4
"""Entries that make a table of contents."""

SHARE = 0.6
"""Share of the lines that are entries."""

RISING = 0.8
"""Share of neighbouring entries whose pages do not fall: those of a contents never do, but lines
may be in a wrong order, or the numbering may begin again behind the preface."""

LONGEST = 200
"""Characters of the name of a part; a longer line is text that happens to end in a number."""

_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,7})$")
_LEADER = " \t.\u2026\u00b7_"


def lists(text: str) -> bool:
    """Whether ``text`` is mostly entries with the page that each is on."""
    lines = [line for line in (line.strip() for line in text.splitlines()) if line]
    entries = [entry for entry in map(_entry, lines) if entry is not None]
    if len(entries) < max(FEWEST, SHARE * len(lines)):
        return False
    if sum(led for _, led in entries) >= FEWEST:
        return True
    # Without dots between it may be a table of prices, or of results.
    pages = [int(page) for page, _ in entries if page.isdigit()]
    pairs = list(itertools.pairwise(pages))
    rising = sum(first <= second for first, second in pairs)
    return len(pairs) >= 2 * FEWEST and len(set(pages)) > FEWEST and rising >= RISING * len(pairs)


def _entry(line: str) -> tuple[str, bool] | None:
    """The page of an entry, and whether dots lead to it; None for any other line."""
    match = _PAGE.search(line, max(0, len(line) - 8))
    if match is None:
        return None
    before = line[: match.start()]
    name = before.rstrip(_LEADER)
    leader = before[len(name) :]
    if not leader or not 2 < len(name) <= LONGEST:
        return None
    return match.group(), len(leader.strip()) > 2 or "\u2026" in leader
