"""What a message says in the first person: clauses cut out and put into the third.

A message is cut into sentences and clauses by punctuation, conjunctions and the place of the
subject. What remains of a statement about the writer is rewritten: "hi, I'm a nurse and my
sister lives in Lima" becomes "User is a nurse" and "User's sister lives in Lima". Nothing is
added to the words that the writer chose, so a fact made here is faithful by its making; whether
it is worth keeping is for ``lasting`` and the model to say.
"""

from __future__ import annotations

# ruff: noqa: E501, S105 -- long lists of words read best as text
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jarvis.services.extraction import words as w

MAX_WORDS = 12
"""Words in a fact at most."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement. ``subject`` is ``user`` or what the user's "my …" named (``sister``)."""

    text: str
    subject: str
    presupposed: bool = False


_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{3,}\"|“[^”\n]{3,}”|«[^»\n]{3,}»|^\s*>.*$",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)"
    r"(?:\s*[.!?;…]+(?=\s|$|[\"')])|\n+|\s+[-–—]+\s+|\s*—\s*|[()\[\]])"
)
_TOKEN = re.compile(r"[^\s,;:]+|[,;:]")
_WORD = re.compile(r"[^\W_](?:[\w'’+#./&-]*[\w+#])?|\d", re.UNICODE)


def words_of(text: str) -> list[str]:
    """The words of a text, punctuation left out."""
    return _WORD.findall(text)


def unquoted(text: str) -> str:
    """The writer's own words: without code, quotations and quoted lines."""
    return _QUOTED.sub(" ", text)


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


def _expand(sentence: str) -> list[str]:
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


def _starts_clause(tokens: list[str], index: int) -> bool:
    """Whether a statement with the first person as its subject begins at ``index``."""
    low = tokens[index].casefold()
    following = [t.casefold() for t in tokens[index + 1 : index + 8]]
    if low in {"i", "we"}:
        return bool(following) and following[0] not in {",", "too", "and", "or"}
    if low in {"my", "our"}:
        # "my sister lives …": a verb must come before anything else breaks the phrase.
        for offset, token in enumerate(following[:6]):
            if token in {",", "and", "or", "in", "with", "for", "to", "because", "so", "who"}:
                return False
            if offset and (token in w.AUXILIARIES or _verb_like(token)):
                return True
        return False
    return low in {"he", "she", "they", "it", "that", "this", "you", "who", "there"} and bool(
        following
    )


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


def _cut(tokens: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Clauses of a sentence, each with the word that led into it."""
    start, lead = 0, ""
    index = 1
    while index < len(tokens):
        previous = tokens[index - 1].casefold()
        asked = previous in w.AUXILIARIES and tokens[start].casefold() in w.QUESTION_STARTS
        if not asked and _starts_clause(tokens, index):
            joined = previous in _JOINERS
            subordinate = previous in w.SUBORDINATORS and previous != "since"
            if previous == "that" and index > 1 and tokens[index - 2].casefold() in _PREPOSITIONS:
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


def _strip_lead(tokens: list[str]) -> list[str]:
    """Without greetings and other words before the subject ("hi lucy ,")."""
    index = 0
    while index < len(tokens) and (
        tokens[index].casefold() in w.INTERJECTIONS or tokens[index] in {",", ":"}
    ):
        index += 1
    rest = tokens[index:]
    for offset, token in enumerate(rest[:4]):
        # A vocative or an adverbial: "right now , i …", "lucy , i …".
        if token == "," and offset + 1 < len(rest) and _starts_clause(rest, offset + 1):
            return rest[offset + 1 :]
    return rest


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
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return low + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return low[:-1] + "ies"
    return low + "s"


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


def _swap(tokens: list[str]) -> list[str]:
    return [_SWAP.get(token.casefold(), token) for token in tokens]


def _join(tokens: list[str]) -> str:
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
_NO_VERBS = frozenset(
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


def _trim(tokens: list[str]) -> list[str]:
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
                and tokens[index - 1].casefold() not in w.SUBORDINATORS | _PREPOSITIONS
            )
        ):
            tokens = tokens[:index]
            break
    while tokens and tokens[-1].casefold() in _TAIL:
        tokens = tokens[:-1]
    if [t.casefold() for t in tokens[-2:]] in (["as", "well"], ["of", "course"], ["at", "all"]):
        tokens = tokens[:-2]
    return tokens


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


_PREPOSITIONS = frozenset("in at as for on with near from to by".split())
_COORDINATED: dict[str, frozenset[str]] = {
    "work": _PREPOSITIONS,
    "live": _PREPOSITIONS,
    "study": _PREPOSITIONS | {"the"},
    "teach": _PREPOSITIONS,
    "play": frozenset("the in with for piano guitar football chess".split()),
    "am": frozenset("a an from in the not allergic".split()),
    "run": frozenset(["a", "an", "the", "my"]),
    "grew": frozenset({"up"}),
    "moved": _PREPOSITIONS,
    "drive": frozenset(["a", "an", "the", "my"]),
    "own": frozenset("a an the two three".split()),
    "worked": _PREPOSITIONS,
    "lived": _PREPOSITIONS,
    "studied": _PREPOSITIONS,
    "used": frozenset({"to"}),
    "was": frozenset({"born", "raised", "a", "in"}),
}
_PLAIN_VERBS = frozenset(
    "have love like enjoy hate dislike prefer adore want speak collect volunteer".split()
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
    """A sentence of a message with the statements that were cut out of it."""

    text: str
    question: bool
    clauses: tuple[Clause, ...]


def by_sentence(message: str, before: str = "") -> Iterator[Sentence]:
    """The sentences of ``message`` that are the writer's own words; see ``candidates``."""
    for text, question in sentences(unquoted(message)):
        tokens = _expand(text)
        yield Sentence(text, question, tuple(_of_sentence(tokens, question, before)))
        before = text


def _of_sentence(tokens: list[str], question: bool, before: str) -> Iterator[Clause]:
    if not tokens:
        return
    stripped = _strip_lead(tokens)
    if stripped and stripped[0].casefold() == "if":
        return
    pieces = list(_cut(tokens))
    for number, (lead, piece) in enumerate(pieces):
        last = number == len(pieces) - 1
        bare = _strip_lead(piece)
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


def _statement(tokens: list[str], before: str) -> Iterator[Clause]:
    low = [t.casefold() for t in tokens]
    plain = _join(tokens)
    favorite = _FAVORITE.match(plain)
    if favorite and low[0] not in {"my", "our"}:
        thing = favorite["thing"].rpartition(",")[2].strip()
        if thing.casefold() in _PRONOUNS:
            thing = _antecedent(before)
        if thing and "not" not in thing.casefold().split():
            what = favorite["what"].strip()
            made = _finish(["User's", *what.split(), "is", *_swap(thing.split())])
            if made:
                yield Clause(made, "user")
        return
    if low[0] in {"i", "we"}:
        for part, phrase in enumerate(_verb_phrases(tokens)):
            rest = phrase[1:] if part == 0 or phrase[0].casefold() == "i" else phrase
            made = _user_clause(rest, before)
            if made:
                yield Clause(made, "user")
    elif low[0] in {"my", "our"} and _starts_clause(tokens, 0):
        made = _finish(["User's", *_swap(_trim(tokens[1:]))])
        if made:
            yield Clause(made, _subject(low))
    elif "call" in low[:3] and low[low.index("call") + 1 :][:1] == ["me"] and len(low) <= 6:
        name = _join(_trim(tokens[low.index("call") + 2 :]))
        if name and name[:1].isupper():
            yield Clause(f"User's name is {name}", "user")
    elif name := _introduction(tokens):
        yield Clause(f"User's name is {name}", "user")
    elif _IMPLICIT.match(plain) and "you" not in low:
        verb = "was" if low[0] in {"born", "raised"} else "is"
        made = _finish(["User", verb, low[0], *_swap(_trim(tokens[1:]))])
        if made:
            yield Clause(made, "user")
    elif low[0] == "home" and low[1:2] == ["is"]:
        made = _finish(["User's", "home", *tokens[1:]])
        if made:
            yield Clause(made, "user")


def _introduction(tokens: list[str]) -> str:
    """The name in "Ana here", "this is Ana", "the name is Ana", "Ana is my name"; else ""."""
    plain = _join(_trim(tokens))
    match = _INTRODUCTION.match(plain)
    return next((name for name in match.groups() if name), "") if match else ""


_PROPER = r"((?-i:[^\W\d_a-z])[\w'’-]+(?: (?-i:[^\W\d_a-z])[\w'’-]+){0,3})"
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
    rest = _trim(rest)
    kept: list[str] = []
    while rest and rest[0].casefold() in w.ADVERBS_DROPPED | w.ADVERBS_KEPT and len(rest) > 1:
        if rest[0].casefold() in w.ADVERBS_KEPT:
            kept.append(rest[0].casefold())
        rest = rest[1:]
    if len(rest) < 2 or rest[0].casefold() in _NO_VERBS or not rest[0][0].isalpha():
        return ""
    verb, tail = rest[0], rest[1:]
    if verb.casefold() in w.AUXILIARIES:
        while len(tail) > 1 and tail[0].casefold() in w.ADVERBS_DROPPED - {"pretty", "quite"}:
            tail = tail[1:]
    if tail[-1].casefold() in {"it", "that", "them"} and len(tail) <= 3:
        thing = _antecedent(before)
        if not thing:
            return ""
        tail = [*tail[:-1], *thing.split()]
    if all(t.casefold() in _PRONOUNS | w.FRAME_WORDS for t in tail):
        return ""
    return _finish(["User", *kept, third_person(verb), *_swap(tail)])


def _antecedent(before: str) -> str:
    """What "it" in "do you like country music? I love it" stands for; "" when unclear."""
    matches = [m["thing"].strip() for m in _LIKED.finditer(before)]
    things = [m for m in matches if m and m.casefold().split()[0] not in _PRONOUNS | {"a", "any"}]
    return things[-1] if things and len(things[-1].split()) <= 4 else ""


def _finish(tokens: list[str]) -> str:
    short = _shorten(_trim(tokens), MAX_WORDS)
    return _join(short) if short and len(short) >= 3 else ""


_COUNT = r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten)"
_POSSESSED = re.compile(
    rf"\bmy\s+(?P<count>{_COUNT}\s+)?(?P<adjective>(?:older|younger|little|big|twin|best|new|old|"
    rf"only)\s+)?(?P<noun>[\w-]+)\b(?!'s)"
    r"(?:,? (?P<name>(?-i:[A-Z])\w+)\b)?",
    re.IGNORECASE,
)


def _presupposed(tokens: list[str]) -> Iterator[Clause]:
    """ "walked my dog" says that there is a dog."""
    for match in _POSSESSED.finditer(_join(tokens)):
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
