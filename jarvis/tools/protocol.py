"""What a tool is: a typed function with a docstring and a decorator.

::

    from jarvis.tools import Effect, tool

    @tool(Effect.PURE)
    def dice(sides: int = 6) -> int:
        \"\"\"Rolls one die.

        Args:
            sides: how many sides it has.
        \"\"\"

A tool that needs the user's memories, documents, folders or the network asks for a parameter of
type ``ToolContext``; the model neither sees nor fills it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from jarvis.tools.schema import ToolError, describe, validate
from jarvis.types import ChunkHit, Memory, MemoryHit


class Effect(StrEnum):
    """What a call does besides returning a value. The user's policy is set per effect."""

    PURE = "pure"
    READS = "reads"
    WRITES = "writes"
    NETWORK = "network"


class MemoryPort(Protocol):
    """The long-term memory, as tools see it. Every method is for one user."""

    def remember(self, content: str) -> Memory:
        """Stores a fact; the same fact again is returned, not doubled."""
        ...

    def recall(self, query: str, limit: int) -> Sequence[MemoryHit]:
        """Finds facts by meaning and by words, best first."""
        ...

    def forget(self, memory_id: int) -> Memory:
        """Forgets one fact and returns it as it was. Raises ``NotFound``."""
        ...


class DocumentPort(Protocol):
    """The user's documents, as tools see them."""

    def search(self, query: str, limit: int) -> Sequence[ChunkHit]:
        """Finds passages by meaning and by words, best first."""
        ...

    def excerpt(self, hit: ChunkHit) -> str:
        """The passage under the citation that an answer is to repeat."""
        ...


@dataclass(frozen=True, slots=True)
class Page:
    """A document from the web. ``url`` is where it was found after redirects."""

    url: str
    media_type: str
    text: str


class WebPort(Protocol):
    """The network, as tools see it: bounded in time and size, public addresses only."""

    def json(self, url: str, parameters: Mapping[str, str]) -> Any:
        """Fetches JSON. Raises ``ToolError``."""
        ...

    def page(self, url: str) -> Page:
        """Fetches a page as text. Raises ``ToolError``."""
        ...

    def search(self, query: str, limit: int) -> Sequence[Mapping[str, str]]:
        """Searches the web: ``title``, ``url``, ``snippet``, best first. Raises ``ToolError``."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What tools may use. A port that is None is not there: the tool says so."""

    now: datetime
    memories: MemoryPort | None = None
    documents: DocumentPort | None = None
    web: WebPort | None = None
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the model is told about it, and the function behind it.

    ``parameters`` is a JSON schema; ``source`` says where it came from (``built-in``, a file, a
    package); ``when`` is a pattern of messages that call for it.
    """

    name: str
    description: str
    effect: Effect
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    context: str = ""
    source: str = "built-in"
    when: re.Pattern[str] | None = None

    def called_for(self, words: str) -> bool:
        """Whether a message seems to want this tool: by its name, by its pattern, or for a tool
        without a pattern by a longer word of its description."""
        text = words.casefold()
        if re.search(rf"\b{re.escape(self.name.replace('_', ' ').casefold())}\b", text):
            return True
        if self.when is not None:
            return self.when.search(words) is not None
        told = re.findall(r"[^\W\d_]{5,}", f"{self.name} {self.description}".casefold())
        return any(word[:6] in text for word in told)

    def definition(self) -> dict[str, Any]:
        """The tool as the chat API takes it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    def check(self, arguments: object) -> dict[str, Any]:
        """The arguments as the function takes them.

        Raises:
            ToolError: they do not fit the parameters.
        """
        return validate(self.name, self.parameters, arguments)

    def call(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Calls the tool with arguments that ``check`` returned; its result as text.

        Raises:
            ToolError: it failed, with the reason in one line.
        """
        values = dict(arguments)
        if self.context:
            values[self.context] = context
        try:
            result = self.function(**values)
        except ToolError:
            raise
        except Exception as error:
            what = " ".join(str(error).split()) or "no reason given"
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {what}") from error
        if isinstance(result, str):
            return result
        return json.dumps(result, ensure_ascii=False, default=str)


def tool(effect: Effect, *, name: str = "", when: str = "") -> Callable[[Callable[..., Any]], Tool]:
    """Makes a function a tool.

    Args:
        effect: what a call does; the strongest, if it does several things.
        name: what the model calls it; default: the function's name.
        when: a regular expression, case aside. Small models are distracted by tools that they
            do not need; they are offered this one only for messages that match.

    Raises:
        BadTool: at import, when the function cannot be a tool.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        description, parameters, context = describe(function, ToolContext)
        return Tool(
            name or function.__name__,
            description,
            effect,
            parameters,
            function,
            context,
            when=re.compile(when, re.IGNORECASE) if when else None,
        )

    return decorate
