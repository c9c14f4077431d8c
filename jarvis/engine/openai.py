"""OpenAI's API in terms of Ollama's, for the clients that speak to an Ollama that way.

As with Ollama, ``/v1/chat/completions``, ``/v1/completions``, ``/v1/embeddings`` and
``/v1/models``: a request becomes one of ``/api/chat``, ``/api/generate`` or ``/api/embed``, and
what that answers is written in OpenAI's form. ``tool_choice`` other than ``none``,
``logit_bias``, ``user`` and ``n`` are ignored.
"""

from __future__ import annotations

import base64
import json
import secrets
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from jarvis.engine import options
from jarvis.engine.request import HTTPError, Response, json_response
from jarvis.engine.store import InstalledModel

_ERROR_KINDS = {400: "invalid_request_error", 404: "not_found_error"}
_FINGERPRINT = "fp_ollama"


def error_response(status: int, message: str) -> Response:
    """An error in OpenAI's form."""
    return json_response({"error": _error(message, status)}, status)


def _error(message: str, status: int = 500) -> dict[str, Any]:
    kind = _ERROR_KINDS.get(status, "api_error")
    return {"message": message, "type": kind, "param": None, "code": None}


def model(installed: InstalledModel) -> dict[str, Any]:
    """An entry of ``/v1/models``."""
    return {
        "id": installed.name,
        "object": "model",
        "created": int(installed.modified_at.timestamp()),
        "owned_by": "library",
    }


def embeddings(body: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of ``/api/embed`` in OpenAI's form.

    Raises:
        HTTPError: 400; ``encoding_format`` is neither ``float`` nor ``base64``.
    """
    form = body.get("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise HTTPError(400, "encoding_format must be float or base64")
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _packed(vector, form)}
            for index, vector in enumerate(answer["embeddings"])
        ],
        "model": answer["model"],
        "usage": {
            "prompt_tokens": answer["prompt_eval_count"],
            "total_tokens": answer["prompt_eval_count"],
        },
    }


def _packed(vector: list[float], form: str) -> list[float] | str:
    if form == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


class Completion(ABC):
    """One request of OpenAI's: ``body`` is the same for Ollama.

    Raises:
        HTTPError: 400; a field is wrong.
    """

    prefix, kind, chunk_kind = "", "", ""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.id = f"{self.prefix}-{secrets.randbelow(1000)}"
        self.created = int(time.time())
        stream = options.flag(given, "stream", default=False)
        wishes = given.get("stream_options") or {}
        if not isinstance(wishes, Mapping):
            raise HTTPError(400, "stream_options must be an object")
        self.with_usage = bool(wishes.get("include_usage"))
        self.body: dict[str, Any] = {
            "model": given.get("model"),
            "stream": stream,
            "options": _options(given),
        }

    @abstractmethod
    def choice(self, line: Mapping[str, Any], *, streamed: bool) -> dict[str, Any]:
        """The choice that a line of Ollama's stands for."""

    def whole(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, not streamed."""
        choice = self.choice(line, streamed=False) | {"finish_reason": self._reason(line)}
        return self._head(self.kind) | {"choices": [choice], "usage": _usage(line)}

    def chunks(self, lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The answer as a stream. Closing it closes ``lines``."""
        called = False
        try:
            for line in lines:
                if "error" in line:
                    yield {"error": _error(line["error"])}
                    return
                called |= bool(line.get("message", {}).get("tool_calls"))
                choice = self.choice(line, streamed=True)
                reason = "tool_calls" if called and line["done"] else self._reason(line)
                yield self._head(self.chunk_kind) | {
                    "choices": [choice | {"finish_reason": reason}]
                }
                if line["done"] and self.with_usage:
                    yield self._head(self.chunk_kind) | {"choices": [], "usage": _usage(line)}
        finally:
            lines.close()  # type: ignore[attr-defined]

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.body["model"],
            "system_fingerprint": _FINGERPRINT,
        }

    @staticmethod
    def _reason(line: Mapping[str, Any]) -> str | None:
        if not line["done"]:
            return None
        if line.get("message", {}).get("tool_calls"):
            return "tool_calls"
        return "length" if line.get("done_reason") == "length" else "stop"


class ChatCompletion(Completion):
    """``/v1/chat/completions``."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.body["messages"] = _messages(given.get("messages"))
        if given.get("tools") and given.get("tool_choice") != "none":
            self.body["tools"] = given["tools"]
        if (form := _format(given.get("response_format"))) is not None:
            self.body["format"] = form
        if (effort := _effort(given)) is not None:
            self.body["think"] = False if effort == "none" else effort
        self.body |= {key: given[key] for key in ("logprobs", "top_logprobs") if given.get(key)}

    def choice(self, line: Mapping[str, Any], *, streamed: bool) -> dict[str, Any]:
        """The message, or what is new of it."""
        message = line["message"]
        found: dict[str, Any] = {"role": "assistant", "content": message["content"]}
        if message.get("thinking"):
            found["reasoning"] = message["thinking"]
        if calls := message.get("tool_calls"):
            found["tool_calls"] = [_call(each) for each in calls]
        choice = {"index": 0, "delta" if streamed else "message": found}
        if line.get("logprobs"):
            choice["logprobs"] = {"content": line["logprobs"]}
        return choice


class TextCompletion(Completion):
    """``/v1/completions``."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        prompt = given.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str) or not prompt:
            raise HTTPError(400, "prompt must be text")
        self.body |= {"prompt": prompt, "suffix": given.get("suffix")}

    def choice(self, line: Mapping[str, Any], *, streamed: bool) -> dict[str, Any]:
        """The text, or what is new of it."""
        return {"index": 0, "text": line["response"]}


def _usage(line: Mapping[str, Any]) -> dict[str, int]:
    prompt, answer = line.get("prompt_eval_count", 0), line.get("eval_count", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's sampling fields as Ollama's options. Its defaults are 1, not the model's."""
    found = {
        key: given.get(key)
        for key in ("seed", "stop", "frequency_penalty", "presence_penalty")
        if given.get(key) is not None
    }
    for key in ("temperature", "top_p"):
        found[key] = 1.0 if given.get(key) is None else given[key]
    most = given.get("max_completion_tokens") or given.get("max_tokens")
    return found | ({"num_predict": most} if most else {})


def _messages(given: object) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given:
        raise HTTPError(400, "messages must be a list with a message in it")
    called: dict[str, str] = {}
    return [_message(each, called) for each in given]


def _message(given: object, called: dict[str, str]) -> dict[str, Any]:
    """One message; ``called`` gathers the names of the calls, which results name by their ids."""
    if not isinstance(given, Mapping):
        raise HTTPError(400, "every message must be an object")
    text, images = _content(given.get("content"))
    role = "system" if given.get("role") == "developer" else given.get("role")
    message: dict[str, Any] = {"role": role, "content": text}
    if images:
        message["images"] = images
    if thinking := given.get("reasoning") or given.get("reasoning_content"):
        message["thinking"] = thinking
    if calls := given.get("tool_calls"):
        message["tool_calls"] = calls
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
                called[str(call.get("id"))] = str(call["function"].get("name"))
    if role == "tool":
        call_id = str(given.get("tool_call_id") or "")
        message["tool_call_id"] = call_id
        message["tool_name"] = called.get(call_id) or given.get("name")
    return message


def _content(given: object) -> tuple[str, list[str]]:
    """The text of a message, given as such or in parts, and its images."""
    if given is None or isinstance(given, str):
        return given or "", []
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise HTTPError(400, "the content of a message must be text or a list of parts")
    texts, images = [], []
    for part in given:
        if part.get("type") == "text":
            texts.append(str(part.get("text") or ""))
        elif part.get("type") == "image_url":
            images.append("image")
        else:
            raise HTTPError(400, f"parts of type {str(part.get('type'))[:40]} are not supported")
    return "\n".join(texts), images


def _format(given: object) -> object:
    """``response_format`` as Ollama's ``format``; None for free text."""
    if given is None:
        return None
    kind = given.get("type") if isinstance(given, Mapping) else None
    if isinstance(given, Mapping) and kind == "json_schema":
        described = given.get("json_schema")
        schema = described.get("schema") if isinstance(described, Mapping) else None
        if not isinstance(schema, Mapping):
            raise HTTPError(400, "response_format has no json_schema with a schema")
        return schema
    if kind not in ("text", "json_object"):
        raise HTTPError(400, "response_format must be of type text, json_object or json_schema")
    return "json" if kind == "json_object" else None


def _effort(given: Mapping[str, Any]) -> object:
    reasoning = given.get("reasoning")
    if isinstance(reasoning, Mapping) and reasoning.get("effort"):
        return reasoning["effort"]
    return given.get("reasoning_effort")


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call["id"],
        "index": function["index"],
        "type": "function",
        "function": {
            "name": function["name"],
            "arguments": json.dumps(function["arguments"], ensure_ascii=False),
        },
    }
