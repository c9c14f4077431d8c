"""Precision, recall and provenance of extracted facts, on one LoCoMo conversation.

Each turn is read as a message of its speaker's and compared with the facts that people wrote
down from the conversation, with the turns they took them from. A fact matches one of its own
turn when at least half of its content stems are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.services.extraction import checks

if TYPE_CHECKING:
    from jarvis.services.bench_extract import Outcome, Reader


def measure(
    outcome: Outcome,
    folder: Path,
    readers: Sequence[tuple[str, Reader, int | None]],
    rows: Callable[[Path], list[dict[str, Any]]],
) -> None:
    """Adds the figures of the first conversation to ``outcome``, or a note that there is none.

    Args:
        readers: name, reader, and how many turns it reads at most, evenly spread (None: all).
            Recall counts the written facts of the turns that were read.
    """
    if not (folder / "observations.jsonl").is_file():
        outcome.notes.append(f"no conversation is measured: there is no {folder}")
        return
    gold = rows(folder / "observations.jsonl")
    conversation = gold[0]["sample_id"]
    turns = [t for t in rows(folder / "turns.jsonl") if t["sample_id"] == conversation]
    labels: dict[str, list[frozenset[str]]] = {}
    for row in gold:
        if row["sample_id"] == conversation:
            for turn_id in row["dia_ids"]:
                labels.setdefault(turn_id, []).append(_about(row["fact"], row["speaker"]))
    for name, read, most in readers:
        chosen = turns
        if most is not None and most < len(turns):
            chosen = [turns[index * len(turns) // most] for index in range(most)]
        _one(outcome, f"{name}, {conversation}", read, chosen, labels)


def _one(
    outcome: Outcome,
    reader: str,
    read: Reader,
    turns: Sequence[dict[str, Any]],
    labels: dict[str, list[frozenset[str]]],
) -> None:
    from jarvis.services.bench_extract import Figure

    found = matched = cited = covered = written = 0
    for turn in turns:
        here = labels.get(turn["dia_id"], [])
        written += len(here)
        hit: set[int] = set()
        for fact in read(turn["text"]):
            found += 1
            cited += bool(here)
            stems = _about(fact.text, "User")
            fitting = {
                index
                for index, label in enumerate(here)
                if stems and 2 * len(stems & label) >= len(stems)
            }
            matched += bool(fitting)
            hit |= fitting
        covered += len(hit)
    outcome.figures += [
        Figure(reader, f"{label} ({len(turns)} turns)", count, round(100 * share, 1))
        for label, count, share in (
            ("facts that match one written down", found, matched / max(1, found)),
            ("facts from a turn with one written down", found, cited / max(1, found)),
            ("facts written down that were found", written, covered / max(1, written)),
        )
    ]


def _about(text: str, speaker: str) -> frozenset[str]:
    return frozenset(set(checks.content_stems(text)) - {checks.stem(speaker)})
