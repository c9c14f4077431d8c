"""A chat model on a server, behind the ``ChatModel`` protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import httpx
import ollama

from jarvis.errors import ModelUnavailable
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatUsage, ModelInfo, ToolCall
from jarvis.llm.server import Server
from jarvis.llm.thinking import separate

NANOSECONDS_PER_MS = 1e6


class OllamaChatModel:
    """One chat model. See ``ChatModel`` for the contract."""

    def __init__(
        self,
        server: Server,
        name: str,
        *,
        num_ctx: int,
        temperature: float,
        keep_alive: str | None = None,
    ) -> None:
        self.server = server
        self._name = name
        self._num_ctx = num_ctx
        self.temperature = temperature
        self.keep_alive = keep_alive

    @property
    def name(self) -> str:
        """The model's name, as the server lists it."""
        return self._name

    @property
    def num_ctx(self) -> int:
        """The window that every request asks for, in tokens, at most the trained one."""
        trained = self._info.context_length
        return min(self._num_ctx, trained) if trained else self._num_ctx

    def info(self) -> ModelInfo:
        """What the server knows of the model."""
        return self._info

    @cached_property
    def _info(self) -> ModelInfo:
        return model_info(self.server, self._name)

    def preload(self) -> None:
        """Loads the model with the window that the turns will use."""
        with self.server.errors(self._name):
            self.server.client.chat(
                self._name, [], options={"num_ctx": self.num_ctx}, keep_alive=self.keep_alive
            )

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
        """Streams an answer, its thoughts apart. Closing the iterator closes the connection."""
        return separate(self._chunks(messages, tools, schema, options or {}, think, background))

    def _chunks(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | str | None,
        options: Mapping[str, Any],
        think: bool | None,
        background: bool,
    ) -> Iterator[ChatChunk]:
        arguments: dict[str, Any] = {
            "model": self._name,
            "messages": [_message(message) for message in messages],
            "stream": True,
            "options": {"num_ctx": self.num_ctx, "temperature": self.temperature, **options},
        }
        if tools:
            arguments["tools"] = list(tools)
        if schema is not None:
            arguments["format"] = schema
        if self.keep_alive:
            arguments["keep_alive"] = self.keep_alive
        if "thinking" in self._info.capabilities:
            arguments["think"] = bool(think)
        for first_try in (True, False):
            started = finished = False
            client = self.server.background_client if background else self.server.client
            self.server.cached_tokens.value = None
            stream = client.chat(**arguments)
            try:
                with self.server.errors(self._name):
                    for part in stream:
                        started = True
                        finished = bool(part.done)
                        yield self._chunk(part)
                if not finished:
                    raise self.server.unavailable("it ended the answer in the middle")
                return
            except ModelUnavailable as error:
                lost = isinstance(error.__cause__, (httpx.TransportError, ConnectionError))
                if started or not first_try or not lost or not self.server.revive():
                    raise
            finally:
                close = getattr(stream, "close", None)
                if close is not None:
                    close()

    def _chunk(self, part: ollama.ChatResponse) -> ChatChunk:
        message = part.message
        return ChatChunk(
            text=message.content or "",
            thinking=message.thinking or "",
            tool_calls=tuple(
                ToolCall(call.function.name, dict(call.function.arguments))
                for call in message.tool_calls or ()
            ),
            usage=self._usage(part) if part.done else None,
        )

    def _usage(self, part: ollama.ChatResponse) -> ChatUsage:
        prompt = part.prompt_eval_count or 0
        cached = self.server.cached_tokens.value or 0
        return ChatUsage(
            prompt_tokens=prompt,
            evaluated_tokens=max(0, prompt - cached),
            answer_tokens=part.eval_count or 0,
            load_ms=(part.load_duration or 0) / NANOSECONDS_PER_MS,
            prompt_ms=(part.prompt_eval_duration or 0) / NANOSECONDS_PER_MS,
            answer_ms=(part.eval_duration or 0) / NANOSECONDS_PER_MS,
            done_reason=part.done_reason or "",
        )


def model_info(server: Server, name: str) -> ModelInfo:
    """Asks the server about a model.

    Raises:
        ModelNotInstalled: it is not there.
        ProviderUnavailable: the server does not answer.
    """
    with server.errors(name):
        shown = server.client.show(name)
    facts = shown.modelinfo or {}
    length = next(
        (int(value) for key, value in facts.items() if key.endswith(".context_length")), 0
    )
    family = shown.details.family if shown.details else None
    return ModelInfo(
        name=name,
        digest=server.digest(name),
        context_length=length,
        capabilities=frozenset(shown.capabilities or ()),
        family=family or "",
        parameters=int(facts.get("general.parameter_count") or 0),
    )


def _message(message: ChatMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        made["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_name:
        made["tool_name"] = message.tool_name
    return made
