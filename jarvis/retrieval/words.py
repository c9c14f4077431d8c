"""Text into words: what the lexical arm stores and looks for.

A word is stemmed in the configured language; a run of Chinese, Japanese, Korean or Thai letters
becomes its pairs of neighbours; what code is made of (``C++``, ``-rf``, ``src/x.py``,
``v1.2.3``) is kept whole beside its parts, so that it is found by either. Any string is legal.
"""

from __future__ import annotations

import functools
import itertools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator

NO_STEMMER = "none"

MAX_WORDS = 100_000
"""Words read from one text; what follows is not findable by words."""

_LONGEST_MIXED = 20
"""Characters of a word with digits in it; a longer one has no ending to take off."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese characters
    "\uac00-\ud7af\u1100-\u11ff"  # Korean
    "\U00020000-\U0003ffff"
)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_WORD = rf"(?:(?![{_UNSPACED}])\w)"
_TOKEN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<option>(?<![\w-])--?{_WORD}[\w-]*(?<!-))"
    rf"|(?P<word>(?:[./~]+(?={_WORD}))?{_WORD}+(?:[-'’._/\\:@+&]{{1,3}}{_WORD}+)*(?:\+\+|#)?)"
    r"|(?P<symbol>[^\w\s!-/:-@\[-`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\ufe00-\ufe0f])"
)
_PARTS = re.compile(r"[\W_]+")
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'"})

_CONTRACTIONS = ("n't", "'re", "'ve", "'ll", "'d", "'m", "'s")

STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being both but by
    can could d did do does doing done don during each few for from further get gets getting go
    goes got had has have having he her here hers him his how i if in into is it its just ll m
    many may me might more most much must my no nor not now of off on once only or other our ours
    out over own re s same shall she should so some such t than that the their theirs them then
    there these they this those through to too under until up us ve very was we were what when
    where which while who whom whose why will with would you your yours
    """.split()
)
"""English words that say how and not what. A question drops them, unless it has no others."""


def words(text: str, language: str = "english") -> Iterator[str]:
    """The terms of ``text``, in order, repeated as often as they occur.

    Args:
        text: any string.
        language: a Snowball language, or ``none`` for words as they stand.
    """
    for token in itertools.islice(_tokens(text), MAX_WORDS):
        yield from _terms(token, language)


def frequencies(text: str, language: str = "english") -> Counter[str]:
    """How often each of ``words`` occurs: each different token is looked at once."""
    counted = Counter(itertools.islice(_tokens(text), MAX_WORDS))
    found: Counter[str] = Counter()
    for token, times in counted.items():
        for word in _terms(token, language):
            found[word] += times
    return found


def _tokens(text: str) -> Iterator[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return map(re.Match.group, _TOKEN.finditer(text))


@functools.lru_cache(maxsize=65_536)
def _terms(token: str, language: str) -> tuple[str, ...]:
    """The words that one token stands for."""
    stem = stemmer(language)
    if token.isalnum() and token.isascii():
        return (stem(token.casefold()),)
    match = _TOKEN.match(token)
    kind = match.lastgroup if match is not None else "word"
    if kind == "unspaced":
        return tuple(_pairs(token))
    if kind == "symbol":
        return (token,)
    if kind == "option":
        return (token.casefold(), *_parts(token.casefold(), stem))
    if token.isalnum():
        return (_fold(stem(token.casefold())),)
    english = language in {"english", "porter"}
    return tuple(_compound(token.translate(_APOSTROPHES).casefold(), stem, english))


def content_words(text: str, language: str = "english") -> list[str]:
    """The terms of a question, each once: without stop words, unless there are no others."""
    found = list(dict.fromkeys(words(text, language)))
    if language != "english":
        return found
    stops = _stemmed_stop_words()
    return [word for word in found if word not in stops] or found


def is_stop_word(term: str, language: str = "english") -> bool:
    """Whether ``term`` (as ``words`` gives it) is an English function word."""
    return language == "english" and term in _stemmed_stop_words()


@functools.cache
def _stemmed_stop_words() -> frozenset[str]:
    stem = stemmer("english")
    return frozenset(_fold(stem(word)) for word in STOP_WORDS) | STOP_WORDS


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for first, second in itertools.pairwise(run):
        yield first + second
    # A question of one character must find it inside a longer run.
    yield from _HAN.findall(run)


def _compound(token: str, stem: Callable[[str], str], english: bool) -> Iterator[str]:
    if english and "'" in token:
        token = _POSSESSIVE.sub("", token)
        for ending in _CONTRACTIONS:
            if token.endswith(ending):
                yield _fold(stem(token.removesuffix(ending)))
                return
        if token.isalnum():
            yield _fold(stem(token))
            return
    yield token
    yield from _parts(token, stem)


def _parts(token: str, stem: Callable[[str], str]) -> Iterator[str]:
    for part in _PARTS.split(token):
        # The digits of a version or a date say nothing by themselves.
        if part and (len(part) > 1 or not part.isdigit()) and part != token:
            yield _fold(stem(part))


@functools.lru_cache(maxsize=65_536)
def _fold(word: str) -> str:
    """Without accents: people leave them out."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """The stemmer of a language (cached per word); identity for ``none``. Threads may share it.

    Raises:
        ValueError: there is no stemmer for that language.
    """
    if language == NO_STEMMER:
        return str
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        raise ValueError(f"no stemmer for the language {language!r}")
    stem_word: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    alone = threading.Lock()

    @functools.lru_cache(maxsize=65_536)
    def stem(word: str) -> str:
        # Numbers stay as they are, and a hash or a line of base64 is no word; a file may be full
        # of either.
        if word.isdigit() or (len(word) > _LONGEST_MIXED and not word.isalpha()):
            return word
        # A Snowball stemmer keeps the word it works on in itself: two threads at once would raise,
        # or mix their words, and the cache would keep the mixture.
        with alone:
            return stem_word(word)

    return stem
