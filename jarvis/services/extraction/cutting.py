"""Cuts a message into sentences and clauses, by punctuation and the place of the subject."""

from __future__ import annotations

# ruff: noqa: S105 -- a token here is a word
import re
from collections.abc import Iterator

from jarvis.services.extraction import words as w

PREPOSITIONS = frozenset("in at as for on with near from to by".split())
_SENTENCE_END = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)"
    r"(?:\s*[.!?;…]+(?=\s|$|[\"')])|\n+|\s+[-–—]+\s+|\s*—\s*|[()\[\]])"
)
_TOKEN = re.compile(r"\w+://[^\s,;]+|[^\s,;:]*\d(?:[.,:]\d+)+[^\s,;:]*|[^\s,;:]+|[,;:]")
"""Words, with "7:45", "1,200" and an address each whole, and the marks between them."""
_WORD = re.compile(r"[^\W_](?:[\w'’+#./&-]*[\w+#])?|\d", re.UNICODE)


def words_of(text: str) -> list[str]:
    """The words of a text, punctuation left out."""
    return _WORD.findall(text)


def sentences(text: str) -> Iterator[tuple[str, bool]]:
    """The sentences of ``text``, each with whether it ends as a question."""
    position = 0
    for match in _SENTENCE_END.finditer(text):
        sentence = text[position : match.start()].strip()
        position = match.end()
        if sentence:
            yield sentence, "?" in match[0]
    rest = text[position:].strip()
    if rest:
        yield rest, False


def expand(sentence: str) -> list[str]:
    """Tokens with contractions written out; commas are tokens."""
    sentence = sentence.replace("’", "'")
    tokens: list[str] = []
    for token in _TOKEN.findall(sentence):
        full = w.CONTRACTIONS.get(token.casefold())
        if full is None:
            tokens.append(token.strip("\"'*_~.") or token)
        else:
            tokens += full.split()
    merged: list[str] = []
    for token in tokens:
        low = token.casefold()
        if low == "m" and merged and merged[-1].casefold() == "i":
            token = "am"
        merged.append("I" if low == "i" else token)
    return merged


def starts_clause(tokens: list[str], index: int) -> bool:
    """Whether a statement with the first person as its subject begins at ``index``."""
    low = tokens[index].casefold()
    following = [t.casefold() for t in tokens[index + 1 : index + 8]]
    if low in {"i", "we"}:
        return bool(following) and following[0] not in {",", "too", "and", "or"}
    if low in {"my", "our"}:
        # "my sister lives …": a verb must come before anything else breaks the phrase.
        for offset, token in enumerate(following[:6]):
            if offset and token in {"in", "with", "for", "to", "at", "of", "on"}:
                return _copula(tokens[index + 2 + offset : index + 10 + offset])
            if token in {",", "and", "or", "in", "with", "for", "to", "because", "so", "who"}:
                return False
            name = tokens[index + 1 + offset][:1].isupper()
            plain = token in w.AUXILIARIES | w.PLAIN_VERBS
            if offset and (plain or (_verb_like(token) and not name)):
                return True
        return False
    return low in {"he", "she", "they", "it", "that", "this", "you", "who", "there"} and bool(
        following
    )


def _copula(tokens: list[str]) -> bool:
    """Whether "is" follows a phrase ("my budget for the trip is …") in the same clause."""
    for offset, token in enumerate(tokens):
        low = token.casefold()
        if low in {"is", "are", "was", "were"}:
            return offset > 0
        if low in {",", ";", ":", "and", "or", "i", "we", "my", "our", "that", "who", "which"}:
            return False
    return False


def _verb_like(token: str) -> bool:
    """Whether a word after a noun is likely a verb: inflected, or an irregular past."""
    return (
        token in w.IRREGULAR_PAST
        or (token.endswith("ed") and len(token) > 4)
        or (
            len(token) > 3
            and token.endswith("s")
            and not token.endswith(("ss", "us", "is"))
            and token not in w.ROLE_LIKE
        )
    )


_TOLD = frozenset("remember mind note know aware fact".split())
_JOINERS = frozenset(
    "and but so because since plus while whereas , ; : cause cuz bc or yet".split()
)


def cut(tokens: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Clauses of a sentence, each with the word that led into it."""
    start, lead = 0, ""
    index = 1
    while index < len(tokens):
        previous = tokens[index - 1].casefold()
        asked = previous in w.AUXILIARIES and tokens[start].casefold() in w.QUESTION_STARTS
        if not asked and starts_clause(tokens, index):
            joined = previous in _JOINERS
            subordinate = previous in w.SUBORDINATORS and previous != "since"
            if previous == "that" and index > 1 and tokens[index - 2].casefold() in PREPOSITIONS:
                subordinate = False  # "sorry for that I …": a new sentence without its full stop
            told = {t.casefold() for t in tokens[start : index - 1]}
            if previous == "that" and told & _TOLD and not told & {"i", "not", "do"}:
                subordinate, joined, previous = False, True, "and"  # "keep in mind that I …"
            run_on = (
                tokens[index] in {"I", "we"}
                and not subordinate
                and index + 1 < len(tokens)
                and len(tokens[start:index]) >= 2
            )
            why = [t.casefold() for t in tokens[max(0, index - 3) : index]][-2:] == ["is", "why"]
            if joined or run_on or why or subordinate:
                end = index - 1 if (joined or subordinate) else index - 3 if why else index
                if end > start:
                    yield lead, tokens[start:end]
                start, lead = index, "" if why else previous if (joined or subordinate) else ""
        index += 1
    yield lead, tokens[start:]


_LEADS = tuple(
    tuple(phrase.split())
    for phrase in (
        "by the way",
        "for the record",
        "for your information",
        "just so you know",
        "so you know",
        "in case you need it",
        "one more thing",
        "another thing",
        "please note that",
        "please remember that",
        "please remember",
        "note that",
        "remember that",
        "remember",
        "do not forget that",
        "do not forget",
        "remind me that",
        "remind me",
        "keep in mind that",
        "keep in mind",
        "good news",
        "bad news",
        "reminder",
        "note",
    )
)
"""Phrases before a statement that say nothing themselves."""


def _after_lead(tokens: list[str]) -> int:
    """How many of the first tokens are a greeting, a mark or a phrase that leads in."""
    if not tokens:
        return 0
    low = [token.casefold() for token in tokens[:6]]
    for phrase in _LEADS:
        if tuple(low[: len(phrase)]) == phrase:
            after = tokens[len(phrase) : len(phrase) + 1]
            if after and after[0].casefold() in {",", ":", "i", "we", "my", "our"}:
                return len(phrase)
    return int(low[0] in w.INTERJECTIONS or low[0] in {",", ":"})


def strip_lead(tokens: list[str]) -> list[str]:
    """Without greetings and other words before the subject ("hi lucy ,", "by the way ,")."""
    rest = tokens
    while taken := _after_lead(rest):
        rest = rest[taken:]
    for offset, token in enumerate(rest[:4]):
        # A vocative or an adverbial: "right now , i …", "lucy , i …".
        if token == "," and offset + 1 < len(rest) and starts_clause(rest, offset + 1):
            return rest[offset + 1 :]
    return rest
