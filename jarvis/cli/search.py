"""``jarvis search``: memories, past conversations and documents together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from jarvis.cli import search_options as options
from jarvis.cli.state import State, state_of

if TYPE_CHECKING:
    from jarvis.services.search import Kind

LIMIT = 10


def search(
    context: typer.Context,
    query: options.QueryWords,
    limit: options.Limit = LIMIT,
    type_: options.Types = None,
    category: options.Category = None,
    min_importance: options.MinImportance = None,
    min_confidence: options.MinConfidence = None,
    since: options.Since = "",
    until: options.Until = "",
    min_similarity: options.MinSimilarity = None,
    explain: options.Explain = False,
    json: options.Json = False,
) -> None:
    """Finds memories, past conversations and passages, by meaning and by words."""
    from jarvis.services import search as service

    options.run(
        state_of(context),
        query,
        service.KINDS,
        filters=service.memory_filters(
            types=type_ or (),
            category=category,
            min_importance=min_importance,
            min_confidence=min_confidence,
            since=service.moment(since),
            until=service.moment(until),
        ),
        limit=limit,
        min_similarity=min_similarity,
        explain=explain,
        json=json,
    )


def search_kinds(
    state: State,
    query: str,
    *,
    kinds: Sequence[Kind],
    limit: int,
    min_similarity: float | None = None,
    since: str = "",
    until: str = "",
    explain: bool = False,
    json: bool = False,
) -> None:
    """One or more kinds (``memories``, ``turns``, ``chunks``), for the groups' own commands."""
    from jarvis.services import search as service

    options.run(
        state,
        [query],
        kinds,
        filters=service.memory_filters(since=service.moment(since), until=service.moment(until)),
        limit=limit,
        min_similarity=min_similarity,
        explain=explain,
        json=json,
    )
