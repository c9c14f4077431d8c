"""Words as the database holds them: hashed terms and BM25's part of the row itself.

BM25 scores a row by ``sum over terms of idf × f (k1 + 1) / (f + k1 (1 - b + b length / mean))``
(Robertson and Zaragoza, 2009, "The Probabilistic Relevance Framework: BM25 and Beyond"). The
fraction depends on the row alone and is stored as a sparse vector; the idf belongs to the
question. Their inner product is the score.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterable, Mapping

from jarvis.retrieval import references, tuning
from jarvis.retrieval.words import content_words, frequencies, is_stop_word
from jarvis.store.vectors import TERM_SPACE, Kind

MAX_TERMS = 8_000
"""Different terms kept of one text: half of what pgvector's sparsevec holds."""

Counts = dict[int, float]
"""Term to (weighted) frequency."""


@functools.lru_cache(maxsize=65_536)
def term(user_id: int, word: str) -> int:
    """The number of a word for one user, 1 … ``TERM_SPACE``.

    The user is hashed with it: one index over all users' terms then finds one's own rows only.
    """
    digest = hashlib.blake2b(
        word.encode("utf-8", "replace"), digest_size=8, salt=user_id.to_bytes(8, "big")
    ).digest()
    return int.from_bytes(digest, "big") % TERM_SPACE + 1


def count(user_id: int, text: str, language: str) -> Counts:
    """How often each term occurs in ``text``, the first ``MAX_TERMS`` of them."""
    chosen = list(frequencies(text, language).items())[:MAX_TERMS]
    counts: Counts = {}
    for word, frequency in chosen:
        number = term(user_id, word)
        # A stop word is stored, for questions that have no other, but hardly counts.
        weight = 0.1 if is_stop_word(word, language) else 1.0
        counts[number] = counts.get(number, 0.0) + frequency * weight
    return counts


def count_passage(user_id: int, text: str, language: str) -> Counts:
    """The same for a passage of a document, with the numbered parts that it holds or names."""
    counts = count(user_id, text, language)
    for word, weight in references.written(text).items():
        number = term(user_id, word)
        counts[number] = counts.get(number, 0.0) + weight
    return counts


def pool(parts: Iterable[tuple[Counts, float]]) -> Counts:
    """The weighted sum of several texts' counts, the ``MAX_TERMS`` largest kept."""
    pooled: Counts = {}
    for counts, weight in parts:
        for number, frequency in counts.items():
            pooled[number] = pooled.get(number, 0.0) + weight * frequency
    if len(pooled) > MAX_TERMS:
        largest = sorted(pooled, key=lambda number: (-pooled[number], number))[:MAX_TERMS]
        pooled = {number: pooled[number] for number in largest}
    return pooled


def weigh(kind: Kind, counts: Mapping[int, float]) -> Counts:
    """BM25's part of a row: the saturated, length-normalised frequency of each term."""
    k1, b = tuning.SATURATION, tuning.LENGTH[kind]
    length = sum(counts.values())
    norm = k1 * (1 - b + b * length / tuning.USUAL_LENGTH[kind])
    return {number: f * (k1 + 1) / (f + norm) for number, f in counts.items()}


def question(user_id: int, text: str, language: str) -> dict[int, str]:
    """The terms of a question with the words they stand for."""
    return {term(user_id, word): word for word in content_words(text, language)}


def idf(total: int, holding: int) -> float:
    """Inverse document frequency, as in BM25; above zero for a term that every row holds."""
    holding = min(holding, total)
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))
