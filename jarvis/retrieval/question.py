"""What the words of a question are worth in a user's store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jarvis.retrieval import references, terms, tuning
from jarvis.store import search as store
from jarvis.store.vectors import Kind

if TYPE_CHECKING:
    from jarvis.store.database import Connection


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question as one kind of a user's rows knows them.

    Attributes:
        text: the question.
        language: the stemmer's.
        words: its words, by term.
        weights: the idf of each term.
        selecting: the terms that make a row a candidate, the rarest first.
        rare: terms rare enough to let a row pass the gate.
        holding: how many rows hold each word.
        total: the user's rows; 0: not counted.
        named: terms of the numbered parts that it names ("clause 7").
    """

    text: str
    language: str
    words: Mapping[int, str]
    weights: Mapping[int, float]
    selecting: Sequence[int] = ()
    rare: frozenset[int] = frozenset()
    holding: Mapping[str, int] | None = None
    total: int = 0
    named: frozenset[int] = frozenset()


def understand(
    connection: Connection, user_id: int, text: str, language: str, kinds: Sequence[Kind]
) -> dict[Kind, Question]:
    """Weighs the words of ``text`` for each of ``kinds``, in one round trip."""
    plain = terms.question(user_id, text, language)
    named = (
        {terms.term(user_id, word): word for word in references.asked(text)}
        if "chunk" in kinds
        else {}
    )
    words = {
        kind: _first(named | plain if kind == "chunk" else plain, tuning.MAX_COUNTED_TERMS)
        for kind in kinds
    }
    counted = store.statistics(connection, user_id, {kind: list(words[kind]) for kind in kinds})
    return {
        kind: _weigh(text, language, found, counted[kind], named if kind == "chunk" else {})
        for kind, found in words.items()
    }


def _first(words: Mapping[int, str], most: int) -> dict[int, str]:
    return dict(list(words.items())[:most])


def _weigh(
    text: str,
    language: str,
    words: Mapping[int, str],
    counted: store.Statistics,
    named: Mapping[int, str],
) -> Question:
    # What is in no row comes last: of a long question, the words that can find something count.
    by_rarity = sorted(
        words, key=lambda term: (not counted.holding[term], counted.holding[term], term)
    )
    asked = by_rarity[: tuning.MAX_QUESTION_TERMS]
    limit = max(tuning.FEW, tuning.COMMON * counted.total)
    present = [term for term in asked if counted.holding[term]]
    rare = [term for term in present if counted.holding[term] <= limit or term in named]
    return Question(
        text=text,
        language=language,
        words=words,
        weights={term: terms.idf(counted.total, counted.holding[term]) for term in asked},
        selecting=_selecting(present, counted),
        rare=frozenset(rare),
        holding={words[term]: counted.holding[term] for term in words},
        total=counted.total,
        named=frozenset(named),
    )


def _selecting(by_rarity: Sequence[int], counted: store.Statistics) -> list[int]:
    """The terms that make a row a candidate: from the rarest on, as many as the time allows."""
    most = max(tuning.CANDIDATE_ROWS, tuning.CANDIDATE_SHARE * counted.total)
    everywhere = max(tuning.CANDIDATE_ROWS, tuning.EVERYWHERE * counted.total)
    chosen: list[int] = []
    rows = 0
    for term in by_rarity:
        rows += counted.holding[term]
        if rows > (most if chosen else everywhere):
            break
        chosen.append(term)
    return chosen
