"""How well facts are taken from what people say, measured on labelled messages.

Three files: turns that say something lasting (each with the labelled objects), turns about
nothing personal, and first-person lines with nothing lasting in them. A hit is a stored fact of
at most twelve words, one clause, about the right subject, that holds the object's head word and
is not the message word for word; anything stored from the other two files is a false alarm.

Beside the models stand the rules alone, and the rule that every such bench should be compared
with: copy each first-person statement. One LoCoMo conversation, where its folder lies beside,
shows precision and recall against facts that people wrote down.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.errors import JarvisError, UsageError
from jarvis.services import bench_conversation
from jarvis.services.extraction import checks, reading
from jarvis.services.extraction.cutting import sentences, words_of
from jarvis.services.extraction.job import ask_model
from jarvis.services.extraction.parse import UnreadableReply
from jarvis.services.extraction.rewriting import MAX_WORDS

if TYPE_CHECKING:
    from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatModel, ModelInfo
    from jarvis.services.app import App

FILES = {
    "positive": "extract_positive.jsonl",
    "impersonal": "extract_negative.jsonl",
    "first person": "first_person_negative.jsonl",
}
MODELS = ("qwen2.5-coder:0.5b", "qwen2.5-coder:1.5b")
BARS = {
    "qwen2.5-coder:0.5b": {"positive": 45.0, "impersonal": 5.0, "first person": 15.0},
    "qwen2.5-coder:1.5b": {"positive": 60.0, "impersonal": 5.0, "first person": 15.0},
}
MINUTES = 20.0
"""What one run may take, all models together."""

CONVERSATION_TURNS = 100
"""Turns of the long conversation that a model reads at most, evenly spread."""

_SAID_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)

Reader = Callable[[str], Sequence[reading.Fact]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line. ``percent``: hits on positive turns, turns with anything stored on the others.

    ``median_ms`` and ``max_ms`` are of messages that the model was asked about, whole;
    ``writing_max_ms`` counts from the first token on, as the cap does.
    """

    reader: str
    turns: str
    count: int
    percent: float
    asked: int = 0
    unreadable: int = 0
    median_ms: float | None = None
    max_ms: float | None = None
    writing_max_ms: float | None = None
    bar: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """What a reader stored from a message, to be read by a person."""

    reader: str
    turns: str
    text: str
    facts: tuple[str, ...]
    hit: bool


@dataclass(slots=True)
class Outcome:
    """The figures, and what was stored."""

    figures: list[Figure] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Turn:
    text: str
    triples: tuple[tuple[str, str, str], ...]


@dataclass(slots=True)
class _Tally:
    count: int = 0
    hits: int = 0
    asked: int = 0
    unreadable: int = 0
    times: list[float] = field(default_factory=list)
    writing: list[float] = field(default_factory=list)


def run(
    app: App,
    folder: Path,
    *,
    sample: int | None = None,
    models: Sequence[str] = MODELS,
    minutes: float = MINUTES,
    progress: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Reads the files with every reader.

    Args:
        sample: turns of each file at most, evenly spread.
        models: chat models that are installed; others are said and skipped.
        minutes: models stop when their share of this is used up.

    Raises:
        UsageError: the files are not there.
    """
    files = {name: _spread(_load(folder / file), sample) for name, file in FILES.items()}
    outcome = Outcome()
    _measure(outcome, "every first-person statement, copied", files, _copying)
    _measure(outcome, "rules alone", files, _by_rules)
    readers: list[tuple[str, Reader, int | None]] = [("rules alone", _by_rules, None)]
    for position, name in enumerate(models):
        share = minutes * 60 / max(1, len(models) - position)
        started = time.monotonic()
        try:
            model = _Model(app, name)
        except JarvisError as error:
            outcome.notes.append(f"{name} is left out: {error.message}")
            continue
        _measure(
            outcome,
            name,
            files,
            model.facts,
            model=model,
            until=started + share,
            progress=progress,
        )
        readers.append((name, model.facts, min(sample or CONVERSATION_TURNS, CONVERSATION_TURNS)))
    bench_conversation.measure(outcome, folder.parent / "locomo", readers, _rows)
    return outcome


class _Model:
    """Reads with a chat model, and keeps what it cost."""

    def __init__(self, app: App, name: str) -> None:
        self.settings = app.config.memory
        self.chat = _Timed(app.chat_model(name))
        self.chat.preload()
        self.asked = self.unreadable = 0
        self.times: list[float] = []

    def facts(self, text: str) -> Sequence[reading.Fact]:
        try:
            return reading.read(text, _SAID_AT, self._ask).facts
        except UnreadableReply:
            self.unreadable += 1
            return reading.read(text, _SAID_AT, None).facts

    def _ask(self, text: str) -> list[str]:
        self.asked += 1
        started = time.monotonic()
        try:
            return ask_model(
                self.chat,
                text,
                max_facts=self.settings.max_facts,
                timeout=self.settings.extract_timeout,
            )
        finally:
            self.times.append((time.monotonic() - started) * 1000)


class _Timed:
    """A chat model that notes how long each answer took from its first token on."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name, self.num_ctx = model.name, model.num_ctx
        self.writing: list[float] = []

    def info(self) -> ModelInfo:
        return self.model.info()

    def preload(self) -> None:
        self.model.preload()

    def stream(self, messages: Sequence[ChatMessage], **options: Any) -> Iterator[ChatChunk]:
        first: float | None = None
        try:
            for chunk in self.model.stream(messages, **options):
                first = time.monotonic() if first is None else first
                yield chunk
        finally:
            if first is not None:
                self.writing.append((time.monotonic() - first) * 1000)


def _by_rules(text: str) -> Sequence[reading.Fact]:
    return reading.read(text, _SAID_AT, None).facts


_FIRST = re.compile(r"\b(?:i|i'm|i've|my|me|we|our)\b", re.IGNORECASE)


def _copying(text: str) -> Sequence[reading.Fact]:
    """The ten-line rule: every first-person statement, word for word."""
    from jarvis.types import MemoryType

    return [
        reading.Fact(sentence, MemoryType.FACT, "", "user", 0.5, 1.0)
        for sentence, question in sentences(text)
        if not question and _FIRST.search(sentence)
    ]


def _measure(
    outcome: Outcome,
    reader: str,
    files: dict[str, list[_Turn]],
    read: Reader,
    *,
    model: _Model | None = None,
    until: float = float("inf"),
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    tallies = {name: _Tally() for name in files}
    total = sum(map(len, files.values()))
    for number, (name, turn) in enumerate(_interleaved(files)):
        if time.monotonic() > until:
            outcome.notes.append(f"{reader}: time was up after {number} of {total} turns")
            break
        progress(f"{reader}: {number} of {total}")
        asked, unreadable = (model.asked, model.unreadable) if model else (0, 0)
        facts = read(turn.text)
        tally = tallies[name]
        tally.count += 1
        if model is not None and model.asked > asked:
            tally.asked += 1
            tally.unreadable += model.unreadable - unreadable
            tally.times.append(model.times[-1])
            tally.writing.append(max(model.chat.writing[-1:], default=0.0))
        hit = bool(facts)
        if turn.triples:
            hit = is_hit(turn.text, turn.triples, facts, copies=read is _copying)
        tally.hits += hit
        if facts:
            texts = tuple(fact.text for fact in facts)
            outcome.examples.append(Example(reader, name, turn.text, texts, hit))
    for name, tally in tallies.items():
        outcome.figures.append(_figure(reader, name, tally))


def _figure(reader: str, name: str, tally: _Tally) -> Figure:
    percent = 100 * tally.hits / max(1, tally.count)
    bar = BARS.get(reader, {}).get(name)
    positive = name == "positive"
    return Figure(
        reader=reader,
        turns=name,
        count=tally.count,
        percent=round(percent, 1),
        asked=tally.asked,
        unreadable=tally.unreadable,
        median_ms=round(statistics.median(tally.times)) if tally.times else None,
        max_ms=round(max(tally.times)) if tally.times else None,
        writing_max_ms=round(max(tally.writing)) if tally.writing else None,
        bar="" if bar is None else f"{'>=' if positive else '<='} {bar:g}",
        met=None if bar is None else (percent >= bar if positive else percent <= bar),
    )


def is_hit(
    text: str,
    triples: Sequence[tuple[str, str, str]],
    facts: Sequence[reading.Fact],
    *,
    copies: bool = False,
) -> bool:
    """Whether a stored fact says what one of the labels says.

    Args:
        copies: the message word for word counts, too.
    """
    said = [word.casefold() for word in words_of(text)]
    for fact in facts:
        found = [word.casefold() for word in words_of(fact.text)]
        if len(found) > MAX_WORDS or _clauses(fact.text) > 1 or (found == said and not copies):
            continue
        stems = {checks.stem(word) for word in found}
        for subject, _, label in triples:
            head = words_of(label)[-1:]
            if head and checks.stem(head[0]) in stems and _right_subject(subject, fact):
                return True
    return False


def _clauses(text: str) -> int:
    return 1 + len(re.findall(r"[.;!?]\s+\w|,\s*(?:and|but|so|because)\b", text))


def _right_subject(subject: str, fact: reading.Fact) -> bool:
    """The labels speak of "i", "my mother", "parents" …; a relative may also be had by the user."""
    wanted = {checks.stem(word) for word in words_of(subject)} - {"i", "my"}
    if not wanted:
        return fact.subject == "user" or fact.text.startswith("User ")
    return bool(wanted & {checks.stem(word) for word in words_of(fact.text)}) or (
        fact.subject == "user"
    )


def _interleaved(files: dict[str, list[_Turn]]) -> Iterator[tuple[str, _Turn]]:
    """Turns of all files in proportion, so that a run cut short has seen some of each."""
    places = [
        (index / max(1, len(turns)), name, turn)
        for name, turns in files.items()
        for index, turn in enumerate(turns)
    ]
    for _, name, turn in sorted(places, key=lambda place: place[0]):
        yield name, turn


def _spread(turns: list[_Turn], sample: int | None) -> list[_Turn]:
    if sample is None or sample >= len(turns):
        return turns
    return [turns[index * len(turns) // sample] for index in range(sample)]


def _load(path: Path) -> list[_Turn]:
    return [
        _Turn(
            str(row["text"]),
            tuple((str(a), str(b), str(c)) for a, b, c in row.get("triples", ())),
        )
        for row in _rows(path)
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", "name the folder with the labelled turns"
        ) from error
    except ValueError as error:
        raise UsageError(f"{path} is no JSON, a record a line: {error}") from error
