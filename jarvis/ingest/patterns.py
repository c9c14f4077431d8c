"""What headings look like in plain type, shared by the extractors that see no styles."""

from __future__ import annotations

import re

NUMBERED_HEADING = re.compile(
    r"(?:chapter|clause|section|article|part|appendix|annex|schedule|book|kapitel|abschnitt|artikel"
    r"|chapitre|cap[ií]tulo|§)\s*(?:\d+|[ivxlc]+\b|[a-z]\b)",
    re.IGNORECASE,
)
"""A word for a part and its number: "Clause 7", "Chapter IV", "§ 12"."""
