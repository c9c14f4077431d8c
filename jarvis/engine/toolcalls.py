"""Recognises the tool calls that small models write as text.

Asked to call a tool, they write ``<tool_call>{…}</tool_call>``, a fenced block of JSON, or bare
JSON, often with a sentence before it. ``ToolCallFilter`` takes the answer piece by piece, lets
text through at once, holds back what may be a call, and gives it back as text when it is none.
Only a call of a tool that was offered counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TAGS = ("<tool_call>", "<function_call>", "<|tool_call|>", "<tools>", "[TOOL_CALLS]")
_CLOSERS = ("</tool_call>", "</function_call>", "<|/tool_call|>", "</tools>")
_FENCE = re.compile(r"```[ \t]*[A-Za-z_]*[ \t]*\r?\n?")
_NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params")
_MAX_HELD = 64 << 10


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model asks for."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class Piece:
    """What is certain so far: text to show, or calls."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)


class ToolCallFilter:
    """Separates text and calls in one answer."""

    def __init__(self, tools: Iterable[Mapping[str, Any]]) -> None:
        self.tools: dict[str, Mapping[str, Any]] = {}
        for tool in tools:
            function = tool.get("function")
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                self.tools[function["name"]] = function
        self._held = ""
        self._line_start = True
        self._closer = False

    def feed(self, text: str) -> Piece:
        """Takes the next piece of the answer."""
        self._held += text
        return self._drain(final=False)

    def finish(self) -> Piece:
        """The end of the answer: what is still held is a call or text."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> Piece:
        piece = Piece()
        if self._closer:
            self._skip_closer(final=final)
        while self._held and not self._closer:
            start = self._candidate()
            if start is None:
                self._emit(piece, len(self._held) if final else self._safe_length())
                break
            self._emit(piece, start)
            outcome = self._try_call(final)
            if outcome is None:
                break  # may still become a call
            calls, used = outcome
            if calls:
                piece.calls += calls
                piece.text = piece.text.rstrip()
                self._held = self._held[used:]
                self._line_start = self._closer = True
                self._skip_closer(final=final)
            else:
                self._emit(piece, max(used, 1))
        return piece

    def _skip_closer(self, *, final: bool) -> None:
        """After a call: drops the fence and the tag that close it, once they are here, and
        brackets that close nothing."""
        self._held = self._held.lstrip(" \t\r\n}]")
        self._held = self._held[self._closing(0) :].lstrip()
        beginning = any(each.startswith(self._held) for each in ("```", *_CLOSERS))
        self._closer = beginning and not final  # nothing more, or the beginning of a closer

    def _candidate(self) -> int | None:
        """Where something that may be a call begins: a tag, or a fence or bracket at a line."""
        best: int | None = None
        for tag in _TAGS:
            at = self._held.find(tag)
            if at >= 0 and (best is None or at < best):
                best = at
        for match in re.finditer(r"```|[{\[]", self._held):
            at = match.start()
            if best is not None and at >= best:
                break
            line = self._held[:at].rpartition("\n")[2]
            at_line_start = not line.strip() and ("\n" in self._held[:at] or self._line_start)
            if at_line_start:
                return at
        return best

    def _safe_length(self) -> int:
        """How much can be shown although more is coming: all but a possible beginning."""
        for length in range(min(len(self._held), 16), 0, -1):
            tail = self._held[-length:]
            if any(tag.startswith(tail) for tag in _TAGS):
                return len(self._held) - length
        line = self._held.rpartition("\n")[2]
        if line.strip("`") == "" and line and ("\n" in self._held or self._line_start):
            return len(self._held) - len(line)
        return len(self._held)

    def _emit(self, piece: Piece, length: int) -> None:
        if length <= 0:
            return
        text, self._held = self._held[:length], self._held[length:]
        piece.text += text
        line = text.rpartition("\n")[2]
        self._line_start = not line.strip() and ("\n" in text or self._line_start)

    def _try_call(self, final: bool) -> tuple[list[Call], int] | None:
        """Reads a call at the start of what is held: the calls and the length used.

        No calls: that length is text. None: it is not complete yet.
        """
        at = self._opening()
        if at is None:
            return None if not final else ([], len(self._held))
        calls: list[Call] = []
        while True:
            value, end = _decode(self._held, at)
            if value is None:
                if end < 0 and not final and len(self._held) < _MAX_HELD:
                    return None
                return (calls, at) if calls else ([], self._text_length(at))
            found = self._calls(value)
            if not found:
                return (calls, at) if calls else ([], self._text_length(end))
            calls += found
            at = self._closing(end)
            following = _skip(self._held, at)
            if following < len(self._held) and self._held[following] in "{[,":
                at = following + (self._held[following] == ",")
                at = _skip(self._held, at)
                continue
            return calls, at

    def _opening(self) -> int | None:
        """Where the JSON begins, after a tag or a fence; None while that is not certain."""
        at = 0
        for tag in _TAGS:
            if self._held.startswith(tag):
                at = len(tag)
                break
        at = _skip(self._held, at)
        if self._held.startswith("```", at):
            match = _FENCE.match(self._held, at)
            at = _skip(self._held, match.end() if match else at + 3)
        if at >= len(self._held):
            return None
        return at

    def _closing(self, at: int) -> int:
        """The end of a call: behind the closing fence and tag, where they are there."""
        for _ in range(2):
            here = _skip(self._held, at)
            for closer in ("```", *_CLOSERS):
                if self._held.startswith(closer, here):
                    at = here + len(closer)
                    break
        return at

    def _text_length(self, end: int) -> int:
        """How much of a block that is no call is let through: the whole block."""
        if self._held.startswith("```"):
            closing = self._held.find("```", 3)
            return closing + 3 if closing >= 0 else max(end, 3)
        return max(end, 1)

    def _calls(self, value: object) -> list[Call]:
        if isinstance(value, list):
            found = [self._call(each) for each in value]
            return [call for call in found if call] if value and all(found) else []
        if isinstance(value, Mapping) and isinstance(value.get("tool_calls"), list):
            return self._calls(value["tool_calls"])
        call = self._call(value)
        return [call] if call else []

    def _call(self, value: object) -> Call | None:
        if not isinstance(value, Mapping):
            return None
        inner = value.get("function")
        if isinstance(inner, Mapping):
            value = inner
        name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
        if name not in self.tools:
            return None
        given = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
        if given is None and any(key not in {*_NAME_KEYS, "type", "id"} for key in value):
            # {"name": "add", "a": 1, "b": 2}: the arguments stand beside the name.
            known = self._parameters(name)
            given = {key: each for key, each in value.items() if key in known}
        if isinstance(given, str):
            try:
                given = json.loads(given) if given.strip() else {}
            except (ValueError, RecursionError):
                return None
        if given is None:
            given = {}
        return Call(name, given) if isinstance(given, Mapping) else None

    def _parameters(self, name: str) -> Sequence[str]:
        schema = self.tools[name].get("parameters")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        return list(properties) if isinstance(properties, Mapping) else []


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _decode(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at ``at`` and its end. No value: -1 while it is open, else the end of text."""
    if text[at : at + 1] not in ("{", "["):
        return None, at
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    except RecursionError:
        return None, len(text)
    except json.JSONDecodeError:
        end = _end(text, at)
        if end < 0:
            return None, -1
        # Some templates show a call in doubled braces, and their models write it so.
        if text.startswith("{{", at) and text.endswith("}}", at, end):
            value, _ = _decode(text[at + 1 : end - 1], 0)
            if value is not None:
                return value, end
        return None, at + 1
    return value, end


def _end(text: str, at: int) -> int:
    """The end of the brackets that begin at ``at``; -1 while they are open."""
    depth, quoted, escaped = 0, False, False
    for index, char in enumerate(text[at:], at):
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth <= 0:
                return index + 1
    return -1
