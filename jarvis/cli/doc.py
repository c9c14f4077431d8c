"""``jarvis doc``: documents to answer from."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output, search_options
from jarvis.cli.state import State, state_of
from jarvis.errors import DocumentUnreadable, JarvisError, UsageError
from jarvis.security.terminal import escape_controls

if TYPE_CHECKING:
    from jarvis.services.document_files import FileSource
    from jarvis.services.document_ingest import IngestProgress, IngestResult
    from jarvis.services.documents import Documents, Forgotten

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Exact records as JSON.")]

COLUMNS = (
    output.Column("id", right=True),
    output.Column("name", flexible=True),
    output.Column("pages", right=True),
    output.Column("chunks", "passages", right=True),
    output.Column("updated_at"),
)
PREVIEW = 20
"""Documents that are shown before a forget of many is confirmed."""


@app.command()
def ingest(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(help="Files and folders; - for stdin.")],
    recursive: Annotated[
        bool, typer.Option("-r", "--recursive", help="Folders inside folders too.")
    ] = False,
    glob: Annotated[
        list[str] | None, typer.Option("--glob", help="Of folders, only files like *.pdf.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Hidden and git-ignored files too.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Read files anew that did not change.")
    ] = False,
    name: Annotated[str, typer.Option("--name", help="What stdin is called: notes.md.")] = "",
    password: Annotated[
        str | None,
        typer.Option("--password", help="Of encrypted PDFs; - asks for it, unseen."),
    ] = None,
    json: Json = False,
) -> None:
    """Read files, so that answers can cite them."""
    state = state_of(context)
    with _sources(state, paths, name, recursive, glob or [], all_, password) as files:
        if not files:
            output.note("there is no file to read")
            return
        failed = _ingest(state, files, _password(password), again=again, json=json)
    if failed:
        count = f"{failed} of {len(files)} files" if len(files) > 1 else "the file"
        raise DocumentUnreadable(f"{count} could not be read", "each is named above")


@contextlib.contextmanager
def _sources(
    state: State,
    paths: list[str],
    name: str,
    recursive: bool,
    globs: list[str],
    everything: bool,
    given: str | None,
) -> Iterator[list[FileSource]]:
    """The files that the arguments mean."""
    from jarvis.services.document_files import Selection
    from jarvis.services.documents import spooled

    if name and "-" not in paths:
        raise UsageError("--name is for stdin", "jarvis doc ingest - --name notes.md < notes.md")
    if given == "-" and "-" in paths:
        raise UsageError("stdin cannot hold both the file and its password", "name the file")
    selection = Selection(recursive=recursive, globs=globs, everything=everything)
    files = list(selection.files([Path(path) for path in paths if path != "-"]))
    if "-" not in paths:
        yield files
        return
    with spooled(state.app, sys.stdin.buffer, name) as source:
        yield [source, *files]


def _ingest(
    state: State, files: list[FileSource], password: str | None, *, again: bool, json: bool
) -> int:
    """Takes the files in, prints a line for each, and returns how many could not be read."""
    from jarvis.cli.bars import FileBars
    from jarvis.services.documents import Documents

    failed = 0
    with FileBars(len(files)) as bars:

        def show(event: IngestProgress) -> None:
            unit = "pages" if event.stage == "reading" else "passages"
            name = Path(event.path).name
            bars.update(name, event.number, event.stage, unit, event.done, event.total)

        for result in Documents(state.app).ingest(
            files, password=password, again=again, progress=show
        ):
            with bars.away():
                _print_result(result, json=json)
            failed += result.status == "failed"
    return failed


def _password(given: str | None) -> str | None:
    if given != "-":
        return given
    import getpass

    try:
        if output.is_terminal(sys.stdin):
            return getpass.getpass("password: ")
        password = sys.stdin.readline().rstrip("\r\n")
    except EOFError:
        password = ""
    if not password:
        raise UsageError("there is no password", "give it after --password, or on stdin")
    return password


def _print_result(result: IngestResult, *, json: bool) -> None:
    """One line on stdout; what is for people only on stderr."""
    if json:
        record = {field: getattr(result, field) for field in INGEST_FIELDS}
        output.emit_records([record], json=True)
        return
    failed = result.status == "failed"
    facts = [_count(result.pages, "page")] if result.pages and not failed else []
    facts.append(result.error or "cannot be read" if failed else _count(result.chunks, "passage"))
    cells = [result.status, str(result.id or ""), result.path, ", ".join(facts)]
    out = output.stdout()
    safe = [escape_controls(cell) for cell in cells]
    if out.terminal:
        safe[0] = out.style(safe[0], "red" if failed else "green")
    out.write(("  " if out.terminal else "\t").join(safe) + "\n")
    for text in (*result.warnings, *([result.hint] if result.hint else [])):
        output.note(f"{result.path}: {text}")


INGEST_FIELDS = (
    "path",
    "id",
    "status",
    "pages",
    "empty_pages",
    "chunks",
    "warnings",
    "error",
    "elapsed_ms",
)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@app.command("list")
def list_(context: typer.Context, json: Json = False) -> None:
    """The documents that were read."""
    rows = _documents(context).all()
    output.emit_records(rows, json=json, columns=COLUMNS)
    if not rows:
        output.note("there are no documents: jarvis doc ingest FILE")


@app.command()
def show(
    context: typer.Context,
    document: Annotated[str, typer.Argument(help="Its id, name or path.")],
    page: Annotated[
        int | None, typer.Option("--page", min=1, help="The text of one page, counted from 1.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The whole text.")] = False,
    json: Json = False,
) -> None:
    """What is known of a document, or its text."""
    documents = _documents(context)
    found = documents.get(document)
    details = documents.details(found)
    if page is None and not text:
        record = {**output.jsonable(found), "warnings": details.get("warnings", [])}
        output.emit_object(record, json=json)
        return
    content = documents.text(found, page)
    if not json:
        output.emit_text(content)
        if not content:
            output.note(f"there is no text on page {page}")
        return
    record = {"id": found.id, "document": found.name, "page": page}
    if page is not None:
        record["page_label"] = details["pages"][page - 1][2]
    output.emit_object({**record, "content": content}, json=True)


@app.command()
@search_options.command(limit=5)
def search(
    context: typer.Context,
    asked: search_options.Asked,
    document: Annotated[str, typer.Option("--document", help="Only in this one.")] = "",
) -> None:
    """Finds passages by meaning and by words."""
    more = {"document_id": _documents(context).get(document).id} if document else {}
    asked.run(context, ("chunks",), **more)


@app.command()
def forget(
    context: typer.Context,
    documents: Annotated[
        list[str] | None, typer.Argument(help="Ids, names or paths.", metavar="[DOCUMENT]...")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every document.")] = False,
    with_answers: Annotated[
        bool,
        typer.Option("--with-answers", help="Redact the answers that were given from them, too."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Forget documents for good, and prove it. The files themselves stay."""
    service = _documents(context)
    if bool(documents) == all_:
        raise UsageError("say what to forget", "jarvis doc forget ID, or --all")
    rows = service.all() if all_ else [service.get(name) for name in documents or []]
    rows = list({row.id: row for row in rows}.values())
    if not rows:
        output.note("there is nothing to forget")
        return
    if len(rows) > 1:
        for row in rows[:PREVIEW]:
            output.note(f"{row.id}  {row.name}")
        if not output.confirm(f"forget {len(rows)} documents for good?", yes=yes):
            output.note("nothing was forgotten")
            return
    _report(service.forget(rows, with_answers=with_answers), redacted=with_answers, json=json)


def _report(done: Forgotten, *, redacted: bool, json: bool) -> None:
    if json:
        output.emit_object(
            {
                "ids": [document.id for document in done.documents],
                "rows": done.rows,
                "barred_messages": list(done.barred),
                "verified": done.verified,
            },
            json=True,
        )
    else:
        output.emit_records(
            [{"table": name, "removed": count} for name, count in done.rows.items()],
            json=False,
            columns=("table", "removed"),
        )
        if done.barred:
            kept = "are redacted" if redacted else "stay in session show (--with-answers redacts)"
            output.note(f"{_count(len(done.barred), 'answer')} given from it {kept}")
    if not done.verified:
        raise JarvisError("something of it is still found", "run the command again; then doctor")
    if not json:
        output.note("checked: no search and no prompt finds it; the files are where they were")


def _documents(context: typer.Context) -> Documents:
    from jarvis.services.documents import Documents

    return Documents(state_of(context).app)
