"""The gate: what is near enough to a question to be put before the model.

By meaning a row passes with a cosine over a threshold that is calibrated for the embedding model.
By words it passes when it holds enough of the question's idf, a rare term among it.

How near is near enough depends on the question. One about the user ("my sister's birthday") is
what the store is for, and its answer may look quite different from it. One about the world at
large must agree more closely. One that names somebody whom the store has never heard of can only
be answered by chance, however similar another person's story is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from jarvis.retrieval import tuning
from jarvis.retrieval.words import words

_FIRST_PERSON = re.compile(r"\b(?:i|i'(?:m|ve|d|ll)|me|my|mine|myself|we|us|our|ours)\b", re.I)
_NAME = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\n\s*)[\"'“‘(]*$")
_NO_NAMES = frozenset(
    """i monday tuesday wednesday thursday friday saturday sunday january february march april
    may june july august september october november december""".split()
)

DEFAULT_THRESHOLD = 0.3
"""Cosine for a model that was not calibrated."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a row needs to pass.

    Attributes:
        cosine: similarity from which on a row passes by meaning.
        matched: share of the question's idf from which on it passes by words.
        reason: why the cosine is what it is: ``personal``, ``general``, ``passage``,
            ``unknown name`` or ``set`` (by the user).
        names: the question's names that are in no row.
    """

    cosine: float
    matched: float
    reason: str
    names: tuple[str, ...] = ()

    def describe(self) -> dict[str, object]:
        """For ``--explain``."""
        described: dict[str, object] = {
            "cosine": round(self.cosine, 4),
            "matched": self.matched,
            "reason": self.reason,
        }
        if self.names:
            described["unknown_names"] = list(self.names)
        return described


def thresholds(personal: float) -> tuple[float, float, float]:
    """Cosines for a question about the user, a general one, and one with an unknown name.

    The first is calibrated. The others lie on fixed parts of the way from there to 1, found on
    LoCoMo: its questions, which are about others, asked of another conversation's store.
    """
    way = 1 - personal
    return personal, personal + tuning.GENERAL * way, personal + tuning.UNKNOWN_NAME * way


def make(
    text: str,
    language: str,
    threshold: float | None,
    fixed: float | None,
    holding: Mapping[str, int],
    *,
    passages: bool = False,
) -> Gate:
    """The gate for one question.

    Args:
        text: the question.
        language: of the stemmer.
        threshold: the model's calibrated cosine; None: not calibrated.
        fixed: ``retrieval.min_similarity``, which overrides the calibration.
        holding: rows that hold each of the question's words.
        passages: the rows are passages of documents. What is asked of those is hardly ever about
            the user, and a page speaks of more than a fact does.
    """
    if fixed is not None:
        return Gate(fixed, tuning.MATCHED, "set")
    personal, general, strict = thresholds(DEFAULT_THRESHOLD if threshold is None else threshold)
    unknown = tuple(
        name
        for name in names(text)
        if all(holding.get(word, 0) == 0 for word in words(name, language))
    )
    if unknown:
        return Gate(strict, tuning.MATCHED, "unknown name", unknown)
    if passages:
        way = 1 - personal
        return Gate(personal + tuning.PASSAGE * way, tuning.MATCHED, "passage")
    if is_personal(text):
        return Gate(personal, tuning.MATCHED, "personal")
    return Gate(general, tuning.MATCHED, "general")


def is_personal(text: str) -> bool:
    """Whether the speaker speaks of themself."""
    return _FIRST_PERSON.search(text.replace("’", "'")) is not None


def names(text: str) -> list[str]:
    """Words that are written like names: a capital inside a sentence.

    A text without any small letter has none: somebody holds the shift key.
    """
    if not any(character.islower() for character in text):
        return []
    found = []
    for match in _NAME.finditer(text):
        word = match.group()
        if not word[0].isupper() or word.casefold() in _NO_NAMES:
            continue
        if re.fullmatch(r"I['’]\w+", word) or _SENTENCE_START.search(text[: match.start()]):
            continue
        found.append(re.sub(r"['’]s$", "", word))
    return list(dict.fromkeys(found))


def matched_share(matched: Collection[int], weights: Mapping[int, float]) -> float:
    """The share of the question's idf that a row holds, 0 … 1."""
    total = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in matched) / total if total else 0.0
