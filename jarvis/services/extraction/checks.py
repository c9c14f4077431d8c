"""Whether a fact that a model wrote may be believed: it must say what the message says.

Every stem, number and name of the fact has to stand in a statement of the message (or be one of
a few frame words), close together and not the other way round; a fact is one clause of at most
twelve words, about the user or theirs, and never the message word for word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jarvis.retrieval.words import stemmer
from jarvis.services.extraction import words as w
from jarvis.services.extraction.cutting import cut, expand, words_of
from jarvis.services.extraction.framing import is_request, is_task, own_sentences
from jarvis.services.extraction.rewriting import MAX_WORDS, dangles

_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_NEGATIONS = frozenset(
    (
        "not no never none nothing nobody neither nor without cannot don't doesn't can't"
        " won't isn't aren't wasn't didn't hardly hates hate dislike dislikes"
    ).split()
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SECOND_CLAUSE = re.compile(r"[.!?;]\s+\S|,\s+(?:and|but|so)\s+(?:i|user|they|he|she|it)\b", re.I)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|me|my|mine|we|our|us|you|your|yours)\b", re.I)


def stem(word: str) -> str:
    """The English stem of a word; a number word is its digits."""
    low = word.casefold().replace("’", "'").removesuffix("'s").strip("'.")
    return _NUMBER_WORDS.get(low) or stemmer("english")(low)


def content_stems(text: str) -> list[str]:
    """The stems of ``text`` that are no frame words, in their order."""
    return [
        stem(word)
        for word in words_of(text)
        if word.casefold().replace("’", "'") not in w.FRAME_WORDS
    ]


_YOU = re.compile(r"\b(?:you|your|yours)\b[^,;:]*", re.IGNORECASE)
"""What is said of somebody else: "I hope you make it to the city"."""

_SPEAKER = re.compile(r"\b(?:i|i'm|i've|my|me|mine|we|our|us|myself|im)\b", re.IGNORECASE)
_VERB = re.compile(
    r"User (?:(?:also|never|always|usually|often|sometimes|really|still|only|rarely|hardly"
    r"|no longer|first|mostly|just) )*(?P<verb>[a-z']+)\b"
)


def _predicate(fact: str) -> bool:
    """Whether an English fact that begins with "User" goes on with a verb."""
    match = _VERB.match(fact)
    if match is None:
        return not fact.startswith("User ")
    verb = match["verb"]
    return (
        verb in w.AUXILIARIES | w.IRREGULAR_PAST
        or verb.endswith(("s", "ed"))
        or verb in {"can", "cannot", "used"}
    )


def _spoken_by_writer(content: Sequence[str], message: str, before: str) -> bool:
    """Whether one sentence that speaks of its writer has (nearly) all words of the fact."""
    wanted = {stem(word) for word in content}
    extra = {stem(word) for word in words_of(before)}
    for sentence in statements(message):
        if _SPEAKER.search(sentence):
            left = wanted - {stem(word) for word in words_of(sentence)} - extra
            if len(left) * 3 <= len(wanted):
                return True
    return False


def statements(message: str) -> list[str]:
    """The sentences of a message that facts may be taken from.

    Questions, quotations, suppositions and tasks are left out, and of a request what the thing
    that is asked for is to say.
    """
    kept = []
    for sentence, question in own_sentences(message):
        first = words_of(sentence)[:1]
        if question and not re.search(r"\b(?:i|my|we)\b", sentence, re.I):
            continue
        if question and first and first[0].casefold() in w.QUESTION_STARTS:
            continue
        if is_task(sentence):
            continue
        if is_request(sentence):
            pieces = [piece for lead, piece in cut(expand(sentence)) if lead not in w.SUBORDINATORS]
            sentence = " ".join(" ".join(piece) for piece in pieces)
        kept.append(_YOU.sub("", sentence))
    return kept


def tidy(fact: str) -> str:
    """The model's sentence in the form in which facts are kept."""
    text = " ".join(fact.split()).strip(" \"'.-•").replace("’", "'")
    text = re.sub(r"^\w+, (?=user\b)", "", text, flags=re.I)
    text = re.sub(r"^(?:the user|user:|the speaker|they)\b", "User", text, flags=re.I)
    text = re.sub(r"^user\b", "User", text, flags=re.I)
    return re.sub(r"\s+(?:for|of|with) me$", "", text)


def _in_text(word: str, stems: Sequence[str], text: str) -> bool:
    if _CJK.search(word):
        pairs = [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        return sum(pair in text for pair in pairs) * 2 >= len(pairs)
    base = stem(word)
    if base in stems:
        return True
    # Inflections that an English stemmer does not know ("wohne", "wohnt"; "arctic", "arctics").
    need = max(4, len(base) * 7 // 10)
    return len(base) >= 4 and any(
        other[:need] == base[:need] and abs(len(other) - len(base)) <= 3 for other in stems
    )


def problem(fact: str, message: str, before: str = "") -> str:
    """Why ``fact`` (tidied) must not be stored, in a word or two; "" when it may.

    Args:
        before: the user's message before it, for what a pronoun stood for.
    """
    found = words_of(fact)
    if not found or len(found) > MAX_WORDS:
        return "length"
    if "user" not in {word.casefold().removesuffix("'s") for word in found}:
        return "subject"
    if _FIRST_PERSON.search(re.sub(r"\bUser\b", "", fact)) or _SECOND_CLAUSE.search(fact):
        return "not one clause in the third person"
    source = " . ".join(statements(message))
    source_words = words_of(source)
    stems = [stem(word) for word in source_words]
    if [x.casefold() for x in found] == [x.casefold() for x in words_of(message)]:
        return "copied"
    content = [x for x in found if x.casefold().replace("’", "'") not in w.FRAME_WORDS]
    if not content:
        return "nothing said"
    extra = [stem(word) for word in words_of(before)] if before else []
    for word in content:
        if not _in_text(word, [*stems, *extra], source + " " + before):
            return f"not in the message: {word}"
    if any(x.isdecimal() and stem(x) not in stems for x in found):
        return "number"
    for pronoun in ("his", "her", "he", "she", "hers", "him"):
        if pronoun in found and pronoun not in {x.casefold() for x in source_words}:
            return "pronoun"
    if fact.startswith("User ") and dangles(found[1:]):
        return "pronoun"
    if _negated(found) != _negated(_around(content, source_words)):
        return "negation"
    if not _CJK.search(fact) and not _near(content, stems):
        return "scattered"
    if _SPEAKER.search(message) and not _CJK.search(fact):
        if not _predicate(fact) or re.match(r"User is favou?rite\b", fact):
            return "no sentence"
        if not _spoken_by_writer(content, message, before):
            return "not about the writer"
    return ""


def _negated(tokens: Sequence[str]) -> bool:
    return sum(token.casefold().replace("’", "'") in _NEGATIONS for token in tokens) % 2 == 1


def _around(content: Sequence[str], source: Sequence[str]) -> list[str]:
    """The words of the message between the first and the last word that the fact took."""
    wanted = {stem(word) for word in content}
    places = [i for i, word in enumerate(source) if stem(word) in wanted]
    if not places:
        return []
    return list(source[max(0, places[0] - 3) : places[-1] + 1])


def _near(content: Sequence[str], stems: Sequence[str]) -> bool:
    """Whether the fact's words stand within one stretch of the message, mostly in order."""
    wanted = [stem(word) for word in content]
    here = [i for i, s in enumerate(stems) if s in wanted]
    if len(wanted) < 2 or not here:
        return True
    distinct = len({s for s in wanted if s in stems})
    best = min(
        (
            here[j] - here[i]
            for i in range(len(here))
            for j in range(i, len(here))
            if len({stems[k] for k in here[i : j + 1]}) >= distinct
        ),
        default=len(stems),
    )
    return best <= 2 * len(wanted) + 6
