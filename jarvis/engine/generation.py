"""``/api/chat`` and ``/api/generate``: from Ollama's request to llama.cpp's and back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jarvis.engine import llama, messages, options
from jarvis.engine.llama import RunnerFailed
from jarvis.engine.messages import Messages
from jarvis.engine.pool import Loaded
from jarvis.engine.request import HTTPError, Request
from jarvis.engine.toolcalls import Call, Piece, ToolCallFilter

SILENT_SECONDS = 60.0
"""How long a model with a free slot may take before it begins to read a prompt."""

LONGEST_TOKEN = 256
"""Characters; a text of more for each token of the window is longer than the window for certain."""

TOO_LONG = "the prompt is longer than the context: {have} tokens, and num_ctx is {window}"


@dataclass(slots=True)
class Part:
    """A piece of an answer, in Ollama's terms."""

    content: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)
    logprobs: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """How an answer ended. Counts are tokens, durations nanoseconds."""

    done_reason: str = "stop"
    prompt_eval_count: int = 0
    prompt_cached_count: int = 0
    prompt_eval_duration: int = 0
    eval_count: int = 0
    eval_duration: int = 0

    def fields(self) -> dict[str, Any]:
        """As fields of the last line."""
        return {
            "prompt_eval_count": self.prompt_eval_count,
            "prompt_eval_duration": self.prompt_eval_duration,
            "prompt_cached_count": self.prompt_cached_count,
            "eval_count": self.eval_count,
            "eval_duration": self.eval_duration,
        }


class Generation:
    """One answer of a loaded model. ``outcome`` is whole once ``parts`` has ended.

    Args:
        shift: at the end of the window forget the oldest tokens and go on; else the answer ends.
        top_logprobs: alternatives to each token to report; None: no log probabilities.
    """

    def __init__(
        self,
        loaded: Loaded,
        request: Request,
        opts: Mapping[str, Any],
        *,
        shift: bool = True,
        top_logprobs: int | None = None,
    ) -> None:
        self.loaded, self.request, self.options = loaded, request, opts
        self.shift, self.top_logprobs = shift, top_logprobs
        self.window = min(options.num_ctx(opts) or loaded.num_ctx, loaded.num_ctx)
        self._most = self.window * LONGEST_TOKEN
        self.outcome = Outcome()

    def chat(
        self,
        talk: Messages,
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        think: object,
        *,
        truncate: bool,
    ) -> Iterator[Part]:
        """Answers a talk."""
        request = self._request(schema) | {"messages": talk}
        if tools:
            request["tools"] = list(tools)
        if think is not None:
            request["chat_template_kwargs"] = {
                "enable_thinking": bool(think),
                **({"reasoning_effort": think} if isinstance(think, str) else {}),
            }
        parts = self._talk(request, truncate=truncate)
        return self._recognise(parts, tools) if tools and not schema else parts

    def complete(
        self,
        prompt: str | list[Any],
        schema: Mapping[str, Any] | None,
        *,
        truncate: bool,
    ) -> Iterator[Part]:
        """Goes on with a prompt that is taken as it is."""
        if isinstance(prompt, str) and len(prompt) > 2 * self._most and truncate:
            prompt = prompt[: self._most] + prompt[-self._most :]
        if isinstance(prompt, list) or len(prompt.encode()) >= self.window:
            tokens = self._tokens(prompt)
            if len(tokens) >= self.window:
                prompt = self._cut(tokens, truncate=truncate)
        return self._parts("/completion", self._request(schema) | {"prompt": prompt})

    def infill(self, prefix: str, suffix: str) -> Iterator[Part]:
        """Writes what stands between ``prefix`` and ``suffix``."""
        request = self._request(None)
        request |= {"input_prefix": prefix[-self._most :], "input_suffix": suffix[: self._most]}
        return self._parts("/infill", request)

    def render(self, talk: Messages) -> str:
        """The prompt that the model's template makes of a talk."""
        return str(self._render({"messages": talk}))

    def tokens_of(self, text: str) -> list[int]:
        """The tokens of a prompt, special ones included."""
        return self._tokens(text)

    def _talk(self, request: dict[str, Any], *, truncate: bool) -> Iterator[Part]:
        """The parts of the answer; a talk that the template refuses is given in another form."""
        shaped, path = self._shape(dict(request), truncate=truncate)
        begun = False
        try:
            for part in self._parts(path, shaped):
                begun = True
                yield part
            return
        except RunnerFailed as error:
            if begun or error.status not in {400, 500} or "emplate" not in str(error):
                raise
        request["messages"] = self._accepted(request)
        shaped, path = self._shape(request, truncate=truncate)
        yield from self._parts(path, shaped)

    def _request(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        request = options.sampling(self.options, self.window)
        request |= {"stream": True, "return_progress": True, "cache_prompt": True}
        if schema is not None:
            request["json_schema"] = schema
        if self.top_logprobs is not None:
            count = max(self.top_logprobs, 1)  # for none, llama.cpp reports nothing at all
            request |= {"n_probs": count, "logprobs": True, "top_logprobs": count}
        return request

    def _shape(self, request: dict[str, Any], *, truncate: bool) -> tuple[dict[str, Any], str]:
        """Makes the talk fit the template and the window; returns request and path."""
        talk: Messages = request["messages"]
        size = sum(len(str(each["content"]).encode()) for each in talk) + len(
            json.dumps(request.get("tools", ""))
        )
        if size > self._most:  # tokenising it all could take minutes
            if not truncate:
                raise HTTPError(400, TOO_LONG.format(have="too many", window=self.window))
            request["messages"] = talk = messages.bounded(talk, self._most)
        # Most talks are short and their template takes them as they are: one trial costs less
        # than finding that out for certain. A token is at least a byte; a template adds a few.
        if size + 40 * len(talk) + 400 >= self.window:
            request["messages"] = talk = self._accepted(request)
            count = self._count(request)
            if count >= self.window:
                return self._shorten(request, count, truncate=truncate)
        return request, "/v1/chat/completions"

    def _accepted(self, request: Mapping[str, Any]) -> Messages:
        """The first form of the talk that the template takes."""
        first: RunnerFailed | None = None
        for talk in messages.variants(request["messages"]):
            try:
                self._render({**request, "messages": talk})
            except RunnerFailed as error:
                if not error.status:  # no refusal: the model is stuck, or gone
                    raise
                first = first or error
                continue
            return talk
        raise HTTPError(400, f"the model's template refuses these messages: {first}")

    def _shorten(
        self, request: dict[str, Any], count: int, *, truncate: bool
    ) -> tuple[dict[str, Any], str]:
        """Leaves out the oldest messages; at last cuts what is left, as Ollama does."""
        if not truncate:
            raise HTTPError(400, TOO_LONG.format(have=count, window=self.window))
        talk: Messages = request["messages"]
        low, high = 1, len(talk)
        while low < high:  # the least number to leave out
            middle = (low + high) // 2
            request["messages"] = messages.without_oldest(talk, middle)
            if self._count(request) < self.window:
                high = middle
            else:
                low = middle + 1
        request["messages"] = self._accepted(
            {**request, "messages": messages.without_oldest(talk, low)}
        )
        if self._count(request) < self.window:
            return request, "/v1/chat/completions"
        tokens = self._tokens(str(self._render(request)))
        request = {key: each for key, each in request.items() if key not in {"messages", "tools"}}
        return request | {"prompt": self._cut(tokens, truncate=True)}, "/completion"

    def _cut(self, tokens: list[int], *, truncate: bool) -> list[int]:
        """Keeps ``num_keep`` tokens at the front and the end of the rest: half a window."""
        if not truncate:
            raise HTTPError(400, TOO_LONG.format(have=len(tokens), window=self.window))
        keep = min(max(int(self.options.get("num_keep", 4)), 0), self.window // 2)
        tail = max(self.window - keep - max(self.window // 4, 1), 1)
        return tokens[:keep] + tokens[-tail:]

    def _recognise(
        self, parts: Iterator[Part], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[Part]:
        """Turns calls that were written as text into calls. One that repeats ends the answer."""
        sieve, seen = ToolCallFilter(tools), set[str]()
        repeated = False

        def fresh(piece: Piece) -> Part:
            nonlocal repeated
            calls = []
            for call in piece.calls:
                key = json.dumps([call.name, call.arguments], sort_keys=True)
                repeated = repeated or key in seen
                if key not in seen:
                    seen.add(key)
                    calls.append(call)
            return Part(content=piece.text if not seen or piece.text.strip() else "", calls=calls)

        for part in parts:
            if part.thinking or part.calls or part.logprobs:
                yield Part(thinking=part.thinking, calls=part.calls, logprobs=part.logprobs)
            if part.content:
                found = fresh(sieve.feed(part.content))
                if found.content or found.calls:
                    yield found
                if repeated:
                    return  # a small model that has begun to repeat itself does not stop
        found = fresh(sieve.finish())
        if found.content or found.calls:
            yield found

    def _parts(self, path: str, request: Mapping[str, Any]) -> Iterator[Part]:
        """The events of llama.cpp as parts; fills ``outcome``."""
        pending: dict[int, dict[str, str]] = {}
        started, first, written = time.monotonic(), 0.0, 0
        for event in self._stream(path, request):
            if progress := event.get("prompt_progress"):
                self.outcome.prompt_eval_count = int(progress["total"])
                self.outcome.prompt_cached_count = int(progress["cache"])
            if timings := event.get("timings"):
                self._finish(timings)
            part, reason = _read_event(event, pending)
            part.logprobs = _read_logprobs(event, self.top_logprobs)
            if reason:
                self.outcome.done_reason = reason
                part.calls += _complete_calls(pending)
            if part.content or part.thinking or part.calls or part.logprobs:
                written += 1
                first = first or time.monotonic()
                # Kept up to date: a reader may stop before the end.
                self.outcome.eval_count = max(self.outcome.eval_count, written)
                if not self.outcome.eval_duration:
                    self.outcome.prompt_eval_duration = int((first - started) * 1e9)
                yield part
            if not self.shift and self.outcome.prompt_eval_count + written >= self.window:
                self.outcome.done_reason = "length"
                return

    def _finish(self, timings: Mapping[str, float]) -> None:
        cached, evaluated = int(timings.get("cache_n", 0)), int(timings.get("prompt_n", 0))
        self.outcome.prompt_eval_count = cached + evaluated
        self.outcome.prompt_cached_count = cached
        self.outcome.prompt_eval_duration = int(timings.get("prompt_ms", 0) * 1e6)
        self.outcome.eval_count = int(timings.get("predicted_n", 0))
        self.outcome.eval_duration = int(timings.get("predicted_ms", 0) * 1e6)

    def _stream(self, path: str, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """llama.cpp's events. The first comes before the first token is read, when a slot is free.

        A template from a hostile file may never end: its process is then the price.
        """
        guard = _Guard(self.loaded, self.request, slotted=True)
        try:
            for event in llama.stream(
                self.loaded.address, path, request, guard.check, self.request.watch
            ):
                guard.answered()
                yield event
        finally:
            guard.close()

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        guard = _Guard(self.loaded, self.request, slotted=False)
        return llama.call(self.loaded.address, path, body, guard.check, self.request.watch)

    def _render(self, request: Mapping[str, Any]) -> Any:
        wanted = {"messages", "tools", "chat_template_kwargs"}
        return self._call(
            "/apply-template", {key: each for key, each in request.items() if key in wanted}
        )["prompt"]

    def _count(self, request: Mapping[str, Any]) -> int:
        return len(self._tokens(str(self._render(request))))

    def _tokens(self, prompt: str | list[Any]) -> list[int]:
        if isinstance(prompt, list):
            tokens: list[int] = []
            for piece in prompt:
                tokens += [piece] if isinstance(piece, int) else self._tokens(piece)
            return tokens
        body = {"content": prompt, "add_special": True, "parse_special": True}
        answer: list[int] = self._call("/tokenize", body)["tokens"]
        return answer


class _Guard:
    """Gives a model up that gives no sign although nothing keeps it from answering.

    While every slot is taken a request has to wait its turn, however long: that does not count.
    """

    def __init__(self, loaded: Loaded, request: Request, *, slotted: bool) -> None:
        self.loaded, self.request, self.slotted = loaded, request, slotted
        self.since, self.silent = time.monotonic(), True

    def answered(self) -> None:
        """The first event is there."""
        if self.silent:
            self.silent = False
            self.loaded.answering.add(id(self))

    def close(self) -> None:
        """The answer has ended."""
        self.loaded.answering.discard(id(self))

    def check(self) -> None:
        """Raises when the client has gone, the work was cancelled, or the model is stuck."""
        self.request.check()
        if not self.silent:
            return
        now = time.monotonic()
        if self.slotted and len(self.loaded.answering) >= self.loaded.spec.slots:
            self.since = now
        if now - self.since > SILENT_SECONDS:
            raise RunnerFailed(f"the model gave no sign within {SILENT_SECONDS:.0f} s")


def _read_event(event: Mapping[str, Any], pending: dict[int, dict[str, str]]) -> tuple[Part, str]:
    """The part and the reason of the end that an event holds, of either kind of request."""
    if "choices" not in event:  # /completion, /infill
        reason = ""
        if event.get("stop"):
            reason = "length" if event.get("stop_type") == "limit" else "stop"
        return Part(content=event.get("content") or ""), reason
    if not event["choices"]:
        return Part(), ""
    choice = event["choices"][0]
    delta = choice.get("delta") or {}
    part = Part(content=delta.get("content") or "", thinking=delta.get("reasoning_content") or "")
    for call in delta.get("tool_calls") or ():
        index = int(call.get("index", 0))
        if index not in pending:
            part.calls += _complete_calls(pending)
        known = pending.setdefault(index, {"name": "", "arguments": ""})
        function = call.get("function") or {}
        known["name"] += function.get("name") or ""
        known["arguments"] += function.get("arguments") or ""
    reason = choice.get("finish_reason") or ""
    return part, {"length": "length", "": ""}.get(reason, "stop")


def _read_logprobs(event: Mapping[str, Any], top: int | None) -> list[dict[str, Any]]:
    """The log probabilities of an event in Ollama's form."""
    if top is None:
        return []
    found = event.get("completion_probabilities")
    if found is None and event.get("choices"):
        found = (event["choices"][0].get("logprobs") or {}).get("content")
    entries = []
    for each in found or ():
        entry = _logprob(each)
        if top:
            entry["top_logprobs"] = [_logprob(other) for other in each["top_logprobs"][:top]]
        entries.append(entry)
    return entries


def _logprob(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("token", "logprob", "bytes")}


def _complete_calls(pending: dict[int, dict[str, str]]) -> list[Call]:
    calls = []
    for each in pending.values():
        try:
            arguments = json.loads(each["arguments"] or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict) and each["name"]:
            calls.append(Call(each["name"], arguments))
    pending.clear()
    return calls


def now() -> str:
    """The time as Ollama writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
