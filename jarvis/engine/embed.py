"""``/api/embed`` and the older ``/api/embeddings``."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jarvis.engine import llama, options
from jarvis.engine.messages import clean
from jarvis.engine.pool import Loaded
from jarvis.engine.request import HTTPError, Request

GROUP = 64
"""Texts handed to llama.cpp at once; a client that has gone is noticed between groups."""
BACKGROUND_GROUP = 8
"""The same for background work, which pauses between groups while a chat runs."""

LONGEST_WORD = 1024
"""Characters: more than any token of a text that is one."""

TOO_LONG = "the input length exceeds the context length"


def inputs(body: Mapping[str, Any]) -> list[str]:
    """The texts of a request: one, a list, or none.

    Raises:
        HTTPError: 400; there is something else.
    """
    given = body.get("input", "")
    if given is None or given == "":
        return []
    if isinstance(given, str):
        return [clean(given)]
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return [clean(each) for each in given]
    raise HTTPError(400, "invalid input type")


def dimensions(body: Mapping[str, Any]) -> int:
    """The length that vectors are to be cut to; 0: their own.

    Raises:
        HTTPError: 400; it is no whole number.
    """
    wanted = body.get("dimensions") or 0
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
        raise HTTPError(400, "dimensions must be a positive whole number")
    return wanted


class Embedding:
    """The texts of one request, on a loaded model."""

    def __init__(self, loaded: Loaded, request: Request, window: int, *, truncate: bool) -> None:
        self.loaded, self.request = loaded, request
        self.window, self.truncate = min(window, loaded.num_ctx), truncate
        self.tokens = 0

    def vectors(self, texts: Sequence[str], group: int) -> Iterator[list[list[float]]]:
        """The vectors, group by group, in order.

        Raises:
            HTTPError: 400; a text is longer than the window and must not be cut.
        """
        prepared = [self._prepare(text) for text in texts]
        for start in range(0, len(prepared), group):
            answer = self._call("/v1/embeddings", {"input": prepared[start : start + group]})
            self.tokens += int(answer["usage"]["prompt_tokens"])
            data = sorted(answer["data"], key=lambda each: each["index"])
            yield [each["embedding"] for each in data]

    def _prepare(self, text: str) -> str | list[int]:
        """The text itself, or its tokens where it must be cut or has none of its own."""
        # A token is at least a byte, and a model adds two of its own at most.
        if text.strip() and len(text.encode()) + 2 <= self.window:
            return text
        if self.truncate:  # what is far behind the window need not even be tokenised
            text = text[: self.window * LONGEST_WORD]
        whole = self._tokens(text, special=True)
        if len(whole) <= self.window:
            return whole
        if not self.truncate:
            raise HTTPError(400, TOO_LONG)
        bare = self._tokens(text, special=False)
        after = len(whole) - len(bare) - (0 if whole[: len(bare)] == bare else 1)
        ending = whole[len(whole) - after :] if after > 0 else []
        return whole[: self.window - len(ending)] + ending

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        answer = self._call("/tokenize", {"content": text, "add_special": special})
        tokens: list[int] = answer["tokens"]
        return tokens

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        return llama.call(self.loaded.address, path, body, self.request.check, self.request.watch)


def shorten(vector: list[float], length: int) -> list[float]:
    """The first ``length`` numbers, brought back to unit length."""
    if not length or length >= len(vector):
        return vector
    head = vector[:length]
    norm = math.sqrt(math.fsum(value * value for value in head))
    return [value / norm for value in head] if norm else head


def window_of(opts: Mapping[str, Any], loaded: Loaded) -> int:
    """Tokens that one text may have."""
    return options.num_ctx(opts) or loaded.num_ctx


def nanoseconds(start: float) -> int:
    """Since ``start`` (of ``time.monotonic``)."""
    return int((time.monotonic() - start) * 1e9)
