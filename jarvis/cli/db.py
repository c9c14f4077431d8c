"""``jarvis db``: the database server, backups, and who may see whose rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="JSON, exact.")]


@app.command()
def start(context: typer.Context) -> None:
    """Starts the embedded server and brings its tables up to date."""
    from jarvis.services import server

    state = state_of(context)
    found = server.start(state.app.database, state.paths)
    output.note(f"Postgres {found.version} runs: {found.address}")


@app.command()
def stop(context: typer.Context) -> None:
    """Stops the embedded server."""
    from jarvis.services import server

    state = state_of(context)
    stopped = server.stop(state.app.database, state.paths)
    output.note("stopped" if stopped else "it did not run")


@app.command()
def status(context: typer.Context, json: Json = False) -> None:
    """Whether the server runs, where, and which versions; starts nothing."""
    from jarvis.services import server

    state = state_of(context)
    output.emit_object(server.status(state.app.database, state.paths), json=json)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def psql(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[PSQL-OPTION]...", help="For psql itself.")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="As the embedded server's superuser.")
    ] = False,
) -> None:
    """Opens psql on Jarvis's database; further arguments are psql's own."""
    from jarvis.services import server

    server.psql(state_of(context).app.database, arguments or (), admin=admin)


@app.command()
def backup(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="Where to; default: the backups folder.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the backups there are.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check FILE instead.")] = False,
    json: Json = False,
) -> None:
    """Writes everything into one file and reads it back to check it."""
    from jarvis.services import backup as backups

    state = state_of(context)
    if list_:
        output.emit_records(map(_record, backups.stored(state.paths)), json=json, columns=_COLUMNS)
        return
    if check:
        made = backups.verify(backups.named(file))
    else:
        made = backups.create(state.app.database, state.paths, file)
    output.emit_object(_record(made) | ({"tables": made.tables} if json else {}), json=json)


_COLUMNS = ("created_at", "schema_version", "rows", "size_bytes", "path")


def _record(made: Any) -> dict[str, Any]:
    names = ("path", "created_at", "schema_version", "jarvis_version", "postgres_version")
    return {name: getattr(made, name) for name in (*names, "rows", "size_bytes")}


@app.command()
def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file of jarvis db backup.")],
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Do it, check every row, and undo it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Replaces everything by a backup, all of it or nothing; what is there is backed up first."""
    from jarvis.services import backup as backups

    state = state_of(context)
    found = backups.verify(file)
    question = f"replace everything by the {found.rows} rows of {found.created_at:%Y-%m-%d %H:%M}?"
    if not rehearse and not output.confirm(question, yes=yes):
        output.note("nothing was changed")
        return
    database = state.app.database
    backups.restore(database, file, rehearse=rehearse, progress=output.note)
    output.note(f"{found.rows} rows {'can be ' if rehearse else ''}restored from {file}")


@app.command()
def roles(context: typer.Context, json: Json = False) -> None:
    """Which database role may see whose rows (no user: everybody's)."""
    from jarvis.services import server

    found = server.roles_of(state_of(context).app.database)
    output.emit_records(found, json=json, columns=("role", "user"))


@app.command()
def allow(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="A role of the database.")],
    name: Annotated[str, typer.Argument(metavar="[USER]", help="Whose rows; default: all.")] = "",
) -> None:
    """Lets a database role at one user's rows, or at everybody's."""
    from jarvis.services import server

    if server.allow(state_of(context).app.database, role, name or None):
        output.note(f"made the user {name}")
    output.note(f"{role} may see {'the rows of ' + name if name else 'everything'}")


@app.command()
def deny(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="A role of the database.")],
) -> None:
    """Takes all rights back from a database role."""
    from jarvis.services import server

    server.deny(state_of(context).app.database, role)
    output.note(f"{role} may see nothing")
