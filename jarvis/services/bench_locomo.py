"""The LoCoMo benchmark's files, and its metric: recall of the evidence turns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jarvis.errors import UsageError

KS = (1, 5, 10, 25, 50)
"""Ranks at which recall is told."""

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation; ``name`` is how the evidence calls it."""

    name: str
    session: int
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the turns that hold its answer."""

    conversation: str
    number: int
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that the data set took from a conversation, and the turns it was taken from."""

    text: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Locomo:
    """The data set, by conversation."""

    turns: Mapping[str, Sequence[Turn]]
    questions: Sequence[Question]
    facts: Mapping[str, Sequence[Fact]]


def load(folder: Path, sample: int | None = None) -> Locomo:
    """Reads ``turns.jsonl``, ``questions.jsonl`` and ``observations.jsonl``.

    Args:
        folder: where they lie.
        sample: so many questions, evenly spread; None: all with evidence.

    Raises:
        UsageError: a file is missing or holds something else.
    """
    try:
        turns: dict[str, list[Turn]] = defaultdict(list)
        for row in _rows(folder / "turns.jsonl"):
            turns[row["sample_id"]].append(
                Turn(row["dia_id"], int(row["session"]), _text(row), _time(row["date_time"]))
            )
        questions = [
            Question(
                row["sample_id"],
                int(row["qa_index"]),
                row["question"],
                int(row["category"]),
                frozenset((row.get("audit") or {}).get("correct_evidence") or row["evidence"]),
            )
            for row in _rows(folder / "questions.jsonl")
        ]
        facts: dict[str, list[Fact]] = defaultdict(list)
        for row in _rows(folder / "observations.jsonl"):
            facts[row["sample_id"]].append(Fact(row["fact"], tuple(row["dia_ids"])))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{folder} does not hold LoCoMo as turns.jsonl, questions.jsonl, observations.jsonl:"
            f" {error}",
            "jarvis bench recall DIR",
        ) from error
    questions = [question for question in questions if question.evidence]
    if sample is not None and sample < len(questions):
        step = len(questions) / sample
        questions = [questions[int(position * step)] for position in range(sample)]
    return Locomo(turns, questions, facts)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _text(row: Mapping[str, Any]) -> str:
    caption = f" [shares {row['blip_caption']}]" if row.get("blip_caption") else ""
    return f"{row['speaker']}: {row['text']}{caption}"


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


@dataclass(slots=True)
class Recall:
    """Recall at several ranks, overall and by category: sums over questions."""

    sums: dict[str, list[float]]
    counts: dict[str, int]

    @classmethod
    def empty(cls) -> Recall:
        """Nothing measured yet."""
        return cls(defaultdict(lambda: [0.0] * len(KS)), defaultdict(int))

    def add(self, question: Question, found: Sequence[frozenset[str]]) -> None:
        """Counts one question: ``found`` are the evidence names that each hit stands for."""
        for group in ("all", CATEGORIES.get(question.category, str(question.category))):
            self.counts[group] += 1
            for position, k in enumerate(KS):
                got = frozenset().union(*found[:k])
                self.sums[group][position] += len(got & question.evidence) / len(question.evidence)

    def percent(self, group: str) -> list[float]:
        """Recall at ``KS`` in percent, to one decimal."""
        return [round(100 * total / self.counts[group], 1) for total in self.sums[group]]
