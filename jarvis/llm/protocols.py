"""The two ports to language models. Services see these, never the ``ollama`` client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jarvis.types import Vector


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message for the model. ``role``: system, user, assistant or tool."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """What the server said about a finished answer. Counts are tokens, durations ms.

    ``prompt_tokens`` is the length of the prompt as the server counted it;
    ``evaluated_tokens`` those it really evaluated (the rest came from its cache; equal to
    ``prompt_tokens`` when the server does not tell the two apart).
    """

    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    answer_tokens: int = 0
    load_ms: float = 0.0
    prompt_ms: float = 0.0
    answer_ms: float = 0.0
    done_reason: str = ""


@dataclass(frozen=True, slots=True)
class ChatChunk:
    """A piece of an answer. The last one has ``usage``."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: ChatUsage | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the server knows of a model.

    ``context_length`` is its trained window in tokens, ``parameters`` how many it has; 0 where
    the server does not say.
    """

    name: str
    digest: str
    context_length: int
    capabilities: frozenset[str] = field(default_factory=frozenset)
    family: str = ""
    parameters: int = 0


class ChatModel(Protocol):
    """A chat model on a server that answers.

    Every call raises ``ProviderUnavailable`` or ``ModelNotInstalled``.
    """

    @property
    def name(self) -> str:
        """The model's name, as the server lists it."""
        ...

    @property
    def num_ctx(self) -> int:
        """The window that every request asks for, in tokens."""
        ...

    def info(self) -> ModelInfo:
        """What the server knows of the model (asked once, then kept)."""
        ...

    def preload(self) -> None:
        """Loads the model; returns when it can answer."""
        ...

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | str | None = None,
        options: Mapping[str, Any] | None = None,
        think: bool | None = None,
        background: bool = False,
    ) -> Iterator[ChatChunk]:
        """Streams an answer. Closing the iterator stops the work at the server.

        Args:
            messages: the prompt, in order; roles alternate.
            tools: JSON schemas of functions that the model may call.
            schema: a JSON schema for the answer, or ``"json"``.
            options: Ollama options that override the configured ones.
            think: whether a thinking model may think; None leaves it to the model.
            background: work that nobody waits for; the embedded engine serves it last.
        """
        ...


class Embedder(Protocol):
    """An embedding model on a server that answers.

    Every call raises ``ProviderUnavailable``, ``ModelNotInstalled``, or ``ModelUnavailable``
    when the vectors cannot be used (zeros, NaN, infinity, another length).
    """

    @property
    def name(self) -> str:
        """The model's name, as the server lists it."""
        ...

    @property
    def digest(self) -> str:
        """The digest of the model's file."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        ...

    @property
    def query_prefix(self) -> str:
        """What stands before a query."""
        ...

    @property
    def document_prefix(self) -> str:
        """What stands before a stored text."""
        ...

    @property
    def max_tokens(self) -> int:
        """The model's window, in tokens."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Embeds one question."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Embeds stored texts, in their order; over-long ones in parts, averaged."""
        ...
