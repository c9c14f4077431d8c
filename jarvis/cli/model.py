"""``jarvis model``: chat and embedding models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jarvis.cli import output, pulling
from jarvis.cli.output import Column
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="JSON, exact.")]
Name = Annotated[str, typer.Argument(help="As with Ollama: qwen2.5-coder:0.5b")]


@app.command("list")
def list_(context: typer.Context, json: Json = False) -> None:
    """The models that are here, which are used, and what the catalogue offers."""
    from jarvis.services import models

    output.emit_records(
        models.models(state_of(context).app),
        json=json,
        columns=(
            Column("name"),
            Column("kind"),
            Column("provider"),
            Column("installed"),
            Column("used_for"),
            Column("size_bytes", "size", show=lambda size: f"{size / 1e6:,.0f} MB", right=True),
            Column("summary", flexible=True),
        ),
    )


@app.command()
def status(context: typer.Context, json: Json = False) -> None:
    """Which models are used now and why, their memory and speed, and the disk they take."""
    from jarvis.services import models

    app_ = state_of(context).app
    found = models.in_use(app_)
    if json:
        output.emit_object({"models": found, **models.disk_use(app_)}, json=True)
        return
    for each in found:
        shown = output.jsonable(each)
        output.emit_object({key: value for key, value in shown.items() if value}, json=False)
    output.emit_object(models.disk_use(app_), json=False)


@app.command()
def pull(context: typer.Context, name: Name) -> None:
    """Downloads a model; one that was interrupted goes on where it stopped."""
    from jarvis.services import models

    with pulling.report(name) as tell:
        where = models.pull(state_of(context).app, name, tell)
    output.note(f"{name} is installed at {where}")


@app.command()
def use(context: typer.Context, name: Name) -> None:
    """Makes a model the one for chat or for embeddings, whichever it is for."""
    from jarvis.services import models

    with pulling.report(name) as tell:
        used = models.use(state_of(context).app, name, tell)
    for key, value in used.settings.items():
        output.note(f"{key} = {value}")
    if used.kind == "embedding":
        output.note("what is stored has other vectors: jarvis reindex makes new ones")


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A GGUF file; it is copied.")],
    name: Annotated[str, typer.Option("--name", help="What to call it.")],
) -> None:
    """Takes a GGUF file into the embedded engine."""
    from jarvis.services import models

    with pulling.report(name) as tell:
        full = models.import_file(state_of(context).app, file, name, tell)
    output.note(f"imported; use it with: jarvis model use {full}")


@app.command()
def rm(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Deletes a model from this machine."""
    from jarvis.services import models

    if not output.confirm(f"delete the model {name}?", yes=yes):
        raise typer.Exit(1)
    app = state_of(context).app
    freed = models.remove(app, name)
    output.note(f"{name} is deleted, {freed / 1e6:,.0f} MB are free again")
    for setting in models.settings_naming(app, name):
        output.note(f"{setting} still names it: jarvis model use NAME chooses another")


@app.command()
def calibrate(context: typer.Context, json: Json = False) -> None:
    """Measures the chat model's speed again, and the embedding model's threshold."""
    from jarvis.services import models

    with pulling.report("calibrating") as tell:
        found = models.calibrate(state_of(context).app, tell)
    output.emit_records(found, json=json)
