"""Documents: taken in, listed, shown, searched, forgotten."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from jarvis.errors import DocumentUnreadable, ModelUnavailable, NotFound, UsageError
from jarvis.paths import expand, private_folder
from jarvis.retrieval import index
from jarvis.security.text import clean
from jarvis.services import completions
from jarvis.services.document_files import FileSource, stdin_source
from jarvis.services.document_vectors import embed_job
from jarvis.services.forget import bar_answers
from jarvis.store import documents as store
from jarvis.store import forgetting
from jarvis.types import ChunkHit, Document, Filters

if TYPE_CHECKING:
    from jarvis.retrieval import Results
    from jarvis.services.app import App
    from jarvis.services.document_ingest import IngestProgress, IngestResult

__all__ = ["Documents", "Forgotten", "embed_job", "spooled"]

STDIN_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went with documents.

    Attributes:
        documents: what they were.
        rows: how many rows went, by table.
        verified: nothing of them is left in any table and no search finds them.
        barred: the answers that were given their passages: no search and no prompt has them now.
    """

    documents: tuple[Document, ...]
    rows: dict[str, int]
    verified: bool
    barred: tuple[int, ...] = ()


class Documents:
    """The documents of one user.

    Args:
        app: the services.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    def ingest(
        self,
        files: Sequence[FileSource],
        *,
        password: str | None = None,
        embed: bool = True,
        again: bool = False,
        progress: Callable[[IngestProgress], None] = lambda _: None,
    ) -> Iterator[IngestResult]:
        """Takes files in and yields what became of each, in order.

        One file that cannot be read never stops the others: its result says why. Closing the
        iterator stops; what was stored by then stays and is embedded later.

        Args:
            files: what to take in.
            password: for encrypted PDFs.
            embed: make vectors now; otherwise the worker does.
            again: read files anew whose contents are stored already (other settings, a newer
                version of Jarvis).
            progress: told how far the current file is.

        Raises:
            DatabaseUnavailable: the database cannot be used.
        """
        from jarvis.services.document_ingest import Ingest

        run = Ingest(
            self.app, files, password=password, embed=embed, again=again, progress=progress
        )
        for result in run.run():
            if result.status not in {"failed", "unchanged"}:
                completions.purge(self.app.paths)
            yield result

    def all(self) -> list[Document]:
        """All documents, in the order of their ids."""
        with self.app.database.connection() as connection:
            return store.everything(connection, self._reader_id())

    def get(self, name: str) -> Document:
        """The document that ``name`` means: its id, a path, or its name.

        Raises:
            NotFound: there is none.
            UsageError: several have that name.
        """
        user_id = self._reader_id()
        with self.app.database.connection() as connection:
            if name.isascii() and name.isdigit() and len(name) < 18:
                found = store.get(connection, user_id, int(name))
                if found is not None:
                    return found
            path = clean(str(expand(name).absolute()))
            found = store.find_by_path(connection, user_id, path)
            named = [found] if found else store.find_by_name(connection, user_id, clean(name))
        if len(named) > 1:
            ids = ", ".join(str(document.id) for document in named)
            raise UsageError(f"several documents are called {name}: {ids}", "give the id")
        if not named:
            raise NotFound(f"there is no document {name}", "jarvis doc list")
        return named[0]

    def text(self, document: Document, page: int | None = None) -> str:
        """The text of a document or of one of its pages (counted from 1).

        Raises:
            NotFound: it has no such page.
        """
        user_id = self._reader_id()
        with self.app.database.connection() as connection:
            if page is None:
                return _joined(store.chunks(connection, user_id, document.id))
            pages = store.details(connection, user_id, document.id).get("pages", [])
            if not 1 <= page <= len(pages):
                count = f"{document.pages} pages" if document.pages else "no pages"
                raise NotFound(
                    f"{document.name} has no page {page}: it has {count}",
                    f"jarvis doc show {document.id}",
                )
            chunks = store.chunks(connection, user_id, document.id, page)
        return _joined(chunks, pages[page - 1][0], pages[page - 1][1])

    def details(self, document: Document) -> dict[str, Any]:
        """The ``warnings`` of its reading and the places of its ``pages`` (start, end, label)."""
        with self.app.database.connection() as connection:
            return store.details(connection, self._reader_id(), document.id)

    def search(
        self,
        query: str,
        limit: int,
        document: Document | None = None,
        *,
        min_similarity: float | None = None,
        explain: bool = False,
    ) -> Results[ChunkHit]:
        """Finds passages by meaning and by words, best first; by words alone without a model.

        Args:
            query: what to look for.
            limit: hits at most.
            document: only in this one.
            min_similarity: the cosine that a hit must reach; None: the calibrated gate.
            explain: keep every term of the scores.
        """
        from jarvis.retrieval import Query

        words = clean(query).strip()
        user_id = self._reader_id()
        vector = model = None
        notes: tuple[str, ...] = ()
        try:
            vector, model = self.app.embedder().embed_query(words), self.app.embedding_model()
        except ModelUnavailable as error:
            notes = (f"searching by words only: {error.message}",)
        found = self.app.retriever.chunks(
            user_id,
            Query(words, vector, datetime.now(UTC)),
            model,
            filters=Filters(document_id=document.id if document else None),
            limit=limit,
            min_similarity=min_similarity,
            explain=explain,
        )
        return replace(found, notes=(*notes, *found.notes))

    def forget(self, documents: Sequence[Document], *, with_answers: bool = False) -> Forgotten:
        """Removes documents with all that was made of them, and looks whether they are gone.

        The files themselves stay. So do the answers that were given their passages, for reading
        in their session: no search and no prompt reaches them any more.

        Args:
            with_answers: the words of these answers go, too.
        """
        user_id = self.app.user.id
        ids = [document.id for document in documents]
        with self.app.database.transaction() as tx:
            store.lock(tx, user_id)
            chunks = [chunk for i in ids for chunk in store.chunks(tx, user_id, i)]
            answers = forgetting.answers_given(tx, user_id, ids, [chunk.id for chunk in chunks])
            barred, counted = bar_answers(tx, user_id, answers, redacted=with_answers)
            rows = store.delete(tx, user_id, ids) | {k: n for k, n in counted.items() if n}
            index.recount(tx, "chunk", user_id)
            if answers:
                index.recount(tx, "turn", user_id)
        completions.purge(self.app.paths)
        if answers:
            with contextlib.suppress(OSError):
                self.app.wake_worker()  # for the summaries and titles
        with self.app.database.connection() as connection:
            left = store.remains(connection, user_id, [chunk.id for chunk in chunks])
            left += sum(store.rows(connection, user_id, ids).values())
            left += sum(forgetting.count_message_rows(connection, user_id, answers).values())
        sample = chunks[:: max(1, len(chunks) // 3)][:3]
        found = any(
            hit.document_id in ids
            for chunk in sample
            for hit in self._by_words(chunk.content[:200])
        )
        return Forgotten(tuple(documents), rows, not left and not found, tuple(barred))

    def _by_words(self, text: str) -> Sequence[ChunkHit]:
        from jarvis.retrieval import Query

        query = Query(text, None, datetime.now(UTC))
        return self.app.retriever.chunks(self.app.user.id, query, None, limit=10, gate=False).hits

    def _reader_id(self) -> int:
        return self.app.existing_user().id


@contextlib.contextmanager
def spooled(app: App, stream: BinaryIO, name: str) -> Iterator[FileSource]:
    """What ``stream`` holds, as a file that lasts as long as the block.

    Raises:
        DocumentUnreadable: it is larger than a document may be.
    """
    most = app.config.documents.max_memory_mb * 1024 * 1024 // 2
    folder = private_folder(app.paths.cache)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="stdin-") as file:
        size = 0
        while block := stream.read(STDIN_BLOCK):
            size += len(block)
            if size > most:
                raise DocumentUnreadable(
                    f"stdin holds more than {most // (1024 * 1024)} MiB",
                    "raise documents.max_memory_mb",
                )
            file.write(block)
        file.flush()
        yield stdin_source(name or "stdin", Path(file.name))


def _joined(chunks: Sequence[store.Chunk], start: int = 0, end: int | None = None) -> str:
    """The text that passages cover between two places; what they share stands once."""
    parts: list[str] = []
    place = start
    for chunk in chunks:
        begin = max(place, chunk.start)
        stop = chunk.end if end is None else min(chunk.end, end)
        if stop <= begin:
            continue
        if begin > place and parts:
            parts.append("\n\n")  # only white space stands between two passages
        parts.append(chunk.content[begin - chunk.start : stop - chunk.start])
        place = stop
    return "".join(parts)
