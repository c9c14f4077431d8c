"""What goes into a turn and what comes out of it, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jarvis.services.budget import Budget
from jarvis.services.prompt import PastTurn, Prompt
from jarvis.types import ChunkHit, MemoryHit, TurnHit

if TYPE_CHECKING:
    from jarvis.services.toolbox import Toolbox
    from jarvis.tools.policy import Asker


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One message and how it is to be answered.

    Attributes:
        text: what the user said.
        session_id: the conversation; None starts one (or none, when ``private``).
        model: another chat model than the configured one.
        system: another persona for this turn; empty: the session's, then the configured.
        memory: False injects nothing; the turn is stored all the same.
        private: store nothing, of the turn or about it; ``history`` then is what the caller kept.
        tools: whether tools may be offered.
        schema: a JSON schema for the answer, or ``"json"``.
        files: names and texts of attached files.
        think: ask a thinking model to think.
        confirm: asks a person whether a tool may run; None: nobody can answer.
        typed: the user's own words in ``text``, when the rest was piped in; None: all of it.
    """

    text: str
    session_id: int | None = None
    model: str = ""
    system: str = ""
    memory: bool = True
    private: bool = False
    tools: bool = True
    schema: Mapping[str, Any] | str | None = None
    files: tuple[tuple[str, str], ...] = ()
    history: tuple[PastTurn, ...] = ()
    think: bool = False
    confirm: Asker | None = None
    typed: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn before the model is called. ``message_id`` is the stored message of the user."""

    request: TurnRequest
    prompt: Prompt
    session_id: int | None
    message_id: int | None
    model: str
    memories: tuple[MemoryHit, ...]
    turns: tuple[TurnHit, ...]
    chunks: tuple[ChunkHit, ...]
    warnings: tuple[str, ...]
    timings: dict[str, float]
    budget: Budget
    dropped: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    toolbox: Toolbox | None = None
    history: tuple[PastTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """What is being done now: ``context``, ``prompt`` (the model reads), ``answer``, ``tool``.

    ``tool`` repeats while a tool runs, so that who reads the events can stop in between.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A piece of the model's thoughts."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool has run, failed, or was denied."""

    name: str
    result: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Warning_:  # noqa: N801 -- ``Warning`` is a builtin
    """Something that the user should know about this turn."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A finished turn. ``tokens``: prompt, evaluated, answer; ``timings`` in milliseconds."""

    answer: str
    session_id: int | None
    message_id: int | None
    model: str
    memories: tuple[MemoryHit, ...]
    turns: tuple[TurnHit, ...]
    documents: tuple[ChunkHit, ...]
    tools: tuple[Mapping[str, Any], ...]
    timings: dict[str, float]
    tokens: dict[str, int]
    warnings: tuple[str, ...]
    interrupted: bool = False
    prompt: Prompt | None = None
    dropped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a turn."""

    result: TurnResult


TurnEvent = Stage | Delta | Thinking | ToolStarted | ToolFinished | Warning_ | Finished
