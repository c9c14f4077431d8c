"""Whether a call may run: the user's policy per effect, and whose words its arguments are.

Text from outside can make a model call a tool, but it cannot make the user say something. So a
call with an effect whose arguments are not in the user's own words is always put to the user,
whatever the policy allows, and is refused where nobody can answer.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from jarvis.config import ToolSettings
from jarvis.paths import private_file, private_folder
from jarvis.tools.protocol import Effect, Tool

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\w[.:]\w")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_PLAIN = re.compile(r"[\w\s.,;:!?'’\"()-]*")


class Verdict(StrEnum):
    """What the policy says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Reply(StrEnum):
    """What the user answers when asked."""

    YES = "yes"
    ALWAYS = "always"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Question:
    """A call that the user is asked about. ``reason`` says why, in one line."""

    tool: Tool
    arguments: Mapping[str, Any]
    reason: str
    may_always: bool


Asker = Callable[[Question], Reply]
"""Puts a question to the user. There is none where nobody can answer."""


class Consents:
    """Effects that the user has allowed from then on, kept in one 0600 file.

    Args:
        path: the file; a missing or damaged one means that nothing was allowed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __contains__(self, effect: Effect) -> bool:
        return effect.value in self._read()

    def allow(self, effect: Effect) -> None:
        """Allows an effect from now on."""
        self._write(sorted({*self._read(), effect.value}))

    def revoke(self, effect: Effect) -> None:
        """Takes an allowance back."""
        self._write(sorted(set(self._read()) - {effect.value}))

    def _read(self) -> list[str]:
        try:
            value = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [str(item) for item in value] if isinstance(value, list) else []

    def _write(self, effects: list[str]) -> None:
        import os

        private_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(private_file(self._path, flags), "w", encoding="utf-8") as file:
            json.dump(effects, file)


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides about calls.

    Args:
        settings: the configured policy of each effect.
        consents: what was allowed for good when it was asked.
        asker: how to ask; None where nobody can answer.
    """

    settings: ToolSettings
    consents: Consents
    asker: Asker | None = None

    def standing(self, effect: Effect) -> Verdict:
        """What holds for an effect before a call is looked at."""
        verdict = Verdict(getattr(self.settings, effect.value))
        if verdict is Verdict.ASK and effect in self.consents:
            return Verdict.ALLOW
        return verdict

    def barred(self, tool: Tool) -> str:
        """Why no call of a tool can come to run here, in one line; empty when one may.

        Such a tool is not worth describing to the model.
        """
        verdict = self.standing(tool.effect)
        if verdict is Verdict.DENY:
            return f"the user does not allow tools of the kind {tool.effect}"
        if verdict is Verdict.ASK and self.asker is None:
            return (
                f"{tool.name} was not run: tools of the kind {tool.effect} are asked about, and"
                f" nobody can be asked here; `jarvis tool allow {tool.effect}` allows it"
            )
        return ""

    def refusal(self, tool: Tool, arguments: Mapping[str, Any], words: Sequence[str]) -> str:
        """Why a call may not run, in one line; empty when it may. Asks the user if need be.

        Args:
            tool: what is called.
            arguments: checked arguments.
            words: what the user said in this conversation, nothing else.
        """
        verdict = self.standing(tool.effect)
        if verdict is Verdict.DENY:
            return self.barred(tool)
        foreign = () if tool.effect is Effect.PURE else foreign_words(tool, arguments, words)
        if verdict is Verdict.ALLOW and not foreign:
            return ""
        reason = (
            f"not in your words: {', '.join(foreign)}"
            if foreign
            else f"tools of the kind {tool.effect} are asked about"
        )
        if self.asker is None:
            if not foreign:
                return self.barred(tool)
            return f"{tool.name} was not run: {reason}, and nobody can be asked here"
        reply = self.asker(Question(tool, arguments, reason, may_always=not foreign))
        if reply is Reply.ALWAYS and not foreign:
            self.consents.allow(tool.effect)
        return f"the user refused {tool.name}" if reply is Reply.NO else ""


def foreign_words(
    tool: Tool, arguments: Mapping[str, Any], words: Sequence[str]
) -> tuple[str, ...]:
    """Arguments that the user did not say, shortened for a person to read.

    Text must stand in one of the user's messages (letter case, width and white space aside).
    For tools that change nothing, a phrase of plain words may also be put together from words
    that the user said; an address or a path never. Numbers of tools that write must have been
    said too. Choices from a fixed list are nobody's words.
    """
    said = [_fold(text) for text in words]
    vocabulary = {word for text in said for word in _WORD.findall(text)}
    foreign = []
    for name, value in arguments.items():
        if tool.parameters["properties"].get(name, {}).get("enum"):
            continue
        for text in _texts(value, numbers=tool.effect is Effect.WRITES):
            folded = _fold(text)
            if not folded or _said(folded, said):
                continue
            loose = tool.effect is not Effect.WRITES and _is_plain(folded)
            if loose and set(_WORD.findall(folded)) <= vocabulary:
                continue
            foreign.append(text if len(text) <= 80 else text[:79] + "…")
    return tuple(foreign)


def _said(folded: str, said: Sequence[str]) -> bool:
    """Whether the text stands in a message, and is not a part of a longer word or address."""
    bare = folded.strip(" .,;:!?'\"") or folded
    return any(
        re.search(_bounded(form), text) is not None for form in {folded, bare} for text in said
    )


def _bounded(folded: str) -> str:
    pattern = re.escape(folded)
    if _UNSPACED.search(folded):
        return pattern  # written without spaces: a word has no visible ends
    if _is_plain(folded):
        return rf"(?<!\w){pattern}(?!\w)"
    # ``example.com`` is not said by somebody who says ``example.com.org`` or ``my.example.com``.
    return rf"(?:^|(?<=[\s\"'(<\[])){pattern}(?=$|[\s\"')>\],;!?]|[.:](?:\s|$))"


def _is_plain(folded: str) -> bool:
    return _PLAIN.fullmatch(folded) is not None and not _DOTTED.search(folded)


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _texts(value: Any, *, numbers: bool) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [
            text
            for item in value.items()
            for part in item
            for text in _texts(part, numbers=numbers)
        ]
    if isinstance(value, Sequence):
        return [text for item in value for text in _texts(item, numbers=numbers)]
    if numbers and isinstance(value, (int, float)) and not isinstance(value, bool):
        return [str(value)]
    return []
