"""Whether two memories say the same, or one ends the other: by words and grammar alone.

Vectors only propose. "Tea over coffee" and "coffee over tea" have nearly the same vector, and so
have "likes" and "dislikes"; so two memories are the same only when their numbers, names,
negation, polarity and the order of their words agree and nothing of weight is left over. A
memory ends another when both fill the same slot of one subject ("lives in …"), or when it turns
the other's taste or habit around. Whatever is not decided here is ``OPEN`` or ``DIFFERENT``, and
then both stay.
"""

from __future__ import annotations

# ruff: noqa: E501 -- the tables of patterns and words read best unbroken
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from jarvis.services.extraction.checks import stem
from jarvis.services.extraction.clauses import candidates
from jarvis.services.extraction.cutting import words_of


class Relation(Enum):
    """What a newer memory is to an older one."""

    SAME = "same"
    ENDS = "ends"
    OPEN = "open"
    DIFFERENT = "different"


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


_LIKE = _stems("like love enjoy adore prefer fond favourite favorite keen fan into appreciate")
_DISLIKE = _stems("dislike hate detest loathe despise stand bear abhor avoid")
_LIGHT = _stems(
    "user the a an is are was were be been being am has have had do does did of in on at to for from with by"
    " and as that this it its their them they currently now still also really very quite just already usually"
    " always often name called named as work works working job live living reside located based located host"
    " localhost available reachable run runs running listen listens listening serve served port own owns got"
    " get keeps keep year old years age there here since again anymore any more one some lot much many into"
    " who which like-minded so too well kind sort type"
) - _stems("like")
"""Words whose presence or absence leaves the meaning of a short fact as it is."""

_ENDING = _stems(
    "stop stopped quit gave give up sold sell longer anymore cancelled canceled ended former ex broke lost"
)
_ARRIVING = _stems(
    "move moved moving relocated emigrated joined start started switched job turned became become went"
)
"""How a slot was filled, which says no more than that it is."""

_NEGATION = frozenset(
    "not no never none nothing nobody neither nor without cannot can't don't doesn't isn't won't".split()
)
_NO_MORE = re.compile(
    r"\b(?:no longer|(?:not|n't|never) .*\b(?:any ?more|any longer)|stopped|quit|gave up|sold|broke up with|"
    r"got rid of|used to|not .* now)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'’-]+")


@dataclass(frozen=True, slots=True)
class _Reading:
    """A memory taken apart. ``order`` are its weighty stems in their order."""

    order: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: bool
    liking: int
    past: bool
    no_more: bool
    subject: str

    @property
    def weight(self) -> frozenset[str]:
        return frozenset(self.order)


@lru_cache(maxsize=4096)
def _read(text: str) -> _Reading:
    words = words_of(text)
    low = [word.casefold().replace("’", "'") for word in words]
    stems = [stem(word) for word in words]
    liking = 1 if any(s in _LIKE for s in stems) else 0
    if any(s in _DISLIKE for s in stems):
        liking = -1
    negations = sum(word in _NEGATION or word.endswith("n't") for word in low)
    if negations % 2 and liking == 1:
        liking = -1
    elif (
        negations % 2
        and liking == -1
        and not any(s in {stem("stand"), stem("bear")} for s in stems)
    ):
        liking = 1
    dropped = _LIGHT | _LIKE | _DISLIKE | _ENDING
    order = tuple(
        s
        for s, word in zip(stems, low, strict=True)
        if s not in dropped
        and word not in _NEGATION
        and word not in {"can", "could", "over", "than", "user's"}
    )
    match = _SUBJECT.match(text)
    return _Reading(
        order=order,
        numbers=frozenset(re.findall(r"\d+(?:[.,:]\d+)*", " ".join(stems)) or ())
        | frozenset(d for s in stems for d in re.findall(r"\d+", s)),
        names=frozenset(
            name.casefold().removesuffix("'s") for name in _NAME.findall(text) if name != "User"
        ),
        negated=negations % 2 == 1 and liking == 0,
        liking=liking,
        past=bool(_PAST.search(text)),
        no_more=bool(_NO_MORE.search(text)),
        subject=match["subject"].casefold().replace("our", "or") if match else "user",
    )


_PAST = re.compile(
    r"^\S+(?:'s [\w-]+)? (?:was|were|had|used to|lived|worked|played|studied|liked|loved)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"User'?s (?P<subject>(?:(?:older|younger|little|big|best) )?[\w-]+) ", re.IGNORECASE
)
_WHO = r"(?:user(?:'s (?P<who>(?:[\w-]+ )?[\w-]+))?)"
_PLACE = r"(?P<value>[^,.;]+?)(?: (?:in|since|last|on|with|for|because|now|right now) .*|, .*)?$"

_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "home",
            rf"^{_WHO} (?:now |currently |still )*(?:lives?|resides?|is living|is based|has lived|stays) (?:now )?(?:in|at|near) {_PLACE}",
        ),
        (
            "home",
            rf"^{_WHO} (?:has |have |just |recently )*(?:moved|relocated|emigrated|is moving back) (?:(?:house|home|flat|away|back|from [\w ]+?) )?(?:to|into) {_PLACE}",
        ),
        (
            "home",
            r"^user(?P<who>)'s (?:home|address|city|hometown now) is (?:in |now )?(?P<value>.+)$",
        ),
        (
            "employer",
            rf"^{_WHO} (?:now |currently |still )*(?:works?|is working|is employed) (?:now )?(?:at|for) {_PLACE}",
        ),
        (
            "employer",
            rf"^{_WHO} (?:has |just |recently )*(?:joined|started (?:working )?(?:at|for)|got a (?:new )?job (?:at|with)|switched to|moved to a job at) {_PLACE}",
        ),
        (
            "profession",
            rf"^{_WHO} (?:now |currently )*works? (?:now )?as an? (?P<value>.+?)(?: (?:at|for|in|since) .*)?$",
        ),
        (
            "marital",
            rf"^{_WHO} (?:is|are|got|has gotten|became|was) (?:now |just |recently |finally )?(?P<value>married|single|divorced|engaged|widowed|separated)\b.*$",
        ),
        (
            "age",
            rf"^{_WHO} (?:is|turned|will be) (?:now )?(?P<value>\d{{1,3}})(?: years? old)?(?: (?:on|in) .*)?$",
        ),
        ("name", r"^user(?P<who>)'s (?:first |full )?name is (?P<value>.+)$"),
        (
            "diet",
            rf"^{_WHO} (?:is|became|went|turned|has become|has been) (?:now )?(?:a |an )?(?P<value>vegan|vegetarian|pescatarian|omnivore)\b.*$",
        ),
        ("car", rf"^{_WHO} (?:now )?drives (?:a |an |the |their )?(?P<value>.+)$"),
    )
)
_FAVOURITE = re.compile(
    r"^User's (?P<what>(?:all-time )?favou?rite(?: [\w-]+){0,3}?) (?:is|are) (?:now )?(?P<value>.+)$",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"^User's (?P<what>(?:(?:new|current|work|home|mobile|email|phone|date|main|first|native|preferred|operating|shoe|time) ?(?:of )?)?"
    r"(?:address|number|birthday|birth|email|phone|language|employer|job|profession|nationality|religion|height|weight|size|"
    r"pronouns|timezone|zone|system|editor|deadline|salary|nickname|surname|doctor|dentist|landlord|boss|manager)) (?:is|are) (?:now )?(?P<value>.+)$",
    re.IGNORECASE,
)


def slot(text: str) -> tuple[str, str, frozenset[str]] | None:
    """The slot that a memory fills: its name, whose it is, and the value's stems."""
    for name, pattern in _SLOTS:
        match = pattern.match(text)
        if match:
            return name, (match["who"] or "").casefold(), _value(match["value"])
    for pattern in (_FAVOURITE, _ATTRIBUTE):
        match = pattern.match(text)
        if match:
            what = " ".join(
                stem(word)
                for word in words_of(match["what"])
                if word.casefold() not in {"new", "current", "all-time"}
            )
            return what.replace("our", "or"), "", _value(match["value"])
    return None


def _value(text: str) -> frozenset[str]:
    return frozenset(s for s in map(stem, words_of(text)) if s not in _LIGHT)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """A memory in the form that extraction gives: "I moved to Oslo" is "User moved to Oslo".

    What somebody adds by hand is stored as they wrote it, and compared in this form.
    """
    if text.startswith("User"):
        return text
    said = [clause.text for clause in candidates(text) if not clause.presupposed]
    return said[0] if len(said) == 1 else text


def compare(new: str, old: str) -> Relation:
    """What ``new`` is to ``old``, as they are stored."""
    new, old = canonical(new), canonical(old)
    a, b = _read(new), _read(old)
    if a.subject != b.subject:
        return Relation.DIFFERENT
    first, second = slot(new), slot(old)
    if first and second and first[:2] == second[:2] and not (a.negated or b.negated or a.no_more):
        if b.past and not a.past and first[0] != "marital":
            return Relation.DIFFERENT
        if first[2] == second[2]:
            if a.numbers != b.numbers:
                return Relation.DIFFERENT
            # "in Oslo, near the fjord" after "in Oslo": merged, what it adds would be lost.
            return Relation.SAME if _american(a) - _ARRIVING <= _american(b) else Relation.OPEN
        if first[2] < second[2] or second[2] < first[2]:
            return Relation.OPEN  # "Oslo" and "Oslo, Grünerløkka": one may only be more exact
        return Relation.ENDS
    if a.no_more and not b.no_more and _about(a, b):
        return Relation.ENDS if not a.numbers - b.numbers or not b.numbers else Relation.OPEN
    if a.weight and a.order == b.order and a.numbers == b.numbers:
        if a.liking and b.liking and a.liking != b.liking:
            return Relation.ENDS
        if a.negated != b.negated:
            return Relation.ENDS if b.weight and not b.past else Relation.OPEN
        if a.liking != b.liking or a.past != b.past:
            return Relation.OPEN
        return Relation.SAME
    if a.numbers != b.numbers or a.names != b.names or a.negated != b.negated:
        return Relation.DIFFERENT
    if a.liking != b.liking:
        return Relation.DIFFERENT
    if a.weight == b.weight:
        return Relation.DIFFERENT  # the same words in another order say another thing
    shared = a.weight & b.weight
    if not shared or not _same_order(a.order, b.order, shared):
        return Relation.DIFFERENT
    left = (a.weight - shared, b.weight - shared)
    return (
        Relation.OPEN
        if min(map(len, left)) <= 1 and max(map(len, left)) <= 2
        else Relation.DIFFERENT
    )


def may_end(text: str) -> bool:
    """Whether a memory can end others however little alike they are: it fills a slot or ends."""
    text = canonical(text)
    return slot(text) is not None or _read(text).no_more


def says_no_more(new: str, old: str) -> bool:
    """Whether every weighty word of ``new`` is in ``old``: merging it there loses nothing."""
    return _read(canonical(new)).weight <= _read(canonical(old)).weight


def same_sense(first: str, second: str) -> bool:
    """Whether two memories about one subject agree in negation and liking."""
    a, b = _read(canonical(first)), _read(canonical(second))
    return (a.subject, a.negated, a.liking) == (b.subject, b.negated, b.liking)


def _american(a: _Reading) -> frozenset[str]:
    """The weighty stems with one spelling for "colour" and "color"."""
    return frozenset(s.replace("our", "or") for s in a.weight)


def _about(a: _Reading, b: _Reading) -> bool:
    """Whether an end is about exactly what the other memory says."""
    return bool(b.weight) and (b.weight <= a.weight or (a.weight <= b.weight and len(a.weight) > 0))


def _same_order(first: Sequence[str], second: Sequence[str], shared: frozenset[str]) -> bool:
    return [s for s in first if s in shared] == [s for s in second if s in shared]
