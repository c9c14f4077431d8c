"""The count of cached tokens is read off the stream, wherever it is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from jarvis.llm.server import CachedTokens, _TappedStream

LINES = [
    json.dumps({"message": {"content": text}, "done": False}) for text in ("a", "b\\n", "c")
] + [json.dumps({"done": True, "prompt_eval_count": 30, "prompt_cached_count": 29})]


class Pieces(httpx.SyncByteStream):
    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self.data), self.size):
            yield self.data[start : start + self.size]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("end", ["\n", ""])
def test_read_from_a_stream_cut_anywhere(size: int, end: str) -> None:
    data = ("\n".join(LINES) + end).encode()
    seen = CachedTokens()
    assert b"".join(_TappedStream(Pieces(data, size), seen.look)) == data
    assert seen.value == 29
