"""Every number of the search that was found by measuring, with how.

Found on five LoCoMo conversations (2,960 turns, 1,020 questions with evidence) with all-minilm,
each on a plateau that all five conversations share, seen side by side.
"""

from __future__ import annotations

from typing import Final

NEIGHBOURS: Final = {0: 1.0, 1: 0.5, 2: 0.25}
"""What a word of a message counts for in the key of the message that many places away."""

FACT: Final = 1.0
"""What a fact's vector counts for against 1 for the message it was taken from."""

SATURATION: Final = 1.2
"""BM25's k1: how soon a repeated word stops counting."""

LENGTH: Final = {"memory": 0.3, "turn": 0.1, "chunk": 0.4}
"""BM25's b: how far a long text is marked down. Talk is short and hardly differs by it."""

USUAL_LENGTH: Final = {"memory": 10.0, "turn": 30.0, "chunk": 250.0}
"""Content words of a text that is neither short nor long, where BM25 has the store's mean. A
fixed one keeps stored weights true for ever; with a small b it costs nothing measurable."""

FUSION: Final = {"memory": (2.0, 1.0), "turn": (5.0, 1.5), "chunk": (5.0, 1.5)}
"""Reciprocal rank fusion's k, and the weight of the words' rank against 1 for the meaning's.

With the usual k of 60 the top of both lists hardly counts more than their middle: R@5 falls by
seven points. A memory is one sentence, in which meaning and words are equally good witnesses; the
words of a turn's neighbourhood say more than its vector. So do those of a passage: of 33
questions over a book of 388 pages 28 have the right page first, whatever k between 1 and 20 is; 25
with equal weights, 22 by meaning alone, 27 by words alone.
"""

OVERFETCH: Final = 3
"""Candidates per arm, as a multiple of the results that are wanted."""

MAX_CANDIDATES: Final = 50
"""Candidates per arm at most, unless more results than that are wanted."""

MIN_CANDIDATES: Final = 20
"""Candidates per arm at least: fusion needs lists that can meet."""

MAX_RESULTS: Final = 1_000
"""Results of one search at most."""

MAX_QUESTION_TERMS: Final = 48
"""Terms of a question that are scored: those that are in the fewest rows."""

MAX_COUNTED_TERMS: Final = 256
"""Terms of a question that are looked at, the first ones: a page that was pasted has thousands."""

CANDIDATE_ROWS: Final = 1_000
CANDIDATE_SHARE: Final = 0.04
"""Rows, or share of the rows where that is more, that the words of a question may make
candidates, the rarest words first. Every row that holds a word could be one; those that hold only
frequent words hardly ever win, and reading them is what costs time in a large store."""

EVERYWHERE: Final = 0.3
"""Share of a large store's rows from which even a question's rarest word makes no candidates: it
would rank a third of the store by hardly more than length, and no gate opens for such a word."""

COMMON: Final = 0.05
"""Share of the rows above which a term alone does not let a row pass the gate."""

FEW: Final = 3
"""Rows that may hold a term without its being common, in a store however small."""

MATCHED: Final = 0.55
"""Share of the question's idf that a row must hold to pass the gate by words. With half of it,
questions about other people pass more often, by common verbs alone."""

GENERAL: Final = 0.44
"""How far from the calibrated cosine to 1 a question that is not about the user must reach."""

PASSAGE: Final = 0.2
"""The same for passages of documents. Found on a book of 388 pages with all-minilm: there it is a
cosine of 0.38, which lets 30 of 33 questions reach their page by meaning, and none of 92 questions
about other things reach any; with ``GENERAL`` it were 18."""

UNKNOWN_NAME: Final = 0.53
"""The same for a question that names somebody who is in no row."""

CONTENTS: Final = 0.6
"""What a passage is worth that only lists what stands elsewhere: as the best by words and meaning
it comes behind one that is fifth by both, and before what is no better than chance."""

MAX_WEIGHT: Final = 0.25
"""How far importance or recency may move a score, whatever the configuration says."""

HALF_LIFE_DAYS: Final = 90.0
"""Age at which a row is neither young nor old."""

DATE: Final = 1.25
"""What a row is worth more that belongs to the time which the question names."""
