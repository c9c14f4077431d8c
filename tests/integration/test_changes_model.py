"""The model's part in deciding changes, with a real small model.

What such a model answers is not asserted, since it is often wrong: whatever it answers, nothing
that was said may be lost, and what the rules decided is not its business.
"""

from __future__ import annotations

import pytest

from jarvis.services import changes, memory
from jarvis.services.app import App
from jarvis.services.compare import Relation, compare
from jarvis.types import MemoryState

MODEL = "qwen2.5-coder:0.5b"

OPEN = (
    ("User plays chess", "User plays chess online"),
    ("User likes hiking and camping", "User likes hiking"),
    ("User likes white wine", "User likes red wine"),
    ("User drinks coffee with milk", "User drinks coffee black"),
    ("User lives in Oslo", "User lives in Oslo, near the fjord"),
    ("User's mother is a teacher", "User's mother is a nurse"),
)
"""Pairs, the older first, of which words and grammar do not say what they are to each other."""

CLOSED = (
    ("User prefers tea over coffee", "User prefers coffee over tea"),
    ("User has 12 files", "User has 9 files"),
    ("User's sister lives in Lima", "User's brother lives in Lima"),
)
"""Pairs that look alike and that the rules keep apart."""


@pytest.mark.model
@pytest.mark.parametrize(("old", "new"), [*OPEN, *CLOSED])
def test_whatever_a_real_model_answers_nothing_said_is_lost(app: App, old: str, new: str) -> None:
    assert compare(new, old) in {Relation.OPEN, Relation.DIFFERENT}
    older, newer = (
        entry.memory
        for entry in memory.add(app, [memory.describe(old), memory.describe(new)]).added
    )
    outcome = changes.settle(app, newer.id, changes.by_model(app.chat_model(MODEL)))
    rows = {row.id: row for row in memory.select(app, states=())}
    assert older.id in rows
    if (old, new) in CLOSED:
        assert [row.state for row in rows.values()] == [MemoryState.ACTIVE] * 2
    elif outcome.same_as is not None:
        said = set(old.casefold().replace(",", "").split())
        assert set(new.casefold().split()) <= said, "what was merged said no more"
    elif outcome.closed:
        assert rows[older.id].superseded_by == newer.id
        assert rows[older.id].valid_to_at is not None
        assert [row.content for row in memory.history(app, newer.id)] == [old, new]
    else:
        assert [row.state for row in rows.values()] == [MemoryState.ACTIVE] * 2
