"""An embedding model on a server, behind the ``Embedder`` protocol."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import httpx

from jarvis.errors import ModelUnavailable
from jarvis.llm.chat import model_info
from jarvis.llm.profiles import embedding_profile
from jarvis.llm.protocols import ModelInfo
from jarvis.llm.server import Server
from jarvis.types import Vector

BATCH = 32
"""Texts in one request: enough to keep the model busy, few enough for a progress bar."""

MINIMUM_PIECE = 8
"""Characters below which a text is not halved again."""

CHARACTERS_PER_TOKEN = 5
"""More than any tokenizer reaches on prose: a longer text is surely over the window."""

T = TypeVar("T")


class OllamaEmbedder:
    """One embedding model. See ``Embedder`` for the contract.

    Args:
        dimensions: shorten to this length; 0 leaves the model's own.
        query_prefix: overrides the prefix that the model is known to need.
        document_prefix: likewise.
    """

    def __init__(
        self,
        server: Server,
        name: str,
        *,
        dimensions: int = 0,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        profile = embedding_profile(name)
        self.server = server
        self._name = name
        self._wanted = dimensions
        self._query_prefix = profile.query_prefix if query_prefix is None else query_prefix
        self._document_prefix = (
            profile.document_prefix if document_prefix is None else document_prefix
        )

    @property
    def name(self) -> str:
        """The model's name, as the server lists it."""
        return self._name

    @property
    def digest(self) -> str:
        """The digest of the model's file."""
        return self._info.digest

    @property
    def query_prefix(self) -> str:
        """What stands before a query."""
        return self._query_prefix

    @property
    def document_prefix(self) -> str:
        """What stands before a stored text."""
        return self._document_prefix

    @property
    def max_tokens(self) -> int:
        """The model's window, in tokens."""
        return self._info.context_length or 256

    @cached_property
    def dimensions(self) -> int:
        """The length of every vector; asked from the model, not believed from its description.

        Raises:
            ModelUnavailable: the model cannot give the configured length.
        """
        vectors = self._request(["a"])
        length = len(vectors[0]) if vectors else 0
        if self._wanted and length != self._wanted:
            raise ModelUnavailable(
                f"{self._name} gives {length} dimensions, not the configured {self._wanted}",
                "set embedding.dimensions to 0",
            )
        return length

    @cached_property
    def _info(self) -> ModelInfo:
        return self._retry(lambda: model_info(self.server, self._name))

    def embed_query(self, text: str) -> Vector:
        """Embeds one question."""
        return self._embed([text], self._query_prefix)[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Embeds stored texts, in their order; over-long ones in parts, averaged."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._embed(texts[start : start + BATCH], self._document_prefix)
        return vectors

    def _embed(self, texts: Sequence[str], prefix: str) -> list[Vector]:
        """One batch. A text over the window is halved until its parts fit."""
        limit = self.max_tokens * CHARACTERS_PER_TOKEN
        short = [text for text in texts if len(text) <= limit]
        try:
            found = iter(self._checked(self._request([prefix + _filled(t) for t in short])))
        except _TooLong:
            if len(texts) == 1:
                return [self._in_halves(texts[0], prefix)]
            return [self._embed([text], prefix)[0] for text in texts]
        return [
            next(found) if len(text) <= limit else self._in_halves(text, prefix) for text in texts
        ]

    def _in_halves(self, text: str, prefix: str) -> Vector:
        if len(text) < MINIMUM_PIECE:
            raise ModelUnavailable(
                f"{self._name} finds {len(text)} characters too long",
                "use another embedding model, or a shorter embedding.document_prefix",
            )
        middle = len(text) // 2
        space = text.rfind(" ", middle // 2, middle)
        cut = space + 1 if space > 0 else middle
        parts = [text[:cut], text[cut:]]
        vectors = [self._embed([part], prefix)[0] for part in parts]
        return mean(vectors, [len(part) for part in parts])

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []

        def ask() -> list[list[float]]:
            with self.server.errors(self._name):
                response = self.server.client.embed(
                    self._name,
                    list(texts),
                    truncate=False,
                    dimensions=self._wanted or None,
                )
            return [list(vector) for vector in response.embeddings]

        return self._retry(ask)

    def _retry(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except ModelUnavailable as error:
            if _says_too_long(error):
                raise _TooLong from error
            lost = isinstance(error.__cause__, (httpx.TransportError, ConnectionError))
            if not lost or not self.server.revive():
                raise
        return action()

    def _checked(self, vectors: list[list[float]]) -> list[Vector]:
        for vector in vectors:
            check_vector(vector, self.dimensions, self._name)
        return list(vectors)


class _TooLong(Exception):
    """A text of the batch is over the model's window."""


def check_vector(vector: Sequence[float], dimensions: int, model: str) -> None:
    """Refuses a vector that cannot be compared.

    Raises:
        ModelUnavailable: zeros, NaN, infinity or another length; the message names the model.
    """
    wrong = ""
    if len(vector) != dimensions:
        wrong = f"{len(vector)} numbers instead of {dimensions}"
    elif not all(map(math.isfinite, vector)):
        wrong = "a vector that holds NaN or infinity"
    elif not any(vector):
        wrong = "a vector of zeros"
    if wrong:
        raise ModelUnavailable(
            f"the embedding model {model} gave {wrong}",
            "nothing was stored with it; check the model: jarvis model status",
        )


def mean(vectors: Sequence[Vector], weights: Sequence[float]) -> list[float]:
    """The weighted mean of unit vectors, scaled to length 1.

    Args:
        vectors: n vectors of d numbers.
        weights: n positive numbers.
    """
    total = [0.0] * len(vectors[0])
    for vector, weight in zip(vectors, weights, strict=True):
        length = math.sqrt(sum(x * x for x in vector)) or 1.0
        total = [old + weight * x / length for old, x in zip(total, vector, strict=True)]
    length = math.sqrt(sum(x * x for x in total))
    return [x / length for x in total] if length else [float(x) for x in vectors[0]]


def _filled(text: str) -> str:
    # Some models give zeros for an empty text.
    return text if text.strip() else "."


def _says_too_long(error: ModelUnavailable) -> bool:
    text = error.message.lower()
    return "context length" in text or "too long" in text or "exceeds" in text
