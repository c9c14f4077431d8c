"""``jarvis session``: conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jarvis.cli import output, search_options
from jarvis.cli.output import Column
from jarvis.cli.state import state_of
from jarvis.errors import UsageError
from jarvis.security.terminal import sanitise

if TYPE_CHECKING:
    from jarvis.types import Session

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="JSON, exact.")]
SessionId = Annotated[int, typer.Argument(metavar="ID", help="As session list shows it.")]

_COLUMNS: list[str | Column] = [
    Column("id", right=True),
    Column("title", flexible=True),
    Column("turns", right=True),
    Column("updated_at", "last used"),
]


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1, help="So many.")] = None,
    json: Json = False,
) -> None:
    """Conversations, the one used last first."""
    from jarvis.services import completions

    state = state_of(context)
    known = state.app.sessions.recent(limit=limit)
    output.emit_records((_record(row) for row in known), json=json, columns=_COLUMNS)
    if not known:
        output.note("there are no conversations yet: jarvis chat, jarvis ask")
    if limit is None:
        completions.update(
            state.paths, "session", ((str(row.id), row.title or "untitled") for row in known)
        )


@app.command()
def show(
    context: typer.Context,
    session: SessionId,
    last: Annotated[
        int | None, typer.Option("-n", "--last", min=1, help="Only so many messages.")
    ] = None,
    json: Json = False,
) -> None:
    """One conversation, message by message."""
    from jarvis.services import sessions as service

    found = state_of(context).app.sessions.show(session, last=last)
    if json:
        output.emit_object(service.as_record(found), json=True)
        return
    out = output.stdout()
    if not out.terminal:
        output.emit_records(
            found.messages, json=False, columns=["id", "role", "created_at", "content"]
        )
        return
    out.write(out.style(sanitise(found.session.title) or f"Session {session}", "bold") + "\n")
    for message in found.messages:
        moment = output.show_value(message.created_at, terminal=True)
        status = "" if message.status == "complete" else f", {message.status}"
        head = f"\n{message.role} {message.id} ({moment}{status})"
        out.write(out.style(head, "dim") + "\n")
        output.emit_text(message.content)


@app.command()
@search_options.command(limit=10)
def search(context: typer.Context, asked: search_options.Asked) -> None:
    """Finds what was said, by meaning and by words."""
    asked.run(context, ("turns",))


@app.command()
def rename(
    context: typer.Context,
    session: SessionId,
    title: Annotated[list[str], typer.Argument(help="The new title.")],
) -> None:
    """Gives a conversation a title of your own."""
    renamed = state_of(context).app.sessions.rename(session, " ".join(title))
    output.note(f"session {renamed.id} is called {renamed.title}")


@app.command()
def export(
    context: typer.Context,
    session: SessionId,
    file: Annotated[
        Path | None, typer.Argument(help="Where to; the ending .json chooses JSON.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of Markdown.")] = False,
) -> None:
    """Writes a conversation as Markdown or JSON, to stdout or a file."""
    as_json = json or (file is not None and file.suffix == ".json")
    text = state_of(context).app.sessions.export(session, "json" if as_json else "markdown")
    if file is None:
        output.emit_text(text)
        return
    from jarvis.services import files

    files.write_new(file, text)
    output.note(f"written to {file}")


@app.command()
def delete(
    context: typer.Context,
    sessions: Annotated[list[int], typer.Argument(metavar="ID...", help="Which ones.")],
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> None:
    """Deletes conversations, all of those named or none. Facts learnt from them stay."""
    state = state_of(context)
    for session in sessions:
        state.app.sessions.get(session)
    names = ", ".join(map(str, sessions))
    if not output.confirm(f"delete session {names} for good?", yes=yes):
        raise UsageError("nothing was deleted")
    deleted = state.app.sessions.delete(sessions)
    output.note(f"deleted {len(deleted)}; facts learnt from them stay: jarvis memory list")


def _record(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "summary": session.summary,
        "turns": session.turns,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }
