"""Whether a message only tells something: it is acknowledged, not answered at length.

A guess by words, made in every turn before the model is asked. The rules of the extraction know
better, and take a tenth of a second to load.
"""

from __future__ import annotations

import re

LONGEST = 300
"""Characters; who writes more wants more of an answer."""

_SELF = re.compile(
    r"(?:(?:hi|hello|hey|by the way)\b[^\w]*)?"
    r"(?:i(?:['\u2019](?:m|ve|ll))?|my|we(?:['\u2019](?:re|ve))?|our|people call me)\s",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?|(?:would|['\u2019]d) (?:like|love)\b|\bcan(?:not|['\u2019]t)\b"
    r"|\b(?:want|need|wonder|wish|please|what|who|where|why|how|which|tell|write|give|show"
    r"|explain|help|suggest|recommend|list|translate|summari[sz]e|draft|find|make|create|describe"
    r"|compare|remind)\b",
    re.IGNORECASE,
)


def tells(message: str) -> bool:
    """Whether each sentence speaks of the user, and none asks for anything (English only)."""
    text = message.strip()
    if not text or len(text) > LONGEST or _ASKS.search(text):
        return False
    return all(_SELF.match(part) for part in re.split(r"(?<=[.!])\s+", text))
