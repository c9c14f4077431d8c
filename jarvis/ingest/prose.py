"""Mends what typesetting did to words: ligatures, soft hyphens, words cut at line ends."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

BROKEN = "\ufffe"
"""Stands where a word was cut at a line end (a hyphen, then the next line)."""

_LIGATURES = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
_RADICALS = re.compile("[\u2e80-\u2fd5\uf900-\ufaff]")
_SPACE = re.compile(f"[\\s{BROKEN}]")
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1b\x7f-\x84\x86-\x9f\ue000-\uf8ff\ufffd]")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[\u2010\-\xad][ \t]*\n[ \t]*(?=[^\W_])")
_CUT = re.compile(rf"([^\W_]*){BROKEN}\s*([^\W_]*)")
_OWN_PREFIXES = frozenset(
    (
        "all anti co cross ex half high long low mid multi non open post pre quasi real self "
        "semi short single two three well"
    ).split()
)
"""First halves that usually keep their hyphen when nothing in the document decides."""


def unligate(text: str) -> str:
    """``text`` with ligatures, Arabic presentation forms and CJK radicals as plain letters.

    Only these: NFKC of everything would turn x² into x2.
    """
    if text.isascii():
        return text
    text = _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return _RADICALS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def mark_breaks(text: str) -> str:
    """Marks hyphens at line ends with ``BROKEN`` and drops soft hyphens elsewhere."""
    if "\n" in text:
        text = _LINE_END_HYPHEN.sub(BROKEN, text)
    return text.replace("\xad", "")


def vocabulary(texts: list[str]) -> Counter[str]:
    """How often each word (with its inner hyphens) occurs whole, in lower case."""
    words: Counter[str] = Counter()
    for text in texts:
        words.update(_WORD.findall(text.lower()))
    return words


def rejoin(text: str, words: Counter[str]) -> str:
    """``text`` with words that were cut at line ends put together.

    Whether the hyphen belonged to the word ("well-known") or came from the cut
    ("infor-mation") is decided by which form the document uses elsewhere.
    """
    if BROKEN not in text:
        return text

    def mend(match: re.Match[str]) -> str:
        left, right = match[1], match[2]
        if not left or not right:
            return f"{left}-{right}"
        whole, hyphenated = f"{left}{right}".lower(), f"{left}-{right}".lower()
        if words[whole] != words[hyphenated]:
            return left + ("" if words[whole] > words[hyphenated] else "-") + right
        keep = (
            left.lower() in _OWN_PREFIXES
            or left[-1].isdigit()
            or right[0].isdigit()
            or (right[0].isupper() and not left.isupper())
        )
        return f"{left}-{right}" if keep else left + right

    # A word cut twice ("inter-na-tional") needs a second look at its new left half.
    for _ in range(3):
        mended = _CUT.sub(mend, text)
        if mended == text or BROKEN not in mended:
            return mended
        text = mended
    return text.replace(BROKEN, "-")


def unreadable_share(text: str) -> float:
    """The share of characters that no font map explains: controls, U+FFFD, private use."""
    if _ODD.search(text) is None:
        return 0.0
    letters = len(text) - len(_SPACE.findall(text))
    return len(_ODD.findall(text)) / letters if letters else 0.0
