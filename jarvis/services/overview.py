"""What a chat shows about itself: how much is known, and lists to complete from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jarvis.services.completions import MAX_VALUES
from jarvis.store import documents, memory_lists, sessions
from jarvis.types import MemoryState

if TYPE_CHECKING:
    from jarvis.services.app import App

Values = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Overview:
    """``facts`` counts active memories; ``lists`` holds ids or names with a word about each."""

    facts: int
    lists: dict[str, Values] = field(default_factory=dict)


def of(app: App) -> Overview:
    """Looks at the database.

    Raises:
        DatabaseUnavailable: it cannot be used.
    """
    user_id = app.user.id
    with app.database.connection() as connection:
        facts = memory_lists.counts(connection, user_id)["state"].get(MemoryState.ACTIVE, 0)
        known = sessions.recent(connection, user_id, limit=MAX_VALUES)
        newest = memory_lists.select(
            connection, user_id, sort="created", limit=MAX_VALUES, states=(MemoryState.ACTIVE,)
        )
        files = documents.everything(connection, user_id)
    return Overview(
        facts,
        {
            "session": [(str(row.id), row.title or "untitled") for row in known],
            "memory": [(str(row.id), row.content) for row in newest],
            "document": [(str(row.id), row.name) for row in files],
        },
    )


def models_of(app: App) -> Values:
    """The chat models that are installed where this user's models are.

    Raises:
        ModelUnavailable: no server can be asked.
    """
    from jarvis.services import models

    return [
        (model.name, model.summary or model.provider)
        for model in models.models(app)
        if model.installed and model.kind == "chat"
    ]
