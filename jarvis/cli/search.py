"""``jarvis search``: memories, past conversations and documents together."""

from __future__ import annotations

import typer

from jarvis.cli import search_options


@search_options.command(limit=10)
def search(context: typer.Context, asked: search_options.Asked) -> None:
    """Finds memories, past conversations and passages, by meaning and by words."""
    asked.run(context, ("memories", "turns", "chunks"))
