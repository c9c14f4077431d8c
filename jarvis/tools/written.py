"""Tool calls that a model writes into its answer as text, whole or damaged.

Servers recognise the calls of models that write them as they were trained to. Small models also
write them as JSON with a bracket too few, in single quotes, with a tool's name that there is not.
None of that is an answer: ``WrittenCalls`` keeps it out of the answer while it streams, and
``read`` says what was meant, where that can be meant in one way only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_TAGS = ("<tool_call>", "<function_call>", "<|tool_call|>", "<tools>", "[TOOL_CALLS]")
_NAMES = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params")
_AROUND = ("type", "id", "tool_calls", "function")
"""Keys that may stand before the name."""

_TAG = "|".join(re.escape(tag) for tag in _TAGS)
_OPENING = re.compile(rf"\s*(?:(?:{_TAG}|```[ \t]*\w*)\s*)*")
_AROUND_KEY = (
    rf"[\"']?(?:{'|'.join(_AROUND)})[\"']?\s*:\s*(?:[\"'][^\"']*[\"']\s*,\s*|(?:[\[{{]\s*)+)"
)
_HEAD = re.compile(
    rf"(?:[\[{{]\s*)+(?:{_AROUND_KEY})*[\"']?(?:{'|'.join(_NAMES)})[\"']?\s*:\s*"
    r"[\"']?([\w.-]+(?: [\w.-]+)*)"
)
_GIVEN = re.compile(rf"[\"']?\s*[,;]?\s*[\"']?(?:{'|'.join(_ARGUMENTS)})[\"']?\s*:")
_KEY = re.compile(r"[\"']?([A-Za-z_]*)[\"']?\s*(:)?")
_BLOCK = re.compile(r"[{\[<`]")

_ENOUGH = 240
"""Characters after which a block that has not shown itself as a call is none."""
_AFTER_NAME = 24
"""Characters behind a name within which the key of the arguments begins."""


class WrittenCalls:
    """Keeps written calls out of one streamed answer.

    Args:
        names: the tools that there are. A block that names one of them is a call, and so is one
            that names another and gives it arguments.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""
        self._line_start = True
        self.name = ""
        """The tool that the first written call names."""
        self.text = ""
        """What was kept out: from the first written call to the end of the answer."""

    def feed(self, piece: str) -> str:
        """Takes the next piece; returns what is certainly no call."""
        return self._drain(piece, final=False)

    def finish(self) -> str:
        """The end of the answer; returns what was held back and is no call."""
        return self._drain("", final=True)

    def _drain(self, piece: str, *, final: bool) -> str:
        if self.text:
            self.text += piece
            return ""
        self._held += piece
        shown = ""
        while self._held:
            start = self._block()
            if start is None:
                # White space at a line's beginning belongs to what may begin there.
                end = len(self._held) if final else len(self._held.rstrip(" \t"))
                return shown + self._take(end)
            shown += self._take(start)
            verdict = self._is_call(self._held, final=final)
            if verdict is None:
                return shown
            if verdict:
                self.text, self._held = self._held, ""
                return shown.rstrip()
            shown += self._take(1)
        return shown

    def _block(self) -> int | None:
        for match in _BLOCK.finditer(self._held):
            line = self._held[: match.start()].rpartition("\n")
            if not line[2].strip() and (line[1] or self._line_start):
                return match.start()
        return None

    def _take(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        line = text.rpartition("\n")
        self._line_start = not line[2].strip() and (bool(line[1]) or self._line_start)
        return text

    def _is_call(self, block: str, *, final: bool) -> bool | None:
        """Whether a block is a call; None while it may still become one."""
        opening = _OPENING.match(block)
        rest = block[opening.end() :] if opening else block
        head = _HEAD.match(rest)
        if head:
            behind = rest[head.end() :]
            if head[1] in self._names and (behind or final):
                self.name = head[1]
                return True
            if _GIVEN.match(behind):
                self.name = head[1]
                return True
            return None if not final and len(behind) < _AFTER_NAME else False
        if final or len(block) > _ENOUGH:
            return False
        return None if _may_become(rest) else False


def _may_become(rest: str) -> bool:
    """Whether more text could make it the beginning of a call."""
    bare = rest.lstrip()
    if not bare or any(tag.startswith(bare) for tag in (*_TAGS, "```")):
        return True
    inner = re.match(r"(?:[\[{]\s*)+", bare)
    if not inner:
        return False
    key = _KEY.match(bare, inner.end())
    if key is None or key.end() == len(bare):
        return True
    return bool(key[2]) and key[1] in {*_NAMES, *_AROUND}


def announced(text: str, names: Collection[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """The call that an answer ends with in words: ``I will call "add" with {"a": 1, "b": 2}``.

    Returns:
        At most one: the last name of a tool in the text, and the arguments in braces behind it.
        None where something else follows, or the name stands far from them.
    """
    known = "|".join(map(re.escape, names))
    match = re.search(
        rf".*(?<!\w)({known})(?!\w)[^{{}}\n]{{0,60}}(\{{.*\}})[\s.`\"']*\Z", text, re.S
    )
    if not known or match is None:
        return []
    try:
        given = json.loads(_mended(match[2]) or "", strict=False)
    except (ValueError, RecursionError):
        return []
    return [(match[1], given)] if isinstance(given, Mapping) else []


def read(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The calls in ``WrittenCalls.text``; none where they cannot be read in one way only.

    Returns:
        For each its tool's name and its arguments.
    """
    opening = _OPENING.match(text)
    body = text[opening.end() :] if opening else text
    for version in (body, _mended(body), _mended(_single_braces(body))):
        if version is None:
            continue
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(version)
        except (ValueError, RecursionError):
            continue
        calls = list(_calls(value))
        if calls and all(calls):
            return [call for call in calls if call]
    return []


def _calls(value: object) -> Iterator[tuple[str, Mapping[str, Any]] | None]:
    if isinstance(value, Mapping) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    for each in value if isinstance(value, list) else [value]:
        yield _call(each)


def _call(value: object) -> tuple[str, Mapping[str, Any]] | None:
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, Mapping) else value
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if not name:
        return None
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if given is None:
        given = {key: each for key, each in value.items() if key not in {*_NAMES, *_AROUND}}
    if isinstance(given, str):
        try:
            given = json.loads(_mended(given) or "") if given.strip() else {}
        except (ValueError, RecursionError):
            return None
    return (name, given) if isinstance(given, Mapping) else None


def _single_braces(text: str) -> str:
    """Without the doubled braces that stand in templates, if the text begins with such."""
    if not re.match(r"\{\s*\{", text):
        return text
    return text.replace("{{", "{").replace("}}", "}")


_WORDS = {"True": "true", "False": "false", "None": "null"}
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<mark>[{}\[\]:,])",
    re.S,
)
_PAIRS = {"{": "}", "[": "]"}


def _mended(text: str) -> str | None:
    """JSON for what is nearly JSON: brackets missing at the end, commas too many, single quotes,
    bare keys, Python's words, lone backslashes. None where more than one value could be meant."""
    made: list[str] = []
    closers: list[str] = []
    at = 0
    last = ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        kind, token = match.lastgroup, match[0]
        if kind == "space":
            continue
        if kind == "string":
            made.append(_string(token))
        elif kind == "word":
            if token not in _WORDS and token not in _WORDS.values():
                if not re.match(r"\s*:", text[at:]):
                    return None
                token = f'"{token}"'
            made.append(_WORDS.get(token, token))
        elif token in _PAIRS:
            closers.append(_PAIRS[token])
            made.append(token)
        elif token in {"}", "]"}:
            if not closers or closers[-1] != token:
                return None
            if made[-1] == ",":
                made.pop()
            closers.pop()
            made.append(token)
            if not closers:
                return "".join(made)
        else:
            made.append(token)
        last = kind or ""
    if not made or last in {"number", "word"}:
        return None  # it may have been cut in the middle
    if made[-1] == ",":
        made.pop()
    return "".join([*made, *reversed(closers)])


def _string(token: str) -> str:
    """A quoted string as JSON writes it."""
    inner = token[1:-1]
    if token[0] == "'":
        inner = re.sub(r"\\'|(?<!\\)\"", lambda m: "'" if m[0] == "\\'" else '\\"', inner)
    inner = re.sub(
        r"\\(\\|[\"/bfnrt]|u[0-9a-fA-F]{4})|\\", lambda m: m[0] if m[1] else "\\\\", inner
    )
    return f'"{inner}"'
