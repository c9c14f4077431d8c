"""What a message says in the first person: clauses cut out and put into the third.

A message is cut into sentences and clauses by punctuation, conjunctions and the place of the
subject. What remains of a statement about the writer is rewritten: "hi, I'm a nurse and my
sister lives in Lima" becomes "User is a nurse" and "User's sister lives in Lima". Nothing is
added to the words that the writer chose, so a fact made here is faithful by its making; whether
it is worth keeping is for ``lasting`` and the model to say.
"""

from __future__ import annotations

# ruff: noqa: E501 -- long lists of words read best as text
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jarvis.services.extraction import foreign
from jarvis.services.extraction import words as w
from jarvis.services.extraction.cutting import (
    PREPOSITIONS,
    cut,
    expand,
    starts_clause,
    strip_lead,
)
from jarvis.services.extraction.framing import is_task, own_sentences
from jarvis.services.extraction.rewriting import (
    NO_VERBS,
    dangles,
    finish,
    join,
    swap,
    third_person,
    trim,
)

LONGEST_SENTENCE = 120
"""Tokens that are looked at as one sentence; more without a full stop is no sentence."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement. ``subject`` is ``user`` or what the user's "my …" named (``sister``)."""

    text: str
    subject: str
    presupposed: bool = False


def _verb_phrases(tokens: list[str]) -> Iterator[list[str]]:
    """Splits "live in Lima and work as a cook" where the second verb is plain to see."""
    start = 0
    for index in range(2, len(tokens) - 1):
        if tokens[index].casefold() in {"and", "but"}:
            after = [t.casefold() for t in tokens[index + 1 : index + 4]]
            while after and after[0] in {"i", "also", "currently", "now", "just", "really"}:
                after = after[1:]
            if len(after) < 2:
                continue
            frame = after[0] in _COORDINATED and after[1] in _COORDINATED[after[0]]
            if frame or after[0] in _PLAIN_VERBS:
                yield tokens[start:index]
                start = index + 1
    yield tokens[start:]


_COORDINATED: dict[str, frozenset[str]] = {
    "work": PREPOSITIONS,
    "live": PREPOSITIONS,
    "study": PREPOSITIONS | {"the"},
    "teach": PREPOSITIONS,
    "play": frozenset("the in with for piano guitar football chess".split()),
    "am": frozenset("a an from in the not allergic".split()),
    "run": frozenset(["a", "an", "the", "my"]),
    "grew": frozenset({"up"}),
    "moved": PREPOSITIONS,
    "drive": frozenset(["a", "an", "the", "my"]),
    "own": frozenset("a an the two three".split()),
    "worked": PREPOSITIONS,
    "lived": PREPOSITIONS,
    "studied": PREPOSITIONS,
    "used": frozenset({"to"}),
    "was": frozenset({"born", "raised", "a", "in"}),
}
_PLAIN_VERBS = frozenset(
    "have love like enjoy hate dislike prefer adore want speak collect volunteer weigh".split()
)

_FAVORITE = re.compile(
    r"^(?P<thing>.+?)\s+(?:is|are)\s+(?:also\s+)?(?:one of\s+)?my\s+(?P<what>(?:all-time\s+)?favou?rites?"
    r"(?:\s+[\w' -]+)?)$",
    re.IGNORECASE,
)
_PRONOUNS = frozenset(
    (
        "it that this they them those these he she him her there here one ones some what"
        " which something anything everything so you"
    ).split()
)
_LIKED = re.compile(
    r"\b(?:like|love|enjoy|hate|prefer|play|watch|eat|drink|read|into|have|tried|serve)\s+(?:to\s+)?"
    r"(?P<thing>[\w' -]+?)(?=\s+(?:in|at|on|with|too|very|when|because|more|better|or|and|you|i)\b|[,?.!]|$)",
    re.IGNORECASE,
)
_IMPLICIT = re.compile(
    r"^(?:(?:currently|originally|now)\s+)?(?:(?:born|based|raised|married|retired|allergic|from|"
    r"employed|engaged|divorced|living|working|studying|self-employed|vegan|vegetarian)\b)",
    re.IGNORECASE,
)


def subject_of(fact: str) -> str:
    """Whom a fact in the third person is about: the relative or friend it begins with, or the
    user."""
    possessed = re.match(r"User's (.+)", fact, re.IGNORECASE | re.DOTALL)
    return _subject(["my", *possessed[1].casefold().split()]) if possessed else "user"


def candidates(message: str, before: str = "") -> list[Clause]:
    """Statements of the writer about themselves or theirs, in the third person, in their order.

    Args:
        message: what the user wrote.
        before: the user's message before it, for what "it" stands for.
    """
    found: list[Clause] = []
    for statement in by_sentence(message, before):
        for clause in statement.clauses:
            if clause.text.casefold() not in {c.text.casefold() for c in found}:
                found.append(clause)
    return found


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message with the statements that were cut out of it.

    ``foreign``: they are the phrases of another language that are known; there may be more.
    """

    text: str
    question: bool
    clauses: tuple[Clause, ...]
    foreign: bool = False


def by_sentence(message: str, before: str = "") -> Iterator[Sentence]:
    """The sentences of ``message`` that are the writer's own words; see ``candidates``."""
    for text, question in own_sentences(message):
        tokens = expand(text)
        clauses: list[Clause] = []
        for start in range(0, len(tokens), LONGEST_SENTENCE):
            part = tokens[start : start + LONGEST_SENTENCE]
            clauses += _presupposed(part) if is_task(text) else _of_sentence(part, question, before)
        known = [Clause(fact, "user") for fact in (() if question else foreign.facts(text))]
        yield Sentence(text, question, (*clauses, *known), bool(known))
        before = text[-1000:]


def _of_sentence(tokens: list[str], question: bool, before: str) -> Iterator[Clause]:
    if not tokens:
        return
    stripped = strip_lead(tokens)
    if stripped and stripped[0].casefold() == "if":
        return
    pieces = list(cut(tokens))
    if len(pieces) > 1 and not question and (role := _ROLE.fullmatch(join(pieces[0][1]))):
        yield Clause(f"User is {role['role']}", "user")
    for number, (lead, piece) in enumerate(pieces):
        last = number == len(pieces) - 1
        bare = strip_lead(_without_day(piece, last=last))
        if not bare:
            continue
        if lead in w.SUBORDINATORS and lead != "since":
            if not question:
                yield from _presupposed(bare)
            continue
        if question and last and (bare[0].casefold() in w.QUESTION_STARTS or len(pieces) == 1):
            continue
        yield from _statement(bare, before)
        if not (question and last):
            yield from _presupposed(bare)


_DAYS = frozenset(
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays weekends weekdays".split()
)


def _without_day(tokens: list[str], *, last: bool) -> list[str]:
    """Without the day that leads into the next clause ("…, Thursdays" before "I sing")."""
    if not last and tokens and tokens[-1].casefold() in _DAYS:
        tokens = tokens[:-1]
        while tokens and tokens[-1].casefold() in {"on", ",", "and"}:
            tokens = tokens[:-1]
    return tokens


_ROLE = re.compile(
    r"(?:(?:and|so|but|well|hi|hello|hey),? )*(?:as|being) (?P<role>an? (?!(?:rule|result|matter|consequence|joke|test|start|"
    r"reminder|kid|child|boy|girl|baby|teen\w*|youngster|student|side|last|first|next|final|quick|"
    r"user|favou?r|thank|courtesy|precaution|compromise|general|way|bonus|gift|present|treat|"
    r"surprise|young|little|small|follow)\b)[\w-]+(?: [\w-]+)?)",
    re.IGNORECASE,
)
"""What somebody is, said on the way: "as a diabetic I …"."""


def _statement(tokens: list[str], before: str) -> Iterator[Clause]:
    low = [t.casefold() for t in tokens]
    plain = join(tokens)
    if called := _CALLED.match(plain):
        form = "User is called {}" if called["others"] else "User's name is {}"
        yield Clause(form.format(called["name"]), "user")
        return
    favorite = _FAVORITE.match(plain)
    if favorite and low[0] not in {"my", "our"}:
        thing = favorite["thing"].rpartition(",")[2].strip()
        if thing.casefold() in _PRONOUNS:
            thing = _antecedent(before)
        if thing and "not" not in thing.casefold().split():
            what = favorite["what"].strip()
            made = finish(["User's", *what.split(), "is", *swap(thing.split())])
            if made:
                yield Clause(made, "user")
        return
    if low[0] in {"i", "we"}:
        for part, phrase in enumerate(_verb_phrases(tokens)):
            rest = phrase[1:] if part == 0 or phrase[0].casefold() == "i" else phrase
            made = _user_clause(rest, before)
            if made:
                yield Clause(made, "user")
    elif low[0] in {"my", "our"} and starts_clause(tokens, 0):
        made = finish(["User's", *swap(trim(tokens[1:]))])
        if made:
            yield Clause(made, _subject(low))
    elif belonging := _BELONGING.fullmatch(plain):
        whose = swap(belonging["whose"].split())
        thing, rest = belonging["thing"].split(), swap(belonging["rest"].split())
        if belonging["of"].casefold() == "of":
            made = finish(["User's", *whose[:-1], whose[-1] + "'s", *thing, *rest])
        else:
            made = finish(["User's", *thing, belonging["of"], "their", *whose, *rest])
        if made:
            yield Clause(made, _subject(["my", *belonging["whose"].casefold().split()]))
    elif name := _introduction(tokens):
        yield Clause(f"User's name is {name}", "user")
    elif _IMPLICIT.match(plain) and "you" not in low:
        verb = "was" if low[0] in {"born", "raised"} else "is"
        made = finish(["User", verb, low[0], *swap(trim(tokens[1:]))])
        if made:
            yield Clause(made, "user")
    elif low[:2] == ["used", "to"] or (low[:2] == ["grew", "up"] and len(low) > 3):
        made = finish(["User", low[0], *swap(trim(tokens[1:]))])
        if made:
            yield Clause(made, "user")
    elif low[0] == "home" and low[1:2] == ["is"]:
        made = finish(["User's", "home", *tokens[1:]])
        if made:
            yield Clause(made, "user")


def _introduction(tokens: list[str]) -> str:
    """The name in "Ana here", "this is Ana", "the name is Ana", "Ana is my name"; else ""."""
    whole = join(trim(tokens))
    plain = whole.partition(",")[0]
    if (said_twice := _SAID_TWICE.match(whole)) is not None:
        return said_twice[2]
    match = _INTRODUCTION.match(plain)
    return next((name for name in match.groups() if name), "") if match else ""


_CALLED = re.compile(
    r"(?:(?P<others>(?:everyone|everybody|people|friends|folks|they|my [\w-]+(?: and \w+)?)"
    r"(?: all| usually| just| always)* calls?)|(?:(?:please|just|you can|but) )*call) me "
    r"(?P<name>(?-i:[^\W\d_a-z])[\w'’-]+(?: (?-i:[^\W\d_a-z])[\w'’-]+){0,2})"
    r"(?:$|,| please| for short| (?:and|but|if|though|since|because|at)\b)",
    re.IGNORECASE,
)
"""How they are called: "call me Bo", "my friends call me Bo"."""

_BELONGING = re.compile(
    r"the (?P<thing>[\w-]+(?: [\w-]+)?) (?P<of>of|for) (?:my|our) (?P<whose>[\w'’-]+(?: [\w'’-]+)?) "
    r"(?P<rest>(?:is|are|was|were|falls|ends|starts|begins|expires) .+)",
    re.IGNORECASE,
)
"""What belongs to something of theirs: "the name of my cat is …"."""

_PROPER = r"((?-i:[^\W\d_a-z])[\w'’-]+(?: (?-i:[^\W\d_a-z])[\w'’-]+){0,3})"
_SAID_TWICE = re.compile(
    r"(?:(?:the |my )?name(?: is|'s)|i am|i'm|it is) (\w+), ((?-i:[^\W\d_a-z])\w+ \1)$",
    re.IGNORECASE,
)
"""The name is Bond …"""

_INTRODUCTION = re.compile(
    rf"(?:{_PROPER} here|this is {_PROPER}|(?:the )?name(?: is|'s) {_PROPER}|"
    rf"{_PROPER} is (?:my|the) name|it is {_PROPER} here)$",
    re.IGNORECASE,
)


def _subject(low: list[str]) -> str:
    """Whom "my … is" speaks about: the relative or friend, else the user."""
    for index, token in enumerate(low[1:6], start=1):
        if token.endswith("'s"):
            continue
        if token in w.AUXILIARIES:
            break
        if token in w.KIN:
            following = low[index + 1] if index + 1 < len(low) else ""
            if following not in w.KIN:
                return token
    return "user"


def _user_clause(rest: list[str], before: str) -> str:
    """ "live in Lima too" → "User lives in Lima"; "" when nothing is said."""
    rest = trim(rest)
    kept: list[str] = []
    while rest and rest[0].casefold() in w.ADVERBS_DROPPED | w.ADVERBS_KEPT and len(rest) > 1:
        if rest[0].casefold() in w.ADVERBS_KEPT:
            kept.append(rest[0].casefold())
        rest = rest[1:]
    if len(rest) < 2 or rest[0].casefold() in NO_VERBS or not rest[0][0].isalpha():
        return ""
    verb, tail = rest[0], rest[1:]
    if verb.casefold() in w.AUXILIARIES:
        while len(tail) > 1 and tail[0].casefold() in w.ADVERBS_DROPPED - {"pretty", "quite"}:
            tail = tail[1:]
        if verb.casefold() in {"am", "are"} and tail[0].casefold() in {
            "got",
            "went",
            "came",
            "had",
        }:
            return ""  # "i am well just got back": two statements that ran into each other
    if tail[-1].casefold() in {"it", "that", "them"} and len(tail) <= 3:
        thing = _antecedent(before)
        if not thing:
            return ""
        tail = [*tail[:-1], *thing.split()]
    if all(t.casefold() in _PRONOUNS | w.FRAME_WORDS for t in tail) or dangles([verb, *tail]):
        return ""
    return finish(["User", *kept, third_person(verb), *swap(tail)])


def _antecedent(before: str) -> str:
    """What "it" in "do you like country music? I love it" stands for; "" when unclear."""
    matches = [m["thing"].strip() for m in _LIKED.finditer(before)]
    things = [m for m in matches if m and m.casefold().split()[0] not in _PRONOUNS | {"a", "any"}]
    return things[-1] if things and len(things[-1].split()) <= 4 else ""


_COUNT = r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten)"
_POSSESSED = re.compile(
    rf"\bmy\s+(?P<count>{_COUNT}\s+)?(?P<adjective>(?:older|younger|little|big|twin|best|new|old|"
    rf"only)\s+)?(?P<noun>[\w-]+)\b(?!'s)"
    r"(?:,? (?P<name>(?-i:[A-Z])\w+)\b)?",
    re.IGNORECASE,
)


def _presupposed(tokens: list[str]) -> Iterator[Clause]:
    """ "walked my dog" says that there is a dog."""
    for match in _POSSESSED.finditer(join(tokens)):
        noun = match["noun"].casefold()
        if noun not in w.ROLE_LIKE - {"family", "job", "team", "ex", "friend", "friends", "fish"}:
            continue
        count, adjective = match["count"] or "", match["adjective"] or ""
        plural = (noun.endswith("s") and noun != "sis") or noun in {"children", "grandchildren"}
        name = match["name"] or ""
        if name and noun in w.KIN:
            yield Clause(f"User's {adjective}{noun} is called {name}", noun, presupposed=True)
        article = "" if count or plural else "an " if (adjective or noun)[0] in "aeiou" else "a "
        yield Clause(f"User has {article}{count}{adjective}{noun}", "user", presupposed=True)
