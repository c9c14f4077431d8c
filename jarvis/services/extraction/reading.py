"""Reads one message for facts: the cheap filter, the rules, the model, the checks.

The rules cut first-person statements out and settle most of them. The model is asked where they
leave something open, and whatever it writes has to pass the checks. What reads like a secret or
like an order to the assistant is kept apart for the user to decide on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jarvis.security import held, secrets
from jarvis.services.extraction import checks, dates, lasting
from jarvis.services.extraction import words as w
from jarvis.services.extraction.clauses import Clause, Sentence, by_sentence, subject_of
from jarvis.services.extraction.cutting import words_of
from jarvis.services.extraction.framing import unquoted
from jarvis.services.extraction.lasting import Verdict
from jarvis.services.extraction.rewriting import MAX_WORDS
from jarvis.types import MemoryType

MIN_CHARACTERS = 10
"""Shorter messages without a first-person clause hold no fact; a CJK character counts double."""

MAX_CANDIDATES = 200
"""Statements of one message among which the most important are chosen."""

RULE_CONFIDENCE, MODEL_CONFIDENCE = 0.9, 0.7

Ask = Callable[[str], Sequence[str]]
"""Asks the model about a message; returns the facts that it wrote, unchecked."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact to be stored. ``held_reason`` is empty where nothing speaks against it."""

    text: str
    type: MemoryType
    category: str
    subject: str
    importance: float
    confidence: float
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    held_reason: str = ""


@dataclass(slots=True)
class Reading:
    """What a message gave.

    ``open``: the rules left something for the model. ``dropped`` are refused facts, each with
    the reason.
    """

    facts: list[Fact] = field(default_factory=list)
    open: bool = False
    secret: str = ""
    dropped: list[tuple[str, str]] = field(default_factory=list)


_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")
_NAME_HERE = re.compile(r"\b[A-Z]\w+ here\b")


def first_person(text: str) -> bool:
    """Whether a message speaks of its writer, in a language that is known here."""
    low = {word.casefold().replace("’", "'") for word in words_of(text)}
    parts = {part for word in low for part in (word, word.partition("'")[0])}
    return bool(
        parts & w.FIRST_PERSON
        or low & w.OTHER_FIRST_PERSON
        or any(marker in text for marker in w.OTHER_FIRST_PERSON_CJK)
    )


def worth_reading(message: str) -> bool:
    """The cheap filter: False where no model needs to look (greetings, bare questions …)."""
    text = unquoted(message).strip()
    letters = _LETTER.findall(text)
    if not letters:
        return False
    personal = first_person(text)
    length = len(text) + len(_CJK.findall(text))
    if length < MIN_CHARACTERS and not personal:
        return False
    only_questions = True
    for sentence in by_sentence(text):
        if sentence.clauses:
            return True
        only_questions = only_questions and sentence.question
    if only_questions:
        return False
    if personal or _NAME_HERE.search(text):
        return True
    # A script without a list of first-person words here: the model has to look.
    return not any(_LATIN.match(letter) or _CJK.match(letter) for letter in letters)


def read(
    message: str,
    said_at: datetime,
    ask: Ask | None,
    *,
    before: str = "",
    max_facts: int = 3,
) -> Reading:
    """The facts of a message, checked, dated, the most important where there are too many.

    Args:
        message: the user's own words.
        said_at: when, with the user's zone; relative dates count from it.
        ask: the model; None: what the rules leave open stays open, and ``open`` says so.
        before: the user's message before it, for what a pronoun stands for.

    Raises:
        UnreadableReply, ModelUnavailable: from ``ask``.
    """
    reading = Reading()
    found = secrets.find(message)
    reading.secret = found[0].kind if found else ""
    if not worth_reading(message):
        return reading
    sentences = list(by_sentence(message, before))
    facts, open_ones = _by_rule(sentences)
    reading.open = open_ones or _left_over(sentences)
    if ask is not None and reading.open:
        for text in ask(message):
            fact = _by_model(text, message, before, reading)
            if fact is not None:
                facts.append(fact)
    chosen = _choose(facts, max_facts, reading)
    reading.facts = [_dated(_held(fact), said_at) for fact in chosen]
    return reading


@dataclass(frozen=True, slots=True)
class _Found:
    fact: Fact
    presupposed: bool = False


def _by_rule(sentences: Sequence[Sentence]) -> tuple[list[_Found], bool]:
    """What the rules are sure of, and whether they left something open."""
    facts: list[_Found] = []
    open_ones = False
    for sentence in sentences:
        for clause in sentence.clauses:
            judged = lasting.judge(clause.text, presupposed=clause.presupposed)
            secret = bool(secrets.find(clause.text))
            if judged.verdict is Verdict.ASK and not secret:
                open_ones = True
            elif judged.verdict is Verdict.YES or secret:
                facts.append(_Found(_fact(clause, judged, RULE_CONFIDENCE), clause.presupposed))
    return facts, open_ones


def _fact(clause: Clause, judged: lasting.Judgement, confidence: float) -> Fact:
    return Fact(
        text=clause.text,
        type=judged.type,
        category=judged.category,
        subject=clause.subject,
        importance=judged.importance,
        confidence=confidence,
    )


def _left_over(sentences: Sequence[Sentence]) -> bool:
    """Whether a statement about the writer was not understood by the rules."""
    return any(
        not sentence.question
        and (sentence.foreign or (not sentence.clauses and first_person(sentence.text)))
        for sentence in sentences
    ) or not any(sentence.clauses for sentence in sentences)


def _by_model(text: str, message: str, before: str, reading: Reading) -> _Found | None:
    text = checks.tidy(text)
    reason = checks.problem(text, message, before)
    judged = lasting.judge(text)
    if not reason and judged.verdict is Verdict.NO:
        reason = "not lasting"
    if reason:
        reading.dropped.append((text, reason))
        return None
    clause = Clause(text, subject_of(text))
    sure = judged.verdict is Verdict.YES
    return _Found(_fact(clause, judged, MODEL_CONFIDENCE if sure else MODEL_CONFIDENCE - 0.1))


def _choose(found: Sequence[_Found], limit: int, reading: Reading) -> list[Fact]:
    """Each thing once, the most important where there are too many, in their order."""
    kept: list[tuple[_Found, set[str]]] = []
    found = list({entry.fact.text: entry for entry in reversed(found)}.values())[::-1]
    found = found[:MAX_CANDIDATES]
    for entry in sorted(found, key=lambda e: (e.presupposed, e.fact.confidence < RULE_CONFIDENCE)):
        stems = set(checks.content_stems(entry.fact.text))
        if any(stems <= other or len(stems & other) * 4 > 3 * len(stems) for _, other in kept):
            reading.dropped.append((entry.fact.text, "said already"))
            continue
        kept.append((entry, stems))
    best = sorted(kept, key=lambda pair: (pair[0].presupposed, -pair[0].fact.importance))[:limit]
    chosen = {id(pair[0]) for pair in best}
    return [entry.fact for entry in found if id(entry) in chosen]


def _held(fact: Fact) -> Fact:
    return replace(fact, held_reason=held.reason(fact.text))


def _dated(fact: Fact, said_at: datetime) -> Fact:
    resolved = dates.resolve(fact.text, said_at, max_words=MAX_WORDS)
    start = resolved.valid_from
    if fact.type is MemoryType.GOAL and start is not None and start > said_at:
        start = None  # what is wanted for then is wanted now
    return replace(fact, text=resolved.text, valid_from=start, valid_to=resolved.valid_to)
