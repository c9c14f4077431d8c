"""Every number of the search that was found by measuring, with how.

Found on five LoCoMo conversations (2,960 turns, 1,020 questions with evidence) with all-minilm,
each checked with the conversation it is measured on left out of the choice.
"""

from __future__ import annotations

from typing import Final

NEIGHBOURS: Final = {0: 1.0, 1: 0.5, 2: 0.25}
"""What a word of a message counts for in the key of the message that many places away."""

SATURATION: Final = 1.2
"""BM25's k1: how soon a repeated word stops counting."""

LENGTH: Final = {"memory": 0.3, "turn": 0.1, "chunk": 0.4}
"""BM25's b: how far a long text is marked down. Talk is short and hardly differs by it."""

USUAL_LENGTH: Final = {"memory": 10.0, "turn": 30.0, "chunk": 250.0}
"""Content words of a text that is neither short nor long, where BM25 has the store's mean. A
fixed one keeps stored weights true for ever; with a small b it costs nothing measurable."""
