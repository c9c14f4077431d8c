"""``jarvis memory``: finding, forgetting, deciding what is held, reading on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output, records, search_options
from jarvis.cli import transfer as transfer_cli
from jarvis.cli.memory import Json, Yes, app, moment, print_memories
from jarvis.cli.state import state_of
from jarvis.errors import JarvisError, UsageError

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.forget import Forgotten
    from jarvis.types import Memory

PREVIEW = 20
"""Memories that are shown before a forget of many is confirmed."""


@app.command()
def forget(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids and ranges: 3 5-9.")] = None,
    query: Annotated[str, typer.Option("--query", help="All that has these words.")] = "",
    all_: Annotated[bool, typer.Option("--all", help="Everything that is remembered.")] = False,
    with_source: Annotated[
        bool, typer.Option("--with-source", help="Redact the messages that say it, too.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Forget for good, and prove it."""
    from jarvis.services import forget as service

    services = state_of(context).app
    if sum((bool(ids), bool(query), all_)) != 1:
        raise UsageError("say what to forget", "ids, --query WORDS or --all")
    if all_:
        rows = service.everything(services)
    else:
        rows = service.matching(services, query) if query else service.resolve(services, ids or [])
    if not rows:
        output.note("there is nothing to forget")
        return
    if all_ or query or len(rows) > 1:
        _preview(rows)
        noun = "memory" if len(rows) == 1 else "memories"
        if not output.confirm(f"forget {len(rows)} {noun} for good?", yes=yes):
            output.note("nothing was forgotten")
            return
    _report(service.forget(services, rows, with_source=with_source), json=json)


def _preview(rows: list[Memory]) -> None:
    for row in rows[:PREVIEW]:
        output.note(f"{row.id}  {row.content}")
    if len(rows) > PREVIEW:
        output.note(f"… and {len(rows) - PREVIEW} more")


def _report(done: Forgotten, *, json: bool) -> None:
    if json:
        output.emit_object(
            {
                "ids": [row.id for row in done.memories],
                "rows": done.rows,
                "barred_messages": list(done.barred),
                "redacted_messages": list(done.redacted),
                "verified": done.verified,
                "found": list(done.found),
            },
            json=True,
        )
    else:
        output.emit_records(
            [{"table": name, "removed": count} for name, count in done.rows.items()],
            json=False,
            columns=("table", "removed"),
        )
        if done.redacted:
            output.note(f"redacted the words of {len(done.redacted)} messages")
        elif done.barred:
            output.note(
                f"{len(done.barred)} messages say it: no search and no prompt reaches them;"
                " session show still does (--with-source redacts them)"
            )
    if not done.verified:
        raise JarvisError(
            "still found in " + ", ".join(done.found[:5]), "jarvis memory forget it there, too"
        )
    if not json:
        output.note("checked: no search and no prompt finds it")


@app.command()
def review(
    context: typer.Context,
    accept: Annotated[list[str] | None, typer.Option("--accept", help="Ids to keep.")] = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", help="Ids to throw away.")] = None,
    edit: Annotated[
        int | None, typer.Option("--edit", help="Keep this one in other words.")
    ] = None,
    text: Annotated[list[str] | None, typer.Argument(help="The words for --edit.")] = None,
    json: Json = False,
) -> None:
    """What waits for your decision: secrets, and what reads like an order to the assistant."""
    from jarvis.services import review

    services = state_of(context).app
    if accept or drop or text or edit is not None:
        done = review.decide(
            services,
            accepted=accept or (),
            dropped=drop or (),
            edited=edit,
            words=" ".join(text or ()),
        )
        for number in done.dropped:
            output.note(f"dropped {number}")
        print_memories(list(done.kept), json=json)
        return
    waiting = review.held(services)
    terminal = output.is_terminal(_stdin()) and output.stdout().terminal and not json
    if not terminal:
        output.emit_records(
            [records.memory_record(row) for row in waiting] if json else waiting,
            json=json,
            columns=("id", "held_reason", "content"),
        )
        return
    if not waiting:
        output.note("nothing waits for a decision")
    for row in waiting:
        _ask(services, row)


def _stdin() -> object:
    import sys

    return sys.stdin


def _ask(services: App, row: Memory) -> None:
    from jarvis.services import review

    output.emit_object({"id": row.id, "why": row.held_reason, "content": row.content}, json=False)
    answer = typer.prompt("[a]ccept, [e]dit, [d]rop, [s]kip", default="s", err=True).strip().lower()
    if answer.startswith("a"):
        review.accept(services, row.id)
    elif answer.startswith("e"):
        review.accept(services, row.id, typer.prompt("words", default=row.content, err=True))
    elif answer.startswith("d"):
        review.drop(services, row.id)


@app.command()
def extract(
    context: typer.Context,
    again: Annotated[
        bool, typer.Option("--again", help="Read every message once more, not only unread ones.")
    ] = False,
    json: Json = False,
) -> None:
    """Read what you said for facts now, and wait until it is done."""
    from jarvis.services import memory, worker

    services = state_of(context).app
    memory.extract_now(services, again=again)
    with output.status("reading messages") as progress:
        left = worker.drain(
            services, on_progress=lambda count: progress.update(f"reading: {count} pieces left")
        )
    found = memory.stats(services)
    if json:
        output.emit_object({"left": left, "messages": found["messages"]}, json=True)
    for failure in found["failures"]:
        output.warn(f"message {failure['message_id']}: {failure['error']}")
    if left:
        raise JarvisError(
            f"{left} pieces of work are left", "jarvis worker status, and the log, say why"
        )
    output.note(f"done: {found['state'].get('active', 0)} memories")


@app.command()
@search_options.command(limit=5)
def search(
    context: typer.Context,
    asked: search_options.Asked,
    at: Annotated[str, typer.Option("--at", help="What held at that time.")] = "",
) -> None:
    """Find memories by meaning and by words."""
    asked.run(context, ("memories",), at=moment(at))


@app.command("export")
def export_(
    context: typer.Context, file: transfer_cli.Target = "-", force: transfer_cli.Force = False
) -> None:
    """Your memories as NDJSON, in every state."""
    from jarvis.services import transfer

    transfer_cli.write(transfer.export_memories(state_of(context).app), file, force=force)


@app.command("import")
def import_(
    context: typer.Context,
    file: transfer_cli.Source,
    dry_run: transfer_cli.DryRun = False,
    json: Json = False,
) -> None:
    """Bring memories in: an export, or plain text with one fact a line."""
    from jarvis.services import transfer

    lines = transfer_cli.read(file)
    done = transfer.import_lines(state_of(context).app, lines, dry_run=dry_run)
    transfer_cli.report(done, json=json)
