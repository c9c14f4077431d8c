"""``jarvis worker``: the background work, seen and run by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)


@app.command()
def status(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Whether the worker runs, and what waits for it."""
    from jarvis.services import worker

    found = worker.status(state_of(context).app)
    output.emit_object(
        {"running": found.running, "pid": found.pid, "pending": found.pending}
        if json
        else {"running": found.running, "pid": found.pid, **found.pending},
        json=json,
    )


@app.command()
def run(context: typer.Context) -> None:
    """Does what waits, in this process, and ends when nothing is left."""
    from jarvis.services import worker

    done = worker.run(state_of(context).app)
    output.note(f"{done} pieces of work done")


@app.command()
def stop(context: typer.Context) -> None:
    """Ends the worker; what it was doing is done by the next one."""
    from jarvis.services import worker

    stopped = worker.stop(state_of(context).app)
    output.note("the worker was stopped" if stopped else "no worker runs")
