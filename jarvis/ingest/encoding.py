"""Bytes to text, whatever the encoding."""

from __future__ import annotations

import codecs
import re

from jarvis.ingest.model import Unreadable

SAMPLE = 128 * 1024
"""Bytes that the guess of an unknown encoding looks at."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ISO_2022 = ((b"\x1b$", "iso2022_jp_ext"), (b"\x1b$)C", "iso2022_kr"))
_COMMON = {
    name: place
    for place, name in enumerate(
        (
            "cp1252 cp1251 cp932 shift_jis gb18030 gbk big5 euc_jp cp949 euc_kr cp1250 cp1253 "
            "cp1254 cp1255 cp1256 cp1257 koi8_r"
        ).split()
    )
}
"""Encodings of most files that are not UTF-8, by how common they are on the web."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_SURROGATE_PAIR = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_META = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)


def decode(data: bytes, declared: str = "") -> tuple[str, list[str]]:
    """The text of ``data`` and warnings about its encoding.

    UTF-8 that holds is believed before anything that a file declares: real pages declare
    Latin-1 and hold UTF-8, never the other way round.

    Raises:
        Unreadable: it is no text in any encoding.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            text = data[len(bom) :].decode(name, "replace")
            return _checked(text), _damage(text)
    wide = _wide(data)
    if wide:
        text = data.decode(wide, "replace")
        return _checked(text), _damage(text)
    for escape, name in _ISO_2022:
        if escape in data:
            try:
                return data.decode(name), []
            except (UnicodeDecodeError, LookupError):
                pass
    try:
        return _checked(data.decode("utf-8")), []
    except UnicodeDecodeError:
        pass
    if _SURROGATE_PAIR.search(data):  # CESU-8: each half of a surrogate pair encoded by itself
        try:
            halves = data.decode("utf-8", "surrogatepass")
            text = halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return _checked(text), []
        except UnicodeDecodeError:
            pass
    if _nearly_utf8(data):
        text = data.decode("utf-8", "replace")
        return _checked(text), ["some bytes are no UTF-8 and were replaced"]
    return _guessed(data, declared)


def declared_charset(data: bytes) -> str:
    """The encoding that an HTML or XML file names in its first bytes; empty: none."""
    match = _XML.search(data[:1024]) or _META.search(data[:4096])
    return match.group(1).decode("ascii", "ignore") if match else ""


def _guessed(data: bytes, declared: str) -> tuple[str, list[str]]:
    if declared:
        # The web reads ISO-8859-1 as windows-1252 (WHATWG Encoding, labels).
        name = {"iso-8859-1": "cp1252", "latin1": "cp1252"}.get(declared.lower(), declared)
        try:
            return _checked(data.decode(name)), []
        except (LookupError, UnicodeDecodeError):
            pass
    if _binary(data):
        raise Unreadable("is unknown binary data, not text", code="unsupported")
    import charset_normalizer

    matches = charset_normalizer.from_bytes(data[:SAMPLE])
    best = matches.best()
    if best is None:
        raise Unreadable("is no text in any known encoding", code="unsupported")
    # Rare encodings differ from common ones in a letter or two: in doubt it is the common one.
    near = [
        match
        for match in matches
        if match.chaos <= best.chaos + 0.02 and match.coherence >= best.coherence - 0.05
    ]
    best = min(near, key=lambda match: _COMMON.get(match.encoding, len(_COMMON)), default=best)
    try:
        text = data.decode(best.encoding)
        warnings = []
    except UnicodeDecodeError:
        text = data.decode(best.encoding, "replace")
        warnings = ["some bytes could not be decoded and were replaced"]
    if not data.isascii():
        warnings.append(f"its encoding was guessed: {best.encoding}")
    return _checked(text), warnings


def _wide(data: bytes) -> str:
    """UTF-16 or UTF-32 without a mark at its start, by where its zero bytes are."""
    head = data[:4096]
    head = head[: len(head) // 4 * 4]
    if len(head) < 8:
        return ""
    if not head.count(0):
        return ""
    zeros = [head[i::4].count(0) / (len(head) / 4) for i in range(4)]
    if zeros[0] > 0.9 and zeros[1] > 0.9 and zeros[3] < 0.1:
        return "utf-32-be"
    if zeros[2] > 0.9 and zeros[3] > 0.9 and zeros[0] < 0.1:
        return "utf-32-le"
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if even > 0.2 and odd < 0.05:
        return "utf-16-be"
    if odd > 0.2 and even < 0.05:
        return "utf-16-le"
    return ""


def _nearly_utf8(data: bytes) -> bool:
    """Whether it is UTF-8 but for a few damaged places."""
    text = data[:SAMPLE].decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(char > "\x7f" and char != "\ufffd" for char in text)
    return bad * 5 <= good


def _binary(data: bytes) -> bool:
    """Whether control characters are too many for text in any 8-bit encoding."""
    head = data[:SAMPLE]
    odd = len(head) - len(
        head.translate(None, bytes([*range(9), *range(14, 27), *range(28, 32), 127]))
    )
    return odd * 25 > len(head)


def _checked(text: str) -> str:
    """``text``, unless it is binary data that happened to decode."""
    sample = text[:SAMPLE]
    if len(_CONTROLS.findall(sample)) * 8 > len(sample):
        raise Unreadable("is unknown binary data, not text", code="unsupported")
    return text


def _damage(text: str) -> list[str]:
    return ["some bytes could not be decoded and were replaced"] if "\ufffd" in text else []
