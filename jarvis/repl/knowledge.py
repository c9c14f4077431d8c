"""The slash commands about what is known: memory, remember, forget, search, doc, explain."""

from __future__ import annotations

import glob
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.cli import output
from jarvis.cli.output import Column
from jarvis.cli.progress import Progress
from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.paths import expand
from jarvis.repl.chat import refresh

if TYPE_CHECKING:
    from jarvis.repl.chat import Chat
    from jarvis.repl.terminal import Surface
    from jarvis.services.document_ingest import IngestProgress
    from jarvis.services.documents import Documents
    from jarvis.services.search import Kind
    from jarvis.types import ChunkHit, Document

LISTED = 20
_MEMORY_COLUMNS: list[str | Column] = ["id", "type", Column("content", flexible=True)]


def memory(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/memory``"""
    from jarvis.services import memory as service

    if argument:
        _search(chat, terminal, argument, kinds=("memories",))
        return
    rows = service.select(chat.app, sort="created", limit=LISTED + 1)
    if not rows:
        output.note("nothing is remembered yet: say something about yourself, or /remember")
        return
    output.emit_records(rows[:LISTED], json=False, columns=_MEMORY_COLUMNS)
    if len(rows) > LISTED:
        output.note("older ones: /memory WORDS, jarvis memory list")


def remember(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/remember``"""
    from jarvis.security import secrets
    from jarvis.services import memory as service

    if secrets.find(argument) and not terminal.yes("this looks like a secret; store it?"):
        output.note("not stored")
        return
    report = terminal.interruptible(lambda: service.add(chat.app, [service.describe(argument)]))
    if report is None:
        return
    for added in report.added:
        verb = "remembered" if added.created else "known already"
        output.note(f"{verb} as memory {added.memory.id}: {added.memory.content}")
        for closed in added.closed:
            output.note(f"no longer current: {closed.content} (memory {closed.id})")
    for text in report.notes:
        output.note(text)
    refresh(chat)


def forget(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/forget``"""
    from jarvis.services import forget as service

    rows = service.resolve(chat.app, argument.split())
    if len(rows) > 1:
        for row in rows[:LISTED]:
            output.note(f"{row.id}  {row.content}")
        if not terminal.yes(f"forget {len(rows)} memories for good?"):
            output.note("nothing was forgotten")
            return
    done = terminal.interruptible(lambda: service.forget(chat.app, rows))
    if done is None:
        return
    for row in done.memories:
        output.note(f"forgotten: {row.content}")
    if done.barred:
        output.note(
            f"{len(done.barred)} messages say it: no search and no prompt reaches them"
            " (jarvis memory forget --with-source redacts such messages)"
        )
    if not done.verified:
        raise JarvisError("still found in " + ", ".join(done.found[:5]), "/forget it there, too")
    output.note("checked: no search and no prompt finds it")
    refresh(chat)


def search(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/search``"""
    _search(chat, terminal, argument, kinds=("memories", "turns", "chunks"))


def _search(chat: Chat, terminal: Surface, words: str, kinds: tuple[Kind, ...]) -> None:
    from jarvis.services import search as service

    found = terminal.interruptible(lambda: service.search(chat.app, words, kinds=kinds))
    if found is None:
        return
    rows = [
        *(
            {"what": f"memory {hit.memory.id}", "text": hit.memory.content}
            for hit in found.memories
        ),
        *({"what": f"session {turn.session_id}", "text": turn.content} for turn in found.turns),
        *({"what": _place(chunk), "text": _short(chunk.content)} for chunk in found.chunks),
    ]
    for text in found.notes:
        output.note(text)
    if not rows:
        output.note("nothing fits")
        return
    output.emit_records(rows, json=False, columns=["what", Column("text", flexible=True)])


def _place(hit: ChunkHit) -> str:
    """Document and page of a passage."""
    return f"{hit.document}, p. {hit.page_label or hit.page}" if hit.page else hit.document


def _short(text: str, length: int = 200) -> str:
    words = " ".join(text.split())
    return words if len(words) <= length else words[: length - 1] + "…"


def doc(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/doc``"""
    from jarvis.services.documents import Documents

    documents = Documents(chat.app)
    verb, _, rest = argument.partition(" ")
    if verb in {"", "list"}:
        rows = documents.all()
        if not rows:
            output.note("there are no documents: /doc PATH reads one in")
            return
        columns: list[str | Column] = ["id", Column("name", flexible=True), "pages", "chunks"]
        output.emit_records(rows, json=False, columns=columns)
    elif verb == "forget":
        if not rest.strip():
            raise UsageError("/doc forget needs an id or a name", "/doc lists them")
        gone = documents.forget(_named(documents, rest.strip()))
        output.note("forgotten: " + ", ".join(row.name for row in gone.documents))
        if not gone.verified:
            raise JarvisError("something of it is still found", "/doc forget it again; then doctor")
        if gone.barred:
            output.note(f"{len(gone.barred)} answers given from it stay in their sessions only")
        output.note("checked: no search and no prompt finds it; the file is where it was")
        refresh(chat)
    else:
        _ingest(chat, terminal, documents, argument)


def _ingest(chat: Chat, terminal: Surface, documents: Documents, argument: str) -> None:
    from jarvis.services.document_files import Selection

    files = list(Selection().files(_paths(argument)))

    def read() -> bool:
        with Progress("reading", total=len(files) or None) as bar:

            def show(event: IngestProgress) -> None:
                part = event.done / event.total if event.total else 0.0
                name = Path(event.path).name
                bar.update(f"{name}: {event.stage}", done=event.number - 1 + part)

            for result in documents.ingest(files, progress=show):
                about = result.error if result.status == "failed" else f"{result.chunks} passages"
                output.note(f"{result.status}: {result.path}, {about}")
        return True

    if terminal.interruptible(read) is None:
        output.note("what was read by then is kept; the same /doc goes on from there")
    refresh(chat)


def _named(documents: Documents, names: str) -> list[Document]:
    """The documents that are meant: one whose name may hold blanks, or one a word."""
    try:
        return [documents.get(names)]
    except NotFound:
        words = _words(names)
        if words == [names]:
            raise
        return [documents.get(word) for word in words]


def _paths(argument: str) -> list[Path]:
    """The paths that are meant, as a shell would read them; one path may hold blanks unquoted."""
    whole = expand(argument)
    if found := _matches(whole):
        return found
    paths = [expand(word) for word in _words(argument)]
    return [match for path in paths for match in _matches(path) or [path]]


def _matches(path: Path) -> list[Path]:
    """The path itself where there is one, else what it matches as a pattern."""
    if path.exists():
        return [path]
    return [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 -- absolute patterns too


def _words(text: str) -> list[str]:
    """Words, of which quoted ones may hold blanks."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def explain(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/explain``"""
    result = chat.last
    if result is None:
        output.note("the last answer was interrupted: nothing is known about it")
        return
    used = [
        *(_used(f"memory {hit.memory.id}", hit.memory.content, hit) for hit in result.memories),
        *(_used(f"session {turn.session_id}", turn.content, turn) for turn in result.turns),
        *(_used(_place(chunk), _short(chunk.content), chunk) for chunk in result.documents),
    ]
    if used:
        output.emit_records(
            used, json=False, columns=["used", "score", Column("text", flexible=True), "why"]
        )
    else:
        output.note("nothing was put before the model besides this conversation")
    for name, candidates in result.dropped.items():
        for candidate in candidates:
            output.note(f"left out of {name}: {output.show_value(candidate)}")
    for text in result.warnings:
        output.warn(text)


def _used(what: str, text: str, hit: Any) -> dict[str, Any]:
    why = ", ".join(
        f"{name} {output.show_value(value)}"
        for name, value in hit.explanation.items()
        if isinstance(value, int | float | str | bool)
    )
    return {"used": what, "score": hit.score, "text": text, "why": why}
