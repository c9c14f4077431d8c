"""``jarvis memory``: what is remembered about you."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output, records
from jarvis.cli.state import State, state_of
from jarvis.cli.stdin import read_stdin
from jarvis.errors import UsageError
from jarvis.types import MemorySource, MemoryState, MemoryType

if TYPE_CHECKING:
    from jarvis.types import Memory

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Exact records as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
OneId = Annotated[int, typer.Argument(help="A number that a list shows.")]

COLUMNS = (
    output.Column("id", right=True),
    output.Column("type"),
    output.Column("category"),
    output.Column("importance", right=True),
    output.Column("content", flexible=True),
)


@app.command()
def add(
    context: typer.Context,
    text: Annotated[
        list[str] | None, typer.Argument(help="One fact; without it, or with -, stdin: one a line.")
    ] = None,
    type_: Annotated[
        MemoryType | None, typer.Option("--type", case_sensitive=False, help="What kind it is.")
    ] = None,
    category: Annotated[str | None, typer.Option("--category", help="A word to sort by.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", help="0 to 1.")] = None,
    at: Annotated[str, typer.Option("--at", help="Since when it holds: 2026-05-01.")] = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remember something."""
    from jarvis.services import memory

    state = state_of(context)
    lines = _facts(text or [])
    kind = memory.has_secret(lines)
    if kind:
        _confirm_secret(kind, yes=yes)
    new = [
        memory.describe(line, type=type_, category=category, importance=importance, at=moment(at))
        for line in lines
    ]
    report = memory.add(state.app, new)
    for entry in report.added:
        if not entry.created:
            output.note(f"known already as {entry.memory.id}")
        for old in entry.closed:
            output.note(f"takes the place of {old.id}: {old.content}")
        if entry.created and entry.memory.superseded_by is not None:
            output.note(f"over by now: {entry.memory.superseded_by} holds since then")
    for line in report.notes:
        output.note(line)
    print_memories([entry.memory for entry in report.added], json=json)


def _confirm_secret(kind: str, *, yes: bool) -> None:
    if not output.confirm(f"this looks like a secret ({kind}); remember it?", yes=yes):
        raise UsageError("nothing was stored", "add --yes to remember it all the same")


def _facts(words: list[str]) -> list[str]:
    """The facts of ``add``: all arguments are one; of stdin each line is one."""
    if words and words != ["-"]:
        return [" ".join(words)]
    piped = read_stdin(explicit=words == ["-"])
    lines = [line for line in (piped or "").splitlines() if line.strip()]
    if not lines:
        raise UsageError("there is nothing to remember", 'jarvis memory add "I live in …"')
    return lines


def moment(text: str) -> datetime | None:
    """A date that somebody typed; None for none."""
    if not text:
        return None
    from jarvis.services.extraction import dates

    return dates.parse(text, datetime.now().astimezone())


def print_memories(rows: list[Memory], *, json: bool, mixed: bool = False) -> None:
    """Prints memories as records; ``mixed``: of more than one state, which is shown."""
    shown = [records.memory_record(row) for row in rows] if json else rows
    columns = (*COLUMNS[:-1], output.Column("state"), COLUMNS[-1]) if mixed else COLUMNS
    output.emit_records(shown, json=json, columns=columns)


@app.command("list")
def list_(
    context: typer.Context,
    type_: Annotated[
        list[MemoryType] | None, typer.Option("--type", case_sensitive=False, help="Only these.")
    ] = None,
    category: Annotated[str | None, typer.Option("--category", help="Only this one.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="user, sister …")] = None,
    source: Annotated[
        MemorySource | None, typer.Option("--source", case_sensitive=False, help="Where from.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="active (default), superseded, retracted, held, all."),
    ] = None,
    min_importance: Annotated[float | None, typer.Option("--min-importance")] = None,
    min_confidence: Annotated[float | None, typer.Option("--min-confidence")] = None,
    since: Annotated[str, typer.Option("--since", help="Stored from then on.")] = "",
    until: Annotated[str, typer.Option("--until", help="Stored before then.")] = "",
    at: Annotated[str, typer.Option("--at", help="What held at that time.")] = "",
    sort: Annotated[
        str, typer.Option("--sort", help="id, created, updated, importance, accessed, count.")
    ] = "id",
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1)] = None,
    json: Json = False,
) -> None:
    """What is remembered."""
    from jarvis.services import memory

    services = state_of(context).app
    wanted = states(state or [])
    rows = memory.select(
        services,
        states=wanted,
        types=tuple(type_ or ()),
        category=category,
        subject=subject,
        source=source,
        min_importance=min_importance,
        min_confidence=min_confidence,
        since=moment(since),
        until=moment(until),
        at=moment(at),
        sort=sort,
        reverse=reverse,
        limit=limit,
    )
    print_memories(rows, json=json, mixed=len(wanted) != 1)
    _note_unread(state_of(context))


def states(names: list[str]) -> tuple[MemoryState, ...]:
    """The states that ``--state`` names; ``all`` is every one."""
    if "all" in names:
        return ()
    if not names:
        return (MemoryState.ACTIVE,)
    try:
        return tuple(MemoryState(name.lower()) for name in names)
    except ValueError:
        known = ", ".join([*(state.value for state in MemoryState), "all"])
        raise UsageError(f"there is no state {' '.join(names)}", f"one of: {known}") from None


def _note_unread(state: State) -> None:
    from jarvis.services import memory

    count = memory.unread_messages(state.app)
    if count:
        what = "message is" if count == 1 else "messages are"
        output.note(f"{count} {what} not read yet: jarvis memory extract")


@app.command()
def show(context: typer.Context, memory_id: OneId, json: Json = False) -> None:
    """One memory, and where it comes from."""
    from jarvis.services import memory

    origin = memory.show(state_of(context).app, memory_id)
    record = records.memory_record(origin.memory)
    if json:
        record["session"] = origin.session
        record["message"] = origin.message
    else:
        if origin.session is not None:
            record["session"] = origin.session.title or f"session {origin.session.id}"
        if origin.message is not None:
            record["said"] = origin.message.content
            record["said_at"] = origin.message.created_at
        record = {name: value for name, value in record.items() if value not in {None, ""}}
    output.emit_object(record, json=json)


@app.command()
def edit(
    context: typer.Context,
    memory_id: OneId,
    text: Annotated[
        list[str] | None, typer.Argument(help="The new words; - for stdin; none: your editor.")
    ] = None,
    type_: Annotated[MemoryType | None, typer.Option("--type", case_sensitive=False)] = None,
    category: Annotated[str | None, typer.Option("--category")] = None,
    importance: Annotated[float | None, typer.Option("--importance", help="0 to 1.")] = None,
    since: Annotated[str, typer.Option("--since", help="From when it holds.")] = "",
    until: Annotated[str, typer.Option("--until", help="Until when it held.")] = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Change a memory."""
    from jarvis.services import memory

    services = state_of(context).app
    other = any(value is not None for value in (type_, category, importance)) or since or until
    content = None if not text and other else _new_words(services, memory_id, text or [])
    if content is not None:
        kind = memory.has_secret([content])
        if kind:
            _confirm_secret(kind, yes=yes)
    changed, note = memory.edit(
        services,
        memory_id,
        content=content,
        type=type_,
        category=category,
        importance=importance,
        valid_from_at=moment(since),
        valid_to_at=moment(until),
    )
    if note:
        output.note(note)
    print_memories([changed], json=json)


def _new_words(services: object, memory_id: int, words: list[str]) -> str:
    from jarvis.services import memory

    if words == ["-"]:
        return read_stdin(explicit=True) or ""
    if words:
        return " ".join(words)
    old = memory.show(services, memory_id).memory.content  # type: ignore[arg-type]
    if not (output.is_terminal(sys.stdin) and output.is_terminal(sys.stdout)):
        raise UsageError(
            "there are no new words", f'jarvis memory edit {memory_id} "…", or - for stdin'
        )
    from jarvis.services import editor

    return editor.edited(old, suffix=".txt")


@app.command()
def history(context: typer.Context, memory_id: OneId, json: Json = False) -> None:
    """A memory through time: what it took the place of, and what took its place."""
    from jarvis.services import memory

    rows = memory.history(state_of(context).app, memory_id)
    output.emit_records(
        [records.memory_record(row) for row in rows] if json else rows,
        json=json,
        columns=("id", "state", "valid_from_at", "valid_to_at", "superseded_by", "content"),
    )


@app.command()
def stats(context: typer.Context, json: Json = False) -> None:
    """How much is remembered, and how far the messages are read."""
    from jarvis.services import memory

    found = memory.stats(state_of(context).app)
    if json:
        output.emit_object(found, json=True)
        return
    flat: dict[str, object] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= {f"{name} {key}": count for key, count in value.items() if key}
        elif name == "failures":
            flat |= {f"message {item['message_id']} failed": item["error"] for item in value}
        else:
            flat[name] = value
    output.emit_object(flat, json=False)


# The commands that take away, decide and move are in a module of their own.
from jarvis.cli import memory_care as _memory_care  # noqa: E402, F401
