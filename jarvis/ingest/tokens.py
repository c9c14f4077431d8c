"""How many tokens a text has for an embedding model, estimated without its vocabulary.

The costs are those of BERT's WordPiece vocabulary (30,522 entries), which all-minilm,
nomic-embed-text and most small embedding models share; models with larger vocabularies need
fewer. Measured on the words of English, German, French, Russian, Hebrew, Arabic, Chinese, Japanese
and Korean texts and on code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

MARGIN = 1.25
"""Above what 300 tokens or more were ever found to be, relative to their estimate (a list of
links to packages: 1.23)."""

OVERHEAD = 2
"""Tokens that every model puts around a text (``[CLS]``, ``[SEP]``)."""

_PIECES = re.compile(
    r"(?P<latin>[A-Za-z]+(?![\u00c0-\u024f]))|(?P<digits>[0-9]+)"
    r"|(?P<accented>[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)|(?P<hangul>[\uac00-\ud7af]+)"
    r"|(?P<other>[^\W\d_]+)|(?P<mark>\S)"
)
_LATIN = [0.0, *(0.96 + 0.06 * (n - 1) for n in range(1, 10)), *(n / 6 for n in range(10, 16))]
_LETTERS = re.compile(r"[A-Za-z]+")
_DIGITS = re.compile(r"[0-9]+")
_MARKS = re.compile(r"[!-/:-@\[-`{-~\x00-\x08\x0e-\x1b\x7f]")
_ENGLISH = re.compile(r"\b(?:the|of|and|to|is|that|for|with|this|it)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}")
_SAMPLE = 20_000


FOREIGN = 1.7
"""What words in Latin letters cost more in other languages: 1.3 in French, 1.5 in German, 1.7 in
Latin."""


_FEW = 20
"""Words of which counting the lengths costs more than it saves."""


def _latin(length: int) -> float:
    return _LATIN[length] if length < 16 else length / 2.6


def _digits(length: int) -> float:
    return 1.0 if length < 3 else length * 0.6


def _cost(of: Callable[[int], float], words: list[str]) -> float:
    """What words cost that cost by their length: of many, each length is looked at once."""
    if len(words) < _FEW:
        return sum([of(len(word)) for word in words])
    return sum(times * of(length) for length, times in Counter(map(len, words)).items())


def _foreign(text: str) -> bool:
    """Whether a text in Latin letters is in another language than English."""
    words = len(_WORD.findall(text, 0, _SAMPLE))
    return words > 30 and len(_ENGLISH.findall(text, 0, _SAMPLE)) < 0.05 * words


class TokenCounter:
    """Estimates for one document.

    The vocabulary is mostly English, so words of other languages that use the same letters fall
    into more pieces; which case this is, is told from a sample.

    Args:
        sample: the document, or a good part of it.
    """

    def __init__(self, sample: str = "") -> None:
        self._factor = FOREIGN if _foreign(sample) else 1.0

    def count(self, text: str) -> int:
        """About how many tokens ``text`` has, without the model's ``OVERHEAD``."""
        factor = FOREIGN if len(text) > 250 and _foreign(text) else self._factor
        if text.isascii():
            words = _cost(_latin, _LETTERS.findall(text))
            numbers = _cost(_digits, _DIGITS.findall(text))
            return round(words * factor + numbers + len(_MARKS.findall(text)))
        latin = total = 0.0
        for match in _PIECES.finditer(text):
            length = match.end() - match.start()
            match match.lastgroup:
                case "latin":
                    latin += _latin(length)
                case "digits":
                    total += _digits(length)
                case "accented":
                    total += max(1.0, length * 0.45)
                case "hangul":
                    total += length * 2.2
                case "other":
                    total += length
                case _:
                    total += 1
        return round(total + latin * factor)
