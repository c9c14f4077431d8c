"""Whether two found texts say the same, so that only the better one is shown.

Similarity of vectors cannot tell ("tea over coffee" and "coffee over tea" have a cosine of
0.996), so the words decide: nearly the same content words in the same order, with the same
numbers, names and negation. In doubt both are kept.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass

from jarvis.retrieval.words import is_stop_word, words

SAME_WORDS = 0.8
"""Share of content words (of both texts together) that two texts must have in common."""

LONGEST = 600
"""Characters of a text whose words are compared. Longer ones are the same when they are equal:
two passages of one wording are no accident, and reading all their words takes too long."""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|stopped|quit|"
    r"longer|anymore|un\w+|dis\w+|hates?|hated)\b|n't\b",
    re.I,
)
_NUMBER = re.compile(
    r"\d+(?:[.,:/-]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"twenty|thirty|forty|fifty|hundred|thousand|million|first|second|third|half|twice)\b",
    re.I,
)
_SUBJECT = frozenset({"user"})


@dataclass(frozen=True, slots=True)
class Statement:
    """What is compared of a text."""

    content: tuple[str, ...]
    numbers: tuple[str, ...]
    negations: tuple[str, ...]
    whole: str


@functools.lru_cache(maxsize=1024)
def statement(text: str, language: str) -> Statement:
    """Takes a text apart."""
    if len(text) > LONGEST:
        return Statement((), (), (), " ".join(text.split()).casefold())
    found = list(words(text, language))
    distinct = [word for word in dict.fromkeys(found) if word not in _SUBJECT]
    content = [word for word in distinct if not is_stop_word(word, language)]
    plain = text.replace("’", "'").casefold()
    return Statement(
        content=tuple(content or distinct),
        numbers=tuple(sorted(_NUMBER.findall(plain))),
        negations=tuple(sorted(_NEGATION.findall(plain))),
        whole=" ".join(found),
    )


def same(first: Statement, second: Statement) -> bool:
    """Whether the two say the same."""
    if first.whole == second.whole:
        return True
    if first.numbers != second.numbers or first.negations != second.negations:
        return False
    ours, theirs = set(first.content), set(second.content)
    common = ours & theirs
    if not common or len(common) < SAME_WORDS * len(ours | theirs):
        return False
    # Whose the words are shows in their order: "tea over coffee", "coffee over tea".
    left = [word for word in first.content if word in common]
    right = [word for word in second.content if word in common]
    return left == right or difflib.SequenceMatcher(None, left, right).ratio() > 0.95
