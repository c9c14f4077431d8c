"""Puts a clause of the first person into the third: "am", "my" become "is", "their"."""

# ruff: noqa: S105 -- a token here is a word
from __future__ import annotations

from jarvis.services.extraction import words as w
from jarvis.services.extraction.cutting import PREPOSITIONS

MAX_WORDS = 12
"""Words in a fact at most."""


def third_person(verb: str) -> str:
    """The form of ``verb`` after "User": "live" → "lives"; a past form stays."""
    low = verb.casefold()
    special = {"am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
    if low in special:
        return special[low]
    if low in w.AUXILIARIES or low in w.IRREGULAR_PAST:
        return low
    if low.endswith("ed") and low not in w.BASE_IN_ED:
        return low
    if low.endswith("s") and low[:-1] in w.PLAIN_VERBS:
        return low  # "i works": it has the ending already
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return low + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return low[:-1] + "ies"
    return low + "s"


_STAND_FOR = frozenset("it them him he she they these those this that one ones there".split())
_EXPLETIVE = frozenset("find finds found make makes made take takes took hate hates".split())
_NOT_NAMED = frozenset(
    "my our their his its your the a an in at on for with to of i we user".split()
)


def dangles(tokens: list[str]) -> bool:
    """Whether a pronoun in what follows "User" stands for something that is not named in it.

    Args:
        tokens: a verb and what follows it, in the first or the third person.
    """
    low = [token.casefold() for token in tokens]
    named = False
    for index, token in enumerate(low[1:], start=1):
        following = low[index + 1] if index + 1 < len(low) else ""
        if token in _STAND_FOR:
            if token in {"this", "that", "these", "those", "one"}:
                # "this year", "that he likes", "one dog": something follows that says what.
                stands = not following or following in {",", "and", "or", "too", "a", "very"}
            else:
                stands = not (token == "it" and low[index - 1] in _EXPLETIVE and following)
            if stands and not named:
                return True
        elif token[:1].isalnum() and token not in _NOT_NAMED | w.AUXILIARIES | w.ADVERBS_DROPPED:
            named = named or token not in w.ADVERBS_KEPT | {"not", "like", "love", "having", "to"}
    return False


_SWAP = {
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "mine": "theirs",
    "myself": "themselves",
    "ourselves": "themselves",
    "i": "they",
    "we": "they",
}


def swap(tokens: list[str]) -> list[str]:
    return [_SWAP.get(token.casefold(), token) for token in tokens]


def join(tokens: list[str]) -> str:
    text = ""
    for token in tokens:
        text += token if token in {",", ";", ":"} or not text else " " + token
    return text.strip(" ,;:")


def _shorten(tokens: list[str], limit: int) -> list[str] | None:
    """The clause without its last modifiers, until it has at most ``limit`` words."""
    breaks = {",", "because", "when", "while", "so", "which", "who", "where", "since", "but"}
    softer = {"and", "that", "after", "before", "if", "though", "to", "with", "for"}
    last = {"at", "in", "on", "of", "from", "by", "during", "near", "as"}
    for stops in (breaks, breaks | softer, breaks | softer | last):
        while sum(t not in {",", ";", ":"} for t in tokens) > limit:
            cuts = [i for i, t in enumerate(tokens) if t.casefold() in stops and i > 3]
            if not cuts:
                break
            tokens = tokens[: cuts[-1]]
    return tokens if sum(t not in {",", ";", ":"} for t in tokens) <= limit else None


_TAIL = frozenset(
    (
        "too now then lol haha though well also anyway as , and but so or because for to of"
        " with in at the a an actually especially very honestly just that"
    ).split()
)
NO_VERBS = frozenset(
    (
        "a an the and or but to of in at for with if is who that this too not so as very my me"
    ).split()
)
_OTHERS = frozenset("they it he she you that".split())


_NEW_START = frozenset(
    (
        "so but because which you how what his her its their tell just my it he she they we i"
        " like then when if while thanks please"
    ).split()
)


def trim(tokens: list[str]) -> list[str]:
    """Without a subordinate clause at the end and words that hang over."""
    for index, token in enumerate(tokens):
        low = token.casefold()
        following = tokens[index + 1].casefold() if index + 1 < len(tokens) else ""
        if index > 2 and (
            low in {"because", "cause", "whenever", "although", "unless", "which"}
            or (low in {"when", "if", "while", "so", "but"} and following)
            or (low == "," and following in _NEW_START)
            or (low in {"and", "or"} and following in {"just", "then", "also", "so", "maybe"})
            or (
                low in _OTHERS
                and following in w.AUXILIARIES
                and tokens[index - 1].casefold() not in w.SUBORDINATORS | PREPOSITIONS
            )
        ):
            tokens = tokens[:index]
            break
    while tokens and tokens[-1].casefold() in _TAIL:
        tokens = tokens[:-1]
    if [t.casefold() for t in tokens[-2:]] in (["as", "well"], ["of", "course"], ["at", "all"]):
        tokens = tokens[:-2]
    return tokens


def finish(tokens: list[str]) -> str:
    """The clause as a fact of at most ``MAX_WORDS`` words; "" when too little is left of it."""
    short = _shorten(trim(tokens), MAX_WORDS)
    if short and short[-1].casefold() in w.AUXILIARIES and "," in short:
        short = short[: len(short) - 1 - short[::-1].index(",")]  # "…, dieting is": another one
    return join(short) if short and len(short) >= 3 else ""
