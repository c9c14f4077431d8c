"""``jarvis reindex``: everything embedded again after a switch of the embedding model."""

from __future__ import annotations

from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.progress import Progress
from jarvis.cli.state import state_of


def reindex(
    context: typer.Context,
    words: Annotated[
        bool, typer.Option("--words", help="Read the words of every row anew, too.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the vectors of other models at the end.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Embeds what the embedding model in use has not embedded yet.

    It can be stopped at any time and goes on where it was; until it is through, old rows are
    found by their words.
    """
    from jarvis.services import reindex as service

    with Progress("loading the embedding model") as bar:
        report = service.reindex(
            state_of(context).app,
            words=words,
            prune=prune,
            progress=lambda what, done, total: bar.update(
                f"{what}: {done} of {total}", done=done, total=total or None
            ),
        )
    if json:
        output.emit_object(report, json=True)
    done = ", ".join(f"{count} {what}" for what, count in report.embedded.items())
    output.note(f"embedded with {report.model}: {done}")
    if report.worded:
        output.note(f"words read anew: {report.worded} rows")
    if report.pruned:
        output.note(f"deleted: {report.pruned} vectors of other models")
    for what, count in report.failed.items():
        output.warn(f"{count} {what} could not be embedded and are found by their words")
    if report.exact:
        output.warn(f"searches compare every vector: {report.exact}")
