"""Rebuilds the table of objects of a damaged PDF.

pdfium mends a wrong table by itself, but gives up on a file whose end, trailer or header is
gone. The objects are still there: they are found by their ``N G obj`` marks (ISO 32000-1, 7.3.10),
those inside object streams (7.5.7) are unpacked, and a fresh table is written behind them.
"""

from __future__ import annotations

import re
import zlib

_OBJECT = re.compile(rb"(?:^|[\r\n >])(\d{1,10})[ \t]+(\d{1,5})[ \t]+obj\b")
_ROOT = re.compile(rb"/Root\s+(\d{1,10})\s+(\d{1,5})\s+R")
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_ENCRYPT = re.compile(rb"/Encrypt\s+\d{1,10}\s+\d{1,5}\s+R")
_ID = re.compile(rb"/ID\s*\[\s*<[0-9A-Fa-f]*>\s*<[0-9A-Fa-f]*>\s*\]")
_NO_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]*/Count\s+0\b|/Count\s+0\b[^>]*/Type\s*/Pages\b")

MAX_OBJECTS = 500_000
"""Objects in one file at most: eight times the largest real file tried."""


def has_no_pages(data: bytes) -> bool:
    """Whether this is a whole PDF that says that it has no pages."""
    return b"%%EOF" in data[-1024:] and bool(_NO_PAGES.search(data)) and b"/Page\n" not in data


def rebuilt(data: bytes, max_unpacked: int) -> bytes | None:
    """``data`` with a new table of objects, or None when there is no catalogue in it.

    Args:
        data: the damaged file.
        max_unpacked: bytes that its object streams may unpack to, in all.
    """
    start = data.find(b"%PDF-", 0, 1024)
    body = data[start:] if start >= 0 else b"%PDF-1.7\n" + data
    places: dict[int, tuple[int, int]] = {}
    for match in _OBJECT.finditer(body):
        places[int(match[1])] = (match.start(1), int(match[2]))
        if len(places) > MAX_OBJECTS:
            return None
    if not places:
        return None
    encrypted = _ENCRYPT.search(body)
    extra = b"" if encrypted else _unpacked(body, places, max_unpacked)
    whole = body + b"\n" + extra
    for match in _OBJECT.finditer(whole, len(body)):
        places.setdefault(int(match[1]), (match.start(1), 0))
    root = _root(whole, places)
    if root is None:
        return None
    table = _table(places)
    trailer = f"trailer\n<< /Size {max(places) + 1} /Root {root} 0 R ".encode()
    if encrypted:
        identity = _ID.search(body)
        trailer += encrypted[0] + b" " + (identity[0] if identity else b"") + b" "
    return whole + table + trailer + f">>\nstartxref\n{len(whole)}\n%%EOF\n".encode()


def _root(data: bytes, places: dict[int, tuple[int, int]]) -> int | None:
    named = [int(match[1]) for match in _ROOT.finditer(data)]
    for number in reversed(named):
        if number in places:
            return number
    for number, (place, _) in places.items():
        end = data.find(b"endobj", place, place + 20_000)
        if _CATALOG.search(data, place, end if end > 0 else place + 2000):
            return number
    return None


def _table(places: dict[int, tuple[int, int]]) -> bytes:
    """A cross-reference table with one section a run of numbers (7.5.4)."""
    numbers = sorted(places)
    rows = [b"xref\n0 1\n0000000000 65535 f \n"]
    index = 0
    while index < len(numbers):
        stop = index + 1
        while stop < len(numbers) and numbers[stop] == numbers[stop - 1] + 1:
            stop += 1
        rows.append(f"{numbers[index]} {stop - index}\n".encode())
        for number in numbers[index:stop]:
            place, generation = places[number]
            rows.append(f"{place:010d} {generation:05d} n \n".encode())
        index = stop
    return b"".join(rows)


def _unpacked(data: bytes, places: dict[int, tuple[int, int]], limit: int) -> bytes:
    """The objects inside the object streams, each written out as one of its own."""
    found: list[bytes] = []
    size = 0
    for match in re.finditer(rb"/Type\s*/ObjStm\b", data):
        stream = data.find(b"stream", match.end(), match.end() + 2000)
        opening = data.rfind(b" obj", max(0, match.start() - 2000), match.start())
        if stream < 0 or opening < 0:
            continue
        head = data[opening:stream]
        count, first = re.search(rb"/N\s+(\d+)", head), re.search(rb"/First\s+(\d+)", head)
        if not count or not first:
            continue
        begin = stream + 6
        begin += 2 if data[begin : begin + 2] == b"\r\n" else 1
        try:
            content = zlib.decompressobj().decompress(data[begin:], max(1, limit - size))
        except zlib.error:
            continue
        size += len(content)
        if size >= limit:
            break
        offset = int(first[1])
        numbers = [int(word) for word in content[:offset].split() if word.isdigit()]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))[: int(count[1])]
        for index, (number, place) in enumerate(pairs):
            end = pairs[index + 1][1] if index + 1 < len(pairs) else len(content) - offset
            text = content[offset + place : offset + end]
            if number not in places:
                found.append(f"{number} 0 obj\n".encode() + text + b"\nendobj\n")
    return b"".join(found)
