"""Secrets in what people type: keys, tokens, passwords, card numbers, IBANs, private keys.

``find`` knows the published shapes of common credentials, checks the check digits where a kind
has them (Luhn for cards, ISO 7064 mod 97-10 for IBANs), and reads "password is …" for what has
no shape. A fact that holds one waits in ``memory review``, and its message is kept out of
retrieval. It errs towards silence: a version, a commit hash, a phone or an order number is none.
"""

from __future__ import annotations

# ruff: noqa: E501 -- the table of patterns reads best with one entry a line
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret at ``text[start:end]``. ``kind`` is for people; the value is not kept."""

    kind: str
    start: int
    end: int


def _luhn(text: str) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    digits = [int(c) for c in text if c.isdecimal()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2:
        return False
    total = sum(
        d if index % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2)
        for index, d in enumerate(reversed(digits))
    )
    return total % 10 == 0


def _card(text: str) -> bool:
    """A card number of one of the large networks, by its first digits and check digit."""
    digits = "".join(c for c in text if c.isdecimal())
    if not re.match(r"4|5[1-5]|2[2-7]|3[47]|30[0-5]|3[68]|6(?:011|4[4-9]|5)|35|62", digits):
        return False
    return _luhn(digits)


_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28,
    "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
    "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24,
    "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TN": 24, "TR": 26, "UA": 29, "VA": 22,
    "XK": 20,
}  # fmt: skip
"""Lengths by country, from the SWIFT IBAN registry."""


def _iban(text: str) -> bool:
    compact = "".join(text.split()).upper()
    if _IBAN_LENGTHS.get(compact[:2]) != len(compact):
        return False
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


def _random(text: str) -> bool:
    """Whether a string looks drawn rather than written: mixed classes and high entropy."""
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    classes = sum(any(test(c) for c in text) for test in (str.islower, str.isupper, str.isdecimal))
    return bits > 3.0 and classes >= 2


_COMMON_WORDS = frozenset(
    (
        "a an the my our your his her their its it in on at to for from with by of and or but"
        " not no is was are be been has have had required changed wrong correct incorrect"
        " expired reset protected manager same stored saved written safe secure weak strong"
        " long short too very reused different old new easy hard hint policy field box prompt"
        " page email known unknown empty missing invalid valid lost forgotten kept always"
        " never only just ask asked needed shared public private none null what which that"
        " this there here under over so as"
    ).split()
)


def _password(text: str) -> bool:
    """Whether what follows "password is" is a password and no word about passwords."""
    word = text.strip("\"'`“”‘’.,;:!?")
    if len(word) < 3 or word.casefold() in _COMMON_WORDS:
        return False
    # A plain lower-case word may go on as a sentence ("is required"); one that was chosen has
    # digits, signs, capitals inside, or stands in quotation marks.
    return (
        any(c.isdecimal() for c in word)
        or any(not c.isalnum() and c not in "'’-" for c in word)
        or any(c.isupper() for c in word[1:])
        or text[:1] in "\"'`“‘"
    )


_SEPARATOR = r"(?:\s+(?:is|was|are|=)\s*:?\s*|\s*[:=]\s*|\s+)"
_KEY_WORD = r"(?:api[ _-]?key|secret[ _-]?key|access[ _-]?key|auth[ _-]?token|token|client[ _-]?secret|secret)"

_KINDS: tuple[tuple[str, str, Callable[[str], bool] | None], ...] = (
    ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]+-----)?", None),
    ("private key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}", None),
    ("API key", r"\bsk-(?:proj-|ant-|or-|live-|test-)?[A-Za-z0-9_-]{20,}", None),
    ("API key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", None),
    ("API key", r"\bAIza[0-9A-Za-z_-]{35}", None),
    ("API key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", None),
    ("API key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}", None),
    ("API key", r"\bkey-[0-9a-f]{32}\b", None),
    ("token", r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,}", None),
    ("token", r"\bgl(?:pat|rt|dt)-[A-Za-z0-9_-]{20,}", None),
    ("token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", None),
    ("token", r"\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50,}", None),
    ("token", r"\bdop_v1_[0-9a-f]{64}|\bshp(?:at|ss|pa)_[0-9a-fA-F]{32}", None),
    ("token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}", None),
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", None),
    ("token", r"(?i:\bbearer\s+)(?P<v>[A-Za-z0-9._~+/-]{20,}=*)", _random),
    ("password", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?P<v>(?!\[)[^\s/@]{3,})@", None),
    ("API key", r"(?i:\b" + _KEY_WORD + r")" + _SEPARATOR + r"[\"'`]?(?P<v>[A-Za-z0-9_\-./+]{16,}=*)", _random),
    ("password", r"(?i:\b(?:password|passwd|passphrase|passcode|pwd|kennwort|passwort|contraseña|mot de passe))"
     r"(?i:(?:\s+(?!is\b|was\b)\S+){0,5}?)(?i:\s+(?:is|was|to|lautet|ist|es|est)\s*:?\s+|\s*[:=]\s*)"
     r"(?P<v>(?!\[)[\"'`“‘]?[^\s\"'`”’]{3,}[\"'`”’]?)", _password),
    ("PIN", r"(?i:\b(?:pin|pin code|cvv|cvc|one-time code|verification code))"
     r"(?i:(?:\s+(?!is\b)\w+){0,4}?)(?i:\s+(?:is|was)\s*:?\s+|\s*[:=]\s*)(?P<v>\d{3,8})\b", None),
    ("card number", r"(?<![\w.])(?<![A-Z]{2}\d\d )(?:\d[ -]?){12,18}\d(?![\w]|\.\d)", _card),
    ("IBAN", r"(?<!\w)[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?(?!\w)", _iban),
    ("social security number", r"(?i:\b(?:ssn|social security(?: number)?)\b)\D{0,12}(?P<v>\d{3}-\d{2}-\d{4})\b", None),
)  # fmt: skip


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], Callable[[str], bool] | None], ...]:
    return tuple((kind, re.compile(pattern), check) for kind, pattern, check in _KINDS)


def find(text: str) -> list[Secret]:
    """The secrets in ``text``, in their order, none inside another."""
    found: list[Secret] = []
    for kind, pattern, check in _patterns():
        group = "v" if "v" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            if check is not None and not check(match[group]):
                continue
            start, end = match.span(group)
            if all(end <= other.start or start >= other.end for other in found):
                found.append(Secret(kind, start, end))
    return sorted(found, key=lambda secret: secret.start)


def redact(text: str) -> str:
    """``text`` with every secret replaced by its kind in brackets, for logs and messages."""
    pieces: list[str] = []
    position = 0
    for secret in find(text):
        pieces += [text[position : secret.start], f"[{secret.kind}]"]
        position = secret.end
    return "".join([*pieces, text[position:]])
