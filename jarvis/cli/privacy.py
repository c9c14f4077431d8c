"""``jarvis privacy`` and ``jarvis erase``."""

from __future__ import annotations

from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.output import Column
from jarvis.cli.state import state_of
from jarvis.errors import JarvisError, UsageError


def privacy(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="NDJSON, a line an item.")] = False,
) -> None:
    """What is stored where, what can leave this machine, and how to erase it."""
    from jarvis.services import privacy as service

    columns = ("kind", "what", "where", Column("size_bytes", "bytes", right=True), "note")
    output.emit_records(service.items(state_of(context).app), json=json, columns=columns)
    output.note("jarvis memory forget, session delete, doc forget: one thing, everywhere")
    output.note("jarvis erase --everything: all of it, and a look whether it is gone")


def erase(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--everything", help="All of it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Removes everything of Jarvis from this machine, and looks whether it is gone."""
    from jarvis.services import privacy as service

    if not everything:
        raise UsageError(
            "erase removes everything", "jarvis erase --everything, or jarvis memory forget"
        )
    app = state_of(context).app
    for place in service.plan(app):
        output.note(f"would be removed: {place}")
    if not output.confirm("remove all of it? It cannot be brought back", yes=yes):
        output.note("nothing was changed")
        return
    done = service.erase(app, progress=output.note)
    if json:
        output.emit_object(done, json=True)
    for place in done.kept:
        output.note(f"kept, nothing of yours is in it: {place}")
    output.note("backups and exports that you put elsewhere are yours to remove")
    if done.left:
        raise JarvisError(f"still there: {', '.join(done.left)}", "remove it by hand")
    output.note(f"removed {len(done.removed)} places; nothing is left")
