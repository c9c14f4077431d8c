"""``jarvis config``: the settings, in a file that stays the user's own."""

from __future__ import annotations

from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.output import Column
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="JSON, exact.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="section.name, as config show lists it.")]


@app.command()
def path(context: typer.Context) -> None:
    """Where the file is, or would be."""
    output.emit_text(str(state_of(context).config_path))


@app.command()
def show(
    context: typer.Context,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Only this one, its value alone.")
    ] = None,
    json: Json = False,
) -> None:
    """Every setting, its value and where that comes from. Passwords are hidden."""
    from jarvis.services import configuration

    where = state_of(context).config_path
    if key is not None:
        found = configuration.setting_of(where, key)
        if json:
            output.emit_object(found, json=True)
        else:
            output.emit_text(output.show_value(found.value))
        return
    columns: list[str | Column] = ["key", Column("value", flexible=True), Column("origin", "from")]
    output.emit_records(configuration.settings_of(where), json=json, columns=columns)


@app.command("set")
def set_(
    context: typer.Context,
    key: Key,
    value: Annotated[str, typer.Argument(help="Text, number, true or false; lists with commas.")],
) -> None:
    """Changes one setting; comments and everything else in the file stay as they are."""
    from jarvis.services import configuration

    state = state_of(context)
    changed = configuration.change(state.config_path, key, value)
    output.note(f"{key} = {output.show_value(changed.value)} in {state.config_path}")
    if changed.origin == "environment":
        variable = "JARVIS_" + key.replace(".", "_").upper()
        output.warn(f"{variable} is set and overrides the file")


@app.command()
def unset(context: typer.Context, key: Key) -> None:
    """Takes one setting out of the file, so that its default counts again."""
    from jarvis.services import configuration

    changed = configuration.change(state_of(context).config_path, key, None)
    output.note(f"{key} = {output.show_value(changed.value)} ({changed.origin})")


@app.command()
def edit(context: typer.Context) -> None:
    """Opens the file in your editor, made from the example if it is missing, and checks it."""
    from jarvis import config
    from jarvis.services import configuration, editor

    where = state_of(context).config_path
    if configuration.make_file(where):
        output.note(f"made {where}: every setting with its default, commented out")
    editor.run(where)
    config.load(where)
    output.note("the settings are right")
