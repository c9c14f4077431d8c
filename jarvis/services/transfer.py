"""Export and import of what a user owns, as NDJSON: one record a line, its ``kind`` first.

Exporting, wiping, importing and exporting again gives the same bytes. An export names no user,
no machine and no time of its own. An import keeps ids and gives a new one only where another
row has it already; links follow. It is one transaction: a file with a bad line, a full disk or
a kill leaves everything as it was. What is there already stays; what was forgotten comes back,
since the user asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jarvis.errors import UsageError
from jarvis.security import held
from jarvis.security.text import clean_deep, clean_line
from jarvis.services import memory
from jarvis.store import memories, tombstones, transfer
from jarvis.store.transfer import BadRow, Table
from jarvis.types import MemorySource, MemoryState, MemoryType, WorkState

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection

FORMAT = 1
HEADER = "jarvis"
LARGEST_ID = 2**53 - 1
"""Ids above that are not the same number in every JSON reader."""

_KINDS: Mapping[str, Table] = {
    "session": "sessions",
    "message": "messages",
    "memory": "memories",
    "document": "documents",
    "path": "document_paths",
    "chunk": "chunks",
    "tombstone": "tombstones",
}
"""In the order in which they are written: what is referred to comes first."""

_RENAMED = {"valid_from": "valid_from_at", "valid_to": "valid_to_at"}
"""Columns of memories that have another name in every JSON record."""

_LINKS: Mapping[str, tuple[tuple[str, Table], ...]] = {
    "sessions": (("summary_message_id", "messages"), ("closed_message_id", "messages")),
    "messages": (("session_id", "sessions"), ("reply_to", "messages")),
    "memories": (
        ("session_id", "sessions"),
        ("message_id", "messages"),
        ("superseded_by", "memories"),
    ),
    "documents": (),
    "document_paths": (("document_id", "documents"),),
    "chunks": (("document_id", "documents"),),
}


# --- export ------------------------------------------------------------------------------------


def export_memories(app: App) -> Iterator[str]:
    """The user's memories, in every state, one line each, after a line that says what this is."""
    user = app.existing_user()
    yield _line({"kind": HEADER, "format": FORMAT, "content": "memories"})
    with app.database.transaction() as tx:
        for row in transfer.rows(tx, user.id, "memories"):
            yield _record("memory", row)


def export_everything(app: App) -> Iterator[str]:
    """Everything that the user owns, as of one moment."""
    user = app.existing_user()
    yield _line({"kind": HEADER, "format": FORMAT, "content": "everything"})
    with app.database.transaction() as tx:
        transfer.one_moment(tx)
        buried = list(transfer.rows(tx, user.id, "tombstones"))
        if buried:
            yield _line({"kind": "tombstone_key", "key": transfer.tombstone_key(tx, user.id)})
        for kind, table in _KINDS.items():
            rows = buried if kind == "tombstone" else transfer.rows(tx, user.id, table)
            for row in rows:
                yield _record(kind, row)


def _record(kind: str, row: Mapping[str, Any]) -> str:
    return _line({"kind": kind} | {_RENAMED.get(name, name): row[name] for name in row})


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


# --- import ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Imported:
    """What an import did, by kind.

    ``added`` are new rows, ``known`` were there already, ``merged`` are memories whose words
    were there under another id, ``renumbered`` got a new id. ``dry`` means: nothing was stored.
    """

    added: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    merged: int = 0
    renumbered: int = 0
    notes: list[str] = field(default_factory=list)
    dry: bool = False


class _DryRun(Exception):
    """Undoes the transaction of a dry run."""


def import_lines(app: App, lines: Iterable[str], *, dry_run: bool = False) -> Imported:
    """Imports an export, records of ``memory list --json``, or plain text: one fact a line.

    Raises:
        UsageError: a line cannot be used; it is named, and nothing was stored.
    """
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise UsageError("there is nothing to import", "jarvis export writes such a file")
    user_id = app.user.id
    result = Imported(dry=dry_run)
    try:
        with app.database.transaction() as tx:
            if numbered[0][1].lstrip("\ufeff").lstrip().startswith("{"):
                _Import(tx, user_id, result).run(numbered)
            else:
                _plain(tx, user_id, numbered, result, hold=app.config.memory.hold_secrets)
            if dry_run:
                raise _DryRun
    except _DryRun:
        return result
    app.wake_worker()
    return result


def _plain(
    tx: Connection,
    user_id: int,
    numbered: Iterable[tuple[int, str]],
    result: Imported,
    *,
    hold: bool,
) -> None:
    """Stores a fact a line. Nobody can be asked about a secret here: it waits in the review."""
    waiting = 0
    for _, line in numbered:
        if not clean_line(line):
            continue
        new = memory.describe(line, source=MemorySource.IMPORT)
        why = held.secret(line) if hold else ""
        if why:
            new = memory.hold(new, why)
        else:
            tombstones.unbury(tx, user_id, memories.content_hash(new.content))
        added = memory.store(tx, user_id, new)
        _count(result.added if added.created else result.known, "memory")
        waiting += bool(why) and added.created
    if waiting:
        what = "line looks" if waiting == 1 else "lines look"
        result.notes.append(f"{waiting} {what} like a secret and wait: jarvis memory review")


def _count(counts: dict[str, int], kind: str) -> None:
    counts[kind] = counts.get(kind, 0) + 1


class _Import:
    """One import: ids that changed, and the rows whose links have to wait for the end."""

    def __init__(self, tx: Connection, user_id: int, result: Imported) -> None:
        self.tx = tx
        self.user_id = user_id
        self.result = result
        self.ids: dict[str, dict[int, int]] = {table: {} for table in transfer.COUNTERS}
        self.texts: dict[str, dict[int, str]] = {"memories": {}, "messages": {}, "chunks": {}}
        self.skipped_documents: set[int] = set()
        self.keeps_tombstones = False

    def run(self, numbered: Iterable[tuple[int, str]]) -> None:
        """Reads all lines, then stores them in the order of their kinds."""
        records: dict[str, list[tuple[int, dict[str, Any]]]] = {kind: [] for kind in _KINDS}
        for number, line in numbered:
            record = _parse(number, line)
            kind = record.pop("kind", "memory")
            if kind == HEADER:
                _check_format(number, record)
            elif kind == "tombstone_key":
                self._adopt_key(number, record)
            elif isinstance(kind, str) and kind in records:
                _check_links(number, kind, record)
                records[kind].append((number, record))
            else:
                raise _bad(number, f"there are no records of kind {str(kind)[:40]!r}")
        self._plan(records)
        for kind, table in _KINDS.items():
            for number, record in records[kind]:
                try:
                    self._store(kind, table, number, record)
                except BadRow as error:
                    raise _bad(number, str(error)) from error
        self._index()

    # Ids are settled first, so that links to rows further down are right at once.
    def _plan(self, records: Mapping[str, list[tuple[int, dict[str, Any]]]]) -> None:
        for kind, table in _KINDS.items():
            if table not in transfer.COUNTERS:
                continue
            taken: set[int] = set()
            rows = records[kind]
            largest = max((_id(number, row) for number, row in rows if "id" in row), default=0)
            if largest:
                transfer.raise_counter(self.tx, self.user_id, table, largest)
            for number, row in rows:
                if kind == "memory":
                    _check_memory(number, row)
                old = _id(number, row) if "id" in row else None
                if old is None or old in taken:
                    row["id"] = transfer.next_id(self.tx, self.user_id, table)
                    if old is not None:
                        raise _bad(number, f"id {old} is in the file twice")
                    continue
                taken.add(old)
                self.ids[table][old] = self._place(kind, table, old, row)

    def _place(self, kind: str, table: Table, old: int, row: Mapping[str, Any]) -> int:
        """The id under which a row will be: its own, an equal row's, or a new one."""
        if kind == "document":
            same = transfer.document_with(self.tx, self.user_id, str(row.get("sha256", "")))
            if same is not None:
                self.skipped_documents.add(old)
                return same
        if kind == "memory":
            twin = self._twin(row)
            if twin is not None:
                return twin
        existing = transfer.find(self.tx, self.user_id, table, old)
        if existing is None or _same(kind, existing, row):
            return old
        self.result.renumbered += 1
        return transfer.next_id(self.tx, self.user_id, table)

    def _twin(self, row: Mapping[str, Any]) -> int | None:
        """The active memory that says the same, which may have another id."""
        if row.get("state", "active") != MemoryState.ACTIVE:
            return None
        digest = memories.content_hash(str(row["content"]))
        twin = memories.find_by_hash(self.tx, self.user_id, digest)
        return twin.id if twin is not None else None

    def _store(self, kind: str, table: Table, number: int, record: dict[str, Any]) -> None:
        row = {_column(name): value for name, value in record.items()}
        if table == "chunks" and row.get("document_id") in self.skipped_documents:
            _count(self.result.known, kind)
            return
        for name, target in _LINKS.get(table, ()):
            if row.get(name) is not None:
                row[name] = self.ids[target].get(row[name], row[name])
        if table in transfer.COUNTERS:
            old = row["id"]
            row["id"] = self.ids[table].get(old, old)
        if table == "tombstones" and not self.keeps_tombstones:
            return
        if kind == "memory":
            self._prepare_memory(row, old)
            if self._merged(row, old):
                return
        if transfer.insert(self.tx, self.user_id, table, row):
            _count(self.result.added, kind)
            if table in self.texts:
                self._remember_text(table, row)
        elif table == "messages" and transfer.find(self.tx, self.user_id, table, row["id"]) is None:
            raise _bad(number, "its session is neither in the file nor stored")
        else:
            _count(self.result.known, kind)

    def _prepare_memory(self, row: dict[str, Any], old: int) -> None:
        digest = memories.content_hash(row["content"])
        row["content_hash"] = "\\x" + digest.hex()
        row["check_state"] = WorkState.DONE if old in self.ids["memories"] else WorkState.PENDING
        row.setdefault("state", MemoryState.ACTIVE)
        row.setdefault("source", MemorySource.IMPORT)
        guess = memory.describe(row["content"])
        row.setdefault("type", guess.type)
        row.setdefault("category", guess.category)
        row.setdefault("importance", guess.importance)
        row.setdefault("confidence", 1.0)
        if row["state"] == MemoryState.ACTIVE:
            tombstones.unbury(self.tx, self.user_id, digest)

    def _merged(self, row: Mapping[str, Any], old: int) -> bool:
        """Whether the memory is there already, under this id or another."""
        existing = transfer.find(self.tx, self.user_id, "memories", row["id"])
        if existing is None:
            return False
        if row["id"] == old:
            _count(self.result.known, "memory")
        else:
            self.result.merged += 1
        return True

    def _remember_text(self, table: str, row: Mapping[str, Any]) -> None:
        if table == "messages" and (row.get("barred") or row.get("role") == "tool"):
            return
        if table == "memories" and row["state"] not in {MemoryState.ACTIVE, MemoryState.SUPERSEDED}:
            return
        self.texts[table][row["id"]] = str(row.get("content", ""))

    def _index(self) -> None:
        """Words at once, in this transaction; vectors follow by the worker."""
        from jarvis.retrieval import index
        from jarvis.store.vectors import Kind

        kinds: dict[str, Kind] = {"memories": "memory", "messages": "turn", "chunks": "chunk"}
        for table, kind in kinds.items():
            if self.texts[table]:
                index.write_many_terms(self.tx, kind, self.user_id, self.texts[table])

    def _adopt_key(self, number: int, record: Mapping[str, Any]) -> None:
        try:
            key = str(record.get("key", ""))
            self.keeps_tombstones = transfer.adopt_tombstone_key(self.tx, self.user_id, key)
        except BadRow as error:
            raise _bad(number, str(error)) from error
        if not self.keeps_tombstones:
            self.result.notes.append(
                "what was forgotten there cannot be known here: the keys differ"
            )


def _bad(number: int, why: str) -> UsageError:
    return UsageError(f"line {number}: {why}", "nothing was imported; mend or remove the line")


def _parse(number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise _bad(number, f"this is no JSON object ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise _bad(number, "this is no JSON object")
    try:
        cleaned = clean_deep(value)
    except RecursionError:
        raise _bad(number, "this is nested too deep") from None
    assert isinstance(cleaned, dict)  # noqa: S101 -- an object stays one
    return cleaned


def _check_format(number: int, record: Mapping[str, Any]) -> None:
    if record.get("format") != FORMAT:
        raise _bad(number, "this export was written by another version")


def _id(number: int, row: Mapping[str, Any]) -> int:
    value = row["id"]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST_ID:
        raise _bad(number, "its id is no positive number")
    return value


def _check_links(number: int, kind: str, row: Mapping[str, Any]) -> None:
    for name, _ in _LINKS.get(_KINDS[kind], ()):
        value = row.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise _bad(number, f"its {name} is no number")


def _check_memory(number: int, row: dict[str, Any]) -> None:
    content = row.get("content")
    if not isinstance(content, str) or not clean_line(content):
        raise _bad(number, "a memory needs content")
    for name, kinds in (("type", MemoryType), ("state", MemoryState), ("source", MemorySource)):
        if name in row and row[name] not in [kind.value for kind in kinds]:
            raise _bad(number, f"there is no {name} {str(row[name])[:40]!r}")


def _column(name: str) -> str:
    return next((column for column, shown in _RENAMED.items() if shown == name), name)


def _same(kind: str, existing: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a stored row is the one in the file: the same words, written at the same time."""
    names = {
        "session": ("created_at",),
        "message": ("content", "created_at", "role"),
        "memory": ("content", "state"),
        "document": ("sha256",),
        "chunk": ("content", "document_id", "ordinal"),
    }[kind]
    return all(existing.get(name) == row.get(name, existing.get(name)) for name in names)
