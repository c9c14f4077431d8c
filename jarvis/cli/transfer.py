"""``jarvis export`` and ``jarvis import``: everything a user owns, as NDJSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of
from jarvis.errors import UsageError
from jarvis.paths import private_file

if TYPE_CHECKING:
    from jarvis.services.transfer import Imported

Target = Annotated[str, typer.Argument(metavar="[FILE]", help="A new 0600 file; else stdout.")]
Source = Annotated[str, typer.Argument(metavar="FILE", help="What was exported; - for stdin.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, store nothing.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


def export(context: typer.Context, file: Target = "-", force: Force = False) -> None:
    """Everything you own, as NDJSON: conversations, memories, documents' text.

    An export names no user. It is yours to protect: it holds what you said.
    """
    from jarvis.services import transfer

    write(transfer.export_everything(state_of(context).app), file, force=force)


def import_(
    context: typer.Context, file: Source, dry_run: DryRun = False, json: Json = False
) -> None:
    """Bring back an export, beside what is there already. All of it or nothing."""
    from jarvis.services import transfer

    lines = read(file)
    report(transfer.import_lines(state_of(context).app, lines, dry_run=dry_run), json=json)


def write(lines: Iterable[str], file: str, *, force: bool) -> None:
    """Writes lines to stdout or to a private file, which appears only when it is whole."""
    if file == "-":
        out = output.stdout()
        for line in lines:
            out.write(line + "\n", flush=False)
        out.write("")
        return
    path = Path(file)
    if path.exists() and not force:
        raise UsageError(f"{path} exists", "name another file, or add --force")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(private_file(unfinished, flags), "w", encoding="utf-8") as stream:
            count = 0
            for line in lines:
                stream.write(line + "\n")
                count += 1
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    output.note(f"{count - 1} records in {path}")


def read(file: str) -> list[str]:
    """The lines of a file or of stdin.

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no UTF-8 text", "an export is; nothing was imported") from None
    return text.split("\n")


def report(done: Imported, *, json: bool) -> None:
    """Says what an import did."""
    if json:
        output.emit_object(done, json=True)
        return
    kinds = [*done.added, *(kind for kind in done.known if kind not in done.added)]
    output.emit_records(
        [
            {"kind": kind, "added": done.added.get(kind, 0), "known": done.known.get(kind, 0)}
            for kind in kinds
        ],
        json=False,
        columns=("kind", "added", "known"),
    )
    if done.merged:
        output.note(f"{done.merged} memories were there in other rows")
    if done.renumbered:
        output.note(f"{done.renumbered} got a new number: theirs was taken")
    for text in done.notes:
        output.note(text)
    if done.dry:
        output.note("a dry run: nothing was stored")
