"""A chat's messages: checked, and shaped for templates that take less than Ollama does.

Some templates raise on two user turns in a row, on a system message that is not the first, or
on a system message at all. ``variants`` gives the same talk in ever plainer forms; the first
that the model's template takes is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jarvis.engine.request import HTTPError

Messages = list[dict[str, Any]]

ROLES = ("system", "user", "assistant", "tool")


def parse(value: object) -> Messages:
    """The request's messages in llama.cpp's form.

    Raises:
        HTTPError: 400; a message is malformed or has images.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise HTTPError(400, "messages must be a list")
    return [_message(each) for each in value]


def _message(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise HTTPError(400, "every message must be an object")
    role, content = value.get("role"), value.get("content")
    if role not in ROLES:
        raise HTTPError(400, f"invalid role: {str(role)[:50]}, must be one of {list(ROLES)}")
    if content is not None and not isinstance(content, str):
        raise HTTPError(400, "the content of a message must be text")
    if value.get("images"):
        raise HTTPError(400, "this model does not support images")
    message: dict[str, Any] = {"role": role, "content": clean(content or "")}
    if thinking := value.get("thinking"):
        message["reasoning_content"] = clean(str(thinking))
    if calls := value.get("tool_calls"):
        message["tool_calls"] = _calls(calls)
    if role == "tool":
        name = value.get("tool_name") or value.get("name")
        if isinstance(name, str) and name:
            message["name"] = name
        message["tool_call_id"] = str(value.get("tool_call_id") or name or "call")
    return message


def _calls(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise HTTPError(400, "tool_calls must be a list")
    calls = []
    for position, each in enumerate(value):
        function = each.get("function") if isinstance(each, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise HTTPError(400, "every tool call must have a function with a name")
        arguments = function.get("arguments", {})
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        calls.append(
            {
                "id": str(each.get("id") or f"call_{position}"),
                "type": "function",
                "function": {"name": function["name"], "arguments": arguments},
            }
        )
    return calls


def clean(text: str) -> str:
    """Without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def variants(messages: Sequence[Mapping[str, Any]]) -> Iterator[Messages]:
    """The same messages: as they are, then merged, then without a system role, then bare."""
    yield [dict(each) for each in messages]
    first = _system_first(messages)
    yield first
    merged = _merge(first)
    yield merged
    folded = _merge(_fold_system(merged))
    yield folded
    yield _alternate(folded)


def _system_first(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """All system text in one message at the front, wherever it stood."""
    system = [str(each["content"]) for each in messages if each["role"] == "system"]
    rest = [dict(each) for each in messages if each["role"] != "system"]
    return [{"role": "system", "content": "\n\n".join(system)}, *rest] if system else rest


def _merge(messages: Messages) -> Messages:
    merged: Messages = []
    for each in messages:
        last = merged[-1] if merged else None
        same = last is not None and last["role"] == each["role"] in {"user", "assistant"}
        if last is not None and same and not (last.get("tool_calls") or each.get("tool_calls")):
            last["content"] = f"{last['content']}\n\n{each['content']}".strip()
        else:
            merged.append(dict(each))
    return merged


def _fold_system(messages: Messages) -> Messages:
    """The system text in front of the first user message."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, rest = messages[0]["content"], [dict(each) for each in messages[1:]]
    if rest and rest[0]["role"] == "user":
        rest[0]["content"] = f"{system}\n\n{rest[0]['content']}"
        return rest
    return [{"role": "user", "content": system}, *rest]


def _alternate(messages: Messages) -> Messages:
    """Only user and assistant, taking turns, the user first; calls and results as text."""
    plain: Messages = []
    for each in messages:
        content = str(each["content"])
        role = "assistant" if each["role"] == "assistant" else "user"
        for call in each.get("tool_calls", ()):
            content += f"\n{json.dumps(call['function'])}"
        plain.append({"role": role, "content": content.strip()})
    if plain and plain[0]["role"] == "assistant":
        plain.insert(0, {"role": "user", "content": "Hello."})
    return _merge(plain)


def bounded(messages: Messages, most: int) -> Messages:
    """Without what cannot be in any window of ``most`` characters: the beginning of a long talk.

    System messages count by themselves; of a message that does not fit its end is kept.
    """
    left = {True: most, False: most}
    kept: Messages = []
    for each in reversed(messages):
        system, text = each["role"] == "system", str(each["content"])
        if left[system] > 0:
            kept.append({**each, "content": text[-left[system] :]})
        left[system] -= len(text)
    return kept[::-1]


def without_oldest(messages: Messages, count: int) -> Messages:
    """Leaves out the ``count`` oldest messages, but no system message and never the last.

    A tool's result whose call has gone goes too.
    """
    kept: Messages = []
    left = count
    for position, each in enumerate(messages):
        last = position == len(messages) - 1
        orphan = each["role"] == "tool" and not any(m["role"] == "assistant" for m in kept)
        if not last and each["role"] != "system" and (left > 0 or (orphan and count)):
            left -= 1
            continue
        kept.append(each)
    return kept
