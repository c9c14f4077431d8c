"""``jarvis search``: memories, past conversations and documents together."""

from __future__ import annotations

import typer

from jarvis.cli import search_options

LIMIT = 10


def search(
    context: typer.Context,
    query: search_options.QueryWords,
    limit: search_options.Limit = LIMIT,
    type_: search_options.Types = None,
    category: search_options.Category = None,
    min_importance: search_options.MinImportance = None,
    min_confidence: search_options.MinConfidence = None,
    since: search_options.Since = "",
    until: search_options.Until = "",
    min_similarity: search_options.MinSimilarity = None,
    explain: search_options.Explain = False,
    json: search_options.Json = False,
) -> None:
    """Finds memories, past conversations and passages, by meaning and by words."""
    search_options.run(
        context,
        query,
        ("memories", "turns", "chunks"),
        limit=limit,
        type_=type_,
        category=category,
        min_importance=min_importance,
        min_confidence=min_confidence,
        since=since,
        until=until,
        min_similarity=min_similarity,
        explain=explain,
        json=json,
    )
