"""Reads what a model replied: facts wherever they stand, or that there was nothing to read.

Models wrap JSON in prose and fences, nest it once more, cut it off, number their lines, break
an escape, or repeat the schema. "No facts" and "no reply" are never the same: the second is a
failure, which is shown and tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jarvis.errors import JarvisError


class UnreadableReply(JarvisError):
    """The model's reply holds neither facts nor the word that there are none."""


_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSED_ONLY = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"\\u(?![0-9a-fA-F]{4})[0-9a-fA-F]{0,3}|\\(?![\"\\/bfnrtu])")
_NOTHING = re.compile(
    r"\W*(?:none|nothing|no (?:new )?(?:facts?|notes?)|n/a|null|\[\s*\]|\{\s*\})\b.{0,60}\Z",
    re.IGNORECASE | re.DOTALL,
)
_LIST_LINE = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?P<text>\S.*?)\s*$", re.MULTILINE)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LIST_KEYS = ("facts", "notes", "memories", "result", "results", "data", "items", "output")
_TEXT_KEYS = ("fact", "text", "content", "note", "memory", "value", "statement")


def parse_reply(reply: str) -> list[str]:
    """The facts of a reply, in their order; empty when it says that there are none.

    Raises:
        UnreadableReply: it is neither.
    """
    answer = _CLOSED_ONLY.sub("", _THINKING.sub("", reply)).strip()
    if not answer:
        raise UnreadableReply("the model's reply was empty")
    readable = False
    for value in _values(answer):
        found = _facts(value)
        if found is not None:
            if found:
                return found
            readable = True
    if readable:
        return []
    if '"facts"' in answer and "properties" not in answer:
        # Cut off in the middle: what was closed counts.
        strings = _STRING.findall(answer.partition('"facts"')[2])
        if strings or "[" in answer:
            return [text for text in map(_unescape, strings) if text]
    listed = [m["text"].strip("\"' ") for m in _LIST_LINE.finditer(answer)]
    if listed:
        return [text for text in listed if text]
    if _NOTHING.match(answer):
        return []
    raise UnreadableReply("the model's reply holds no facts that could be read")


def _values(text: str) -> Iterator[Any]:
    """Every JSON object or array in ``text`` that is not inside another."""
    decoder = json.JSONDecoder(strict=False)
    for candidate in dict.fromkeys((text, _BROKEN_ESCAPE.sub("", text))):
        position, any_found = 0, False
        while (match := re.compile(r"[\[{]").search(candidate, position)) is not None:
            try:
                value, position = decoder.raw_decode(candidate, match.start())
            except (ValueError, RecursionError):
                position = match.start() + 1
                continue
            any_found = True
            yield value
        if any_found:
            return


def _facts(value: Any, depth: int = 0) -> list[str] | None:
    """The facts in a JSON value; None when it is not made of facts."""
    if depth > 4:
        return None
    if isinstance(value, list):
        texts: list[str] = []
        for item in value:
            text = _text(item)
            if text is not None:
                texts.append(text)
            elif (inner := _facts(item, depth + 1)) is not None:
                texts += inner
        return [text for text in texts if text.strip()] if texts or not value else None
    if isinstance(value, dict):
        if "properties" in value or value.get("type") == "array":
            return None  # the schema, not an answer
        for key in _LIST_KEYS:
            if key in value:
                inner_value = value[key]
                if isinstance(inner_value, str):
                    return [inner_value] if inner_value.strip() else []
                if inner_value is None:
                    return []
                return _facts(inner_value, depth + 1)
        text = _text(value)
        return [text] if text else None
    return None


def _text(item: Any) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        for key in _TEXT_KEYS:
            if isinstance(item.get(key), str):
                return str(item[key])
    return None


def _unescape(raw: str) -> str:
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return _BROKEN_ESCAPE.sub("", raw).replace('\\"', '"')
