"""The two kinds of answers, ``/api/chat`` and ``/api/generate``: their fields and lines."""

from __future__ import annotations

import itertools
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jarvis.engine import capabilities, messages, options, show
from jarvis.engine.generation import Generation, Part, now
from jarvis.engine.pool import Loaded
from jarvis.engine.request import HTTPError, Request
from jarvis.engine.store import InstalledModel
from jarvis.engine.toolcalls import Call


class Asked(ABC):
    """A request for an answer, checked as far as that goes without the model.

    Raises:
        HTTPError: 400; a field is wrong, or the model cannot do what is asked.
    """

    verb = ""

    def __init__(self, body: Mapping[str, Any], model: InstalledModel) -> None:
        self.body, self.model = body, model
        self.name = str(body.get("model") or body.get("name"))
        self.options = options.merged(model.parameters, body.get("options"))
        self.window = options.num_ctx(self.options)
        self.schema = options.constraint(body.get("format"))
        self.think = body.get("think")
        self.truncate = options.flag(body, "truncate", default=True)
        self.shift = options.flag(body, "shift", default=True)
        self.streamed = options.flag(body, "stream", default=True)
        self.top_logprobs = options.top_logprobs(body)
        self.able = capabilities.of(show.header(model))
        if "completion" not in self.able:
            raise HTTPError(400, f'"{self.name}" does not support {self.verb}')
        if self.think not in (None, True, False, "low", "medium", "high"):
            raise HTTPError(400, f"invalid think value: {self.think!r}"[:100])
        if self.think and "thinking" not in self.able:
            raise HTTPError(400, f'"{self.name}" does not support thinking')

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to answer: the model is only to be loaded."""

    @abstractmethod
    def parts(self, generation: Generation) -> Iterator[Part]:
        """The answer."""

    @abstractmethod
    def content(self, part: Part) -> dict[str, Any]:
        """The fields of a line that hold a part."""

    def final(self, generation: Generation, text: str) -> dict[str, Any]:
        """Further fields of the last line."""
        return {}

    def lines(
        self, loaded: Loaded, request: Request, started: float, load: int
    ) -> Iterator[dict[str, Any]]:
        """The lines of the answer; ``load`` is the time that loading took, in nanoseconds."""
        generation = Generation(
            loaded, request, self.options, shift=self.shift, top_logprobs=self.top_logprobs
        )
        text: list[str] = []
        for part in self.parts(generation):
            text.append(part.content)
            more = {"logprobs": part.logprobs} if part.logprobs else {}
            yield self._head() | self.content(part) | {"done": False} | more
        yield (
            self._head()
            | self.content(Part())
            | {
                "done": True,
                "done_reason": generation.outcome.done_reason,
                "total_duration": int((time.monotonic() - started) * 1e9),
                "load_duration": load,
            }
            | generation.outcome.fields()
            | self.final(generation, "".join(text))
        )

    def loaded_line(self, reason: str) -> dict[str, Any]:
        """The answer to an empty request."""
        return self._head() | self.content(Part()) | {"done": True, "done_reason": reason}

    def joined(self, lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """All lines as one, for ``stream: false``."""
        kept = list(lines)
        logprobs = [each for line in kept for each in line.get("logprobs", ())]
        return kept[-1] | self.whole(kept) | ({"logprobs": logprobs} if logprobs else {})

    @abstractmethod
    def whole(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The fields that hold all the text, thoughts and calls of the lines."""

    def _head(self) -> dict[str, Any]:
        return {"model": self.name, "created_at": now()}


class Chat(Asked):
    """``/api/chat``."""

    verb = "chat"

    def __init__(self, body: Mapping[str, Any], model: InstalledModel) -> None:
        super().__init__(body, model)
        given = messages.parse(body.get("messages"))
        self.talk = [*messages.parse(list(model.messages)), *given]
        if model.system and given and given[0]["role"] != "system":
            self.talk.insert(0, {"role": "system", "content": model.system})
        tools = body.get("tools") or []
        if not isinstance(tools, list) or not all(isinstance(each, Mapping) for each in tools):
            raise HTTPError(400, "tools must be a list of objects")
        if tools and "tools" not in self.able:
            raise HTTPError(400, f'"{self.name}" does not support tools')
        self.tools = [_tool(each) for each in tools]
        self._calls = itertools.count()

    @property
    def empty(self) -> bool:
        """Whether there are no messages."""
        return not self.body.get("messages")

    def parts(self, generation: Generation) -> Iterator[Part]:
        """The answer to the talk."""
        return generation.chat(
            self.talk, self.tools, self.schema, self.think, truncate=self.truncate
        )

    def content(self, part: Part) -> dict[str, Any]:
        """The message."""
        message: dict[str, Any] = {"role": "assistant", "content": part.content}
        if part.thinking:
            message["thinking"] = part.thinking
        if part.calls:
            message["tool_calls"] = [self._call(call) for call in part.calls]
        return {"message": message}

    def whole(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One message."""
        messages = [line["message"] for line in lines]
        whole: dict[str, Any] = {"role": "assistant", "content": _joined(messages, "content")}
        if thinking := _joined(messages, "thinking"):
            whole["thinking"] = thinking
        if calls := [call for each in messages for call in each.get("tool_calls", ())]:
            whole["tool_calls"] = calls
        return {"message": whole}

    def _call(self, call: Call) -> dict[str, Any]:
        return {
            "id": f"call_{secrets.token_hex(4)}",
            "function": {
                "index": next(self._calls),
                "name": call.name,
                "arguments": dict(call.arguments),
            },
        }


def _tool(value: Mapping[str, Any]) -> dict[str, Any]:
    function = value.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise HTTPError(400, "every tool must have a function with a name")
    parameters = function.get("parameters")
    if not isinstance(parameters, Mapping):
        parameters = {"type": "object", "properties": {}}
    return {"type": "function", "function": {**function, "parameters": dict(parameters)}}


class Generate(Asked):
    """``/api/generate``."""

    verb = "generate"

    def __init__(self, body: Mapping[str, Any], model: InstalledModel) -> None:
        super().__init__(body, model)
        self.prompt = messages.clean(_text(body, "prompt"))
        self.suffix = messages.clean(_text(body, "suffix"))
        self.system = messages.clean(_text(body, "system") or model.system)
        self.raw = options.flag(body, "raw", default=False)
        context = body.get("context") or []
        if not isinstance(context, list) or not all(
            isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in context
        ):
            raise HTTPError(400, "context must be a list of tokens")
        self.context: list[int] = context
        if body.get("images"):
            raise HTTPError(400, "this model does not support images")
        if self.raw and (self.context or body.get("system") or body.get("template")):
            raise HTTPError(400, "raw mode does not support template, system, or context")
        if self.suffix and "insert" not in self.able:
            raise HTTPError(400, f'"{self.name}" does not support insert')
        self._rendered: str | list[Any] = ""

    @property
    def empty(self) -> bool:
        """Whether there is no prompt."""
        return not self.prompt

    def parts(self, generation: Generation) -> Iterator[Part]:
        """What follows the prompt: as it is, between two texts, or as a chat of one turn."""
        if self.suffix:
            return generation.infill(self.prompt, self.suffix)
        if self.raw:
            self._rendered = self.prompt
            return generation.complete(self.prompt, self.schema, truncate=self.truncate)
        if not self.context:
            return generation.chat(
                self._talk(), [], self.schema, self.think, truncate=self.truncate
            )
        self._rendered = [*self.context, generation.render(self._talk())]
        return generation.complete(self._rendered, self.schema, truncate=self.truncate)

    def _talk(self) -> messages.Messages:
        """The chat of one turn that the prompt stands for."""
        talk: messages.Messages = [{"role": "user", "content": self.prompt}]
        if not self.context:
            talk = [*messages.parse(list(self.model.messages)), *talk]
        if self.system:
            talk.insert(0, {"role": "system", "content": self.system})
        return talk

    def content(self, part: Part) -> dict[str, Any]:
        """The text."""
        fields: dict[str, Any] = {"response": part.content}
        if part.thinking:
            fields["thinking"] = part.thinking
        return fields

    def final(self, generation: Generation, text: str) -> dict[str, Any]:
        """``context``: the tokens so far, to go on from in the next request."""
        if self.raw or self.suffix:
            return {}
        before = self._rendered or generation.render(self._talk())
        tokens: list[int] = []
        for piece in before if isinstance(before, list) else [before]:
            tokens += [piece] if isinstance(piece, int) else generation.tokens_of(piece)
        return {"context": tokens + generation.tokens_of(text)}

    def whole(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One text."""
        thinking = _joined(lines, "thinking")
        return {"response": _joined(lines, "response")} | (
            {"thinking": thinking} if thinking else {}
        )


def _joined(lines: Iterable[Mapping[str, Any]], key: str) -> str:
    return "".join(line.get(key, "") for line in lines)


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise HTTPError(400, f"{key} must be text")
    return value
