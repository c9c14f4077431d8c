"""Takes files in: read in a child process, stored whole or not at all, then embedded.

A file and its passages with their words are one transaction. Vectors follow in full batches that
may span files, so that a folder of notes is embedded as fast as one long book. Whatever stops an
ingest (Ctrl-C, a crash, no model), the missing vectors are made by the next one or by the worker.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal

from jarvis import log
from jarvis.ingest.chunker import Sizes, embedding_text
from jarvis.ingest.model import Reading, Unreadable
from jarvis.ingest.sandbox import Limits, Reader
from jarvis.retrieval import index
from jarvis.security.text import clean_line
from jarvis.services.document_files import STDIN_PREFIX, FileSource
from jarvis.services.document_vectors import EMBED_BATCH, Embedding
from jarvis.services.indexing import known_model
from jarvis.store import documents as store
from jarvis.store import vectors
from jarvis.types import Document

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.store.database import Connection

Status = Literal["added", "unchanged", "replaced", "renamed", "failed"]

DEFAULT_WINDOW = 512
"""Tokens assumed while the embedding model cannot be asked: the smallest in use."""

HASH_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of one file. ``pages`` is 0 for a file without pages."""

    path: str
    id: int | None
    status: Status
    pages: int = 0
    empty_pages: tuple[int, ...] = ()
    chunks: int = 0
    warnings: tuple[str, ...] = ()
    error: str | None = None
    elapsed_ms: float = 0.0
    hint: str = ""


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far one file is: ``done`` of ``total`` pages (reading) or passages (embedding)."""

    path: str
    number: int
    files: int
    stage: Literal["reading", "embedding"]
    done: int
    total: int


@dataclass(slots=True)
class _Stored:
    """A file that is settled but for its vectors."""

    number: int
    path: str
    result: IngestResult
    started: float
    waiting: deque[tuple[int, str]]
    embedded: int = 0


class Ingest:
    """One run over some files; see ``Documents.ingest``.

    Args:
        app: the services.
        files: what to take in.
        password: for encrypted PDFs.
        embed: make vectors now; otherwise the worker does.
        again: read files anew whose contents are stored already.
        progress: told how far a file is; called from the same thread.
    """

    def __init__(
        self,
        app: App,
        files: Sequence[FileSource],
        *,
        password: str | None,
        embed: bool,
        again: bool,
        progress: Callable[[IngestProgress], None],
    ) -> None:
        self.app = app
        self.files = files
        self.password = password
        self.again = again
        self.progress = progress
        self.embedding = Embedding(app) if embed else None
        self.queue: deque[_Stored] = deque()

    def run(self) -> Iterator[IngestResult]:
        """Yields what became of each file, in order."""
        finished = False
        try:
            with Reader(self._limits()) as reader:
                for number, source in enumerate(self.files, 1):
                    self.queue.append(self._take_in(reader, source, number))
                    yield from self._embed(whole=False)
            yield from self._embed(whole=True)
            finished = True
        finally:
            if not finished or self.embedding is None or self.embedding.left:
                self._wake_worker()

    # --- reading and storing ------------------------------------------------------------------

    def _take_in(self, reader: Reader, source: FileSource, number: int) -> _Stored:
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            self.progress(
                IngestProgress(source.path, number, len(self.files), "reading", done, total)
            )

        progress(0, 0)
        waiting: list[tuple[int, str]] = []
        try:
            if source.problem:
                raise Unreadable(source.problem)
            result = None if self.again else self._known(source, _sha256(source.file))
            if result is not None:
                waiting = self._missing(result)
            else:
                reading = reader.read(
                    source.file,
                    source.name,
                    self._sizes,
                    password=self.password,
                    progress=progress,
                )
                result, waiting = self._store(source, reading)
        except Unreadable as error:
            result = _failure(source, error)
        return _Stored(number, source.path, result, started, deque(waiting))

    def _known(self, source: FileSource, digest: str) -> IngestResult | None:
        """Settles a file whose contents are stored already; None: it has to be read."""
        user_id = self.app.user.id
        with self.app.database.transaction() as tx:
            store.lock(tx, user_id)
            document = store.find_by_content(tx, user_id, digest)
            return None if document is None else self._link(tx, source, document)

    def _missing(self, result: IngestResult) -> list[tuple[int, str]]:
        """Passages of a stored document without a vector: an earlier ingest was interrupted."""
        if self.embedding is None or self.embedding.failed or not result.chunks:
            return []
        with self.app.database.connection() as connection:
            # Asks no server: most files have all their vectors.
            model_id = known_model(self.app, vectors.models(connection))
            rows = store.without_vector(
                connection, self.app.user.id, model_id, result.chunks, result.id
            )
        return [(row.id, embedding_text(row.heading, row.content)) for row in rows]

    def _link(self, tx: Connection, source: FileSource, document: Document) -> IngestResult:
        """Makes the path of ``source`` lead to a stored document with the same contents."""
        user_id = self.app.user.id
        status: Status = "unchanged"
        warnings: list[str] = []
        before = store.find_by_path(tx, user_id, source.path)
        self._put_path(tx, source, document.id)
        if before is None:
            gone = [path for path in document.paths if not _exists(path)]
            if gone and len(gone) == len(document.paths):
                store.remove_paths(tx, user_id, gone)
                store.rename(tx, user_id, document.id, self._name(tx, source, document.id))
                status = "renamed"
                warnings.append(f"was {gone[0]}")
            elif document.paths:
                warnings.append(f"same contents as {document.paths[0]}")
        elif before.id != document.id:
            # The path held something else until now; without another path that is gone.
            if not self._left_behind(tx, before, source):
                store.delete(tx, user_id, [before.id])
            status = "replaced"
            warnings.append(f"same contents as {document.paths[0]}")
        return _result(source, document, status, warnings)

    def _store(
        self, source: FileSource, reading: Reading
    ) -> tuple[IngestResult, list[tuple[int, str]]]:
        """Stores a reading: the document, its path, its passages and their words, or nothing."""
        user_id = self.app.user.id
        with self.app.database.transaction() as tx:
            store.lock(tx, user_id)
            same = store.find_by_content(tx, user_id, reading.sha256)
            if same is not None and not self.again:  # another process was faster
                return self._link(tx, source, same), []
            before = same or store.find_by_path(tx, user_id, source.path)
            # Under another path the old contents may still be a file: then they stay.
            alone = before is not None and not (
                same is None and self._left_behind(tx, before, source)
            )
            if before is not None and (same is not None or alone):
                document_id = before.id
                store.replace(tx, user_id, document_id, self._new(tx, source, reading, before.id))
                if same is None:
                    store.remove_paths(tx, user_id, before.paths)
            else:
                document_id = store.add(tx, user_id, self._new(tx, source, reading, None))
            self._put_path(tx, source, document_id)
            ids = store.add_chunks(tx, user_id, document_id, _new_chunks(reading))
            texts = {
                chunk_id: embedding_text(passage.heading, passage.content)
                for chunk_id, passage in zip(ids, reading.passages, strict=True)
            }
            index.write_many_terms(tx, "chunk", user_id, texts)
            document = store.get(tx, user_id, document_id)
        assert document is not None  # noqa: S101 -- stored in this transaction
        warnings = (*reading.warnings, *_about_empty_pages(reading.empty_pages))
        status: Status = "added" if before is None else "replaced"
        return _result(source, document, status, warnings), list(texts.items())

    def _new(
        self, tx: Connection, source: FileSource, reading: Reading, document_id: int | None
    ) -> store.NewDocument:
        return store.NewDocument(
            name=self._name(tx, source, document_id),
            sha256=reading.sha256,
            media_type=reading.media_type,
            title=clean_line(reading.title),
            pages=len(reading.pages),
            empty_pages=reading.empty_pages,
            size_bytes=reading.size_bytes,
            details={
                "pages": [[page.start, page.end, page.label] for page in reading.pages],
                "warnings": [clean_line(warning) for warning in reading.warnings],
            },
        )

    def _name(self, tx: Connection, source: FileSource, document_id: int | None) -> str:
        """The file's name, with as many folders before it as tell it from other documents."""
        name = clean_line(source.name)
        parts = PurePath(source.path).parts
        for depth in range(2, len(parts)):
            others = store.find_by_name(tx, self.app.user.id, name)
            if source.from_stdin or all(other.id == document_id for other in others):
                break
            name = clean_line("/".join(parts[-depth:]))
        return name

    def _left_behind(self, tx: Connection, before: Document, source: FileSource) -> bool:
        """Whether a document still is a file elsewhere when ``source`` becomes something else.

        It was perhaps called after that path: then it is called after the other one from now on.
        """
        left = next((p for p in before.paths if p != source.path and _exists(p)), None)
        if left is None:
            return False
        if f"/{source.path}".endswith(f"/{before.name}"):
            # Its old name is the new document's: it must not tell itself from that one.
            store.rename(tx, self.app.user.id, before.id, "")
            name = PurePath(left).name.removeprefix(STDIN_PREFIX)
            other = FileSource(left, Path(left), name)
            store.rename(tx, self.app.user.id, before.id, self._name(tx, other, before.id))
        return True

    def _put_path(self, tx: Connection, source: FileSource, document_id: int) -> None:
        try:
            info = source.file.stat()
            modified, size = info.st_mtime_ns, info.st_size
        except OSError:  # it went away while it was read
            modified = size = 0
        store.put_path(tx, self.app.user.id, source.path, document_id, modified, size)

    # --- vectors ------------------------------------------------------------------------------

    def _embed(self, *, whole: bool) -> Iterator[IngestResult]:
        """Embeds what waits and yields the files that are settled by it, in their order.

        Batches go over the borders of files; with ``whole`` the last one may be smaller, without
        it what does not fill one waits for more files.
        """
        while True:
            while self.queue and not self.queue[0].waiting:
                yield self._settled(self.queue.popleft())
            if not self.queue:
                return
            if self.embedding is None or self.embedding.failed:
                for one in self.queue:
                    self._leave(one)
                continue
            if not whole and sum(len(one.waiting) for one in self.queue) < EMBED_BATCH:
                return
            self._embed_batch(self.embedding)

    def _embed_batch(self, embedding: Embedding) -> None:
        batch: dict[int, str] = {}
        touched: list[tuple[_Stored, int]] = []
        for one in self.queue:
            count = min(len(one.waiting), EMBED_BATCH - len(batch))
            batch |= dict(one.waiting.popleft() for _ in range(count))
            if count:
                touched.append((one, count))
        embedding.write(batch)
        for one, count in touched:
            if embedding.failed:
                self._warn(one)
            one.embedded += count
            total = one.embedded + len(one.waiting)
            self.progress(
                IngestProgress(
                    one.path, one.number, len(self.files), "embedding", one.embedded, total
                )
            )

    def _leave(self, one: _Stored) -> None:
        """Leaves the vectors of a file to the worker."""
        if one.waiting and self.embedding is not None:
            self.embedding.left = True
            self._warn(one)
        one.waiting.clear()

    def _warn(self, one: _Stored) -> None:
        assert self.embedding is not None  # noqa: S101 -- the callers have one
        warning = f"found by its words only until it is embedded: {self.embedding.failed}"
        if warning not in one.result.warnings:
            one.result = replace(one.result, warnings=(*one.result.warnings, warning))

    def _settled(self, one: _Stored) -> IngestResult:
        elapsed = round((time.perf_counter() - one.started) * 1000, 1)
        return replace(one.result, elapsed_ms=elapsed)

    def _wake_worker(self) -> None:
        try:
            self.app.wake_worker()
        except OSError as error:
            log.get("documents").warning("the worker could not be started: %s", error)

    @cached_property
    def _sizes(self) -> Sizes:
        settings = self.app.config.documents
        window = self.embedding.window() if self.embedding is not None else 0
        return Sizes(
            max(32, settings.chunk_tokens), settings.overlap_tokens, window or DEFAULT_WINDOW
        )

    def _limits(self) -> Limits:
        settings = self.app.config.documents
        return Limits(settings.timeout, settings.max_memory_mb, settings.max_text_mb)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(HASH_BLOCK):
                digest.update(block)
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror}") from error
    return digest.hexdigest()


def _exists(path: str) -> bool:
    return path.startswith(STDIN_PREFIX) or Path(path).is_file()


def _new_chunks(reading: Reading) -> list[store.NewChunk]:
    return [
        store.NewChunk(
            passage.ordinal,
            passage.page,
            passage.page_end,
            passage.page_label,
            passage.heading,
            passage.start,
            passage.end,
            passage.tokens,
            passage.content,
        )
        for passage in reading.passages
    ]


def _result(
    source: FileSource, document: Document, status: Status, warnings: Iterable[str]
) -> IngestResult:
    return IngestResult(
        path=source.path,
        id=document.id,
        status=status,
        pages=document.pages,
        empty_pages=document.empty_pages,
        chunks=document.chunks,
        warnings=tuple(clean_line(warning) for warning in warnings),
    )


def _failure(source: FileSource, error: Unreadable) -> IngestResult:
    return IngestResult(
        path=source.path,
        id=None,
        status="failed",
        pages=error.pages,
        empty_pages=tuple(range(1, error.pages + 1)),
        error=clean_line(error.reason),
        hint=error.hint,
    )


def _about_empty_pages(pages: Sequence[int]) -> list[str]:
    if not pages:
        return []
    shown = ", ".join(map(str, pages[:20])) + (", …" if len(pages) > 20 else "")
    return [f"no text on page{'' if len(pages) == 1 else 's'} {shown}"]
