"""Documents in the real database: whole or not at all, once, and gone when they are forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg import sql

from jarvis.config import Config, DatabaseSettings
from jarvis.errors import ModelUnavailable, NotFound, UsageError
from jarvis.paths import Paths
from jarvis.services import document_ingest
from jarvis.services.app import App
from jarvis.services.document_files import FileSource, Selection, stdin_source
from jarvis.services.document_ingest import IngestProgress, IngestResult
from jarvis.services.documents import Documents, embed_job
from jarvis.store import documents as store
from jarvis.store import upkeep
from jarvis.types import Document
from tests import documents as make


@pytest.fixture
def words_only(
    settings: DatabaseSettings, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    """Services without a model server: nothing listens where the embedder is looked for."""
    config = Config(
        user="tester",
        database=settings,
        embedding=replace(Config().embedding, provider="ollama", host="http://127.0.0.1:9"),
    )
    made = App(config, paths)
    monkeypatch.setattr(made, "wake_worker", lambda: None)
    yield made
    made.close()


@pytest.fixture
def documents(words_only: App) -> Documents:
    return Documents(words_only)


def files(*paths: Path) -> list[FileSource]:
    return list(Selection(recursive=True).files(list(paths)))


def take_in(documents: Documents, *paths: Path, password: str | None = None) -> list[IngestResult]:
    return list(documents.ingest(files(*paths), embed=False, password=password))


def statuses(results: Sequence[IngestResult]) -> list[str]:
    return [result.status for result in results]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


TABLES = ("documents", "document_paths", "chunks", "chunk_terms", "chunk_vectors")


def tables(documents: Documents) -> dict[str, int]:
    """Rows of every table that holds a document, of every document."""
    found = {}
    with documents.app.database.connection() as connection:
        for table in TABLES:
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            row = connection.execute(query).fetchone()
            assert row is not None
            found[table] = int(row[0])
    return found


def only(documents: Documents) -> Document:
    (document,) = documents.all()
    return document


def test_added_unchanged_replaced(documents: Documents, tmp_path: Path) -> None:
    note = write(tmp_path / "note.md", "# Key\n\nThe key is under the blue pot.")
    (added,) = take_in(documents, note)
    assert (added.status, added.chunks, added.pages, added.error) == ("added", 1, 0, None)
    before = tables(documents)
    assert statuses(take_in(documents, note)) == ["unchanged"]
    assert tables(documents) == before
    write(note, "# Key\n\nThe key is with the neighbour now.")
    (replaced,) = take_in(documents, note)
    assert (replaced.status, replaced.id) == ("replaced", added.id)
    assert tables(documents) == before
    assert "neighbour" in documents.text(only(documents))
    assert not [hit for hit in documents.search("blue pot", 5).hits if "blue" in hit.content]


def test_again_reads_what_did_not_change(documents: Documents, tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", make.paragraph(1, 30))
    two = write(tmp_path / "two.txt", make.paragraph(1, 30))
    (first, _) = take_in(documents, one, two)
    settings = replace(documents.app.config.documents, chunk_tokens=60)
    documents.app.config = replace(documents.app.config, documents=settings)
    assert statuses(take_in(documents, one)) == ["unchanged"]
    (again,) = documents.ingest(files(two), embed=False, again=True)
    assert (again.status, again.id) == ("replaced", first.id)
    assert again.chunks > first.chunks
    assert only(documents).paths == (str(one), str(two))
    assert documents.text(only(documents)) == make.paragraph(1, 30)


def test_a_second_path_is_an_alias(documents: Documents, tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", "the same words")
    two = write(tmp_path / "two.txt", "the same words")
    first, second = take_in(documents, one, two)
    assert (first.status, second.status) == ("added", "unchanged")
    assert first.id == second.id
    assert only(documents).paths == (str(one), str(two))


def test_a_moved_file_is_a_rename(documents: Documents, tmp_path: Path) -> None:
    old = write(tmp_path / "old.txt", "words that move")
    (added,) = take_in(documents, old)
    new = old.rename(tmp_path / "new.txt")
    (moved,) = take_in(documents, new)
    assert (moved.status, moved.id) == ("renamed", added.id)
    assert only(documents).paths == (str(new),)
    assert only(documents).name == "new.txt"


def test_a_changed_alias_leaves_the_other_path_its_words(
    documents: Documents, tmp_path: Path
) -> None:
    one, two = write(tmp_path / "one.txt", "shared"), write(tmp_path / "two.txt", "shared")
    take_in(documents, one, two)
    write(two, "different")
    (changed,) = take_in(documents, two)
    assert changed.status == "replaced"
    assert {document.paths for document in documents.all()} == {(str(one),), (str(two),)}
    write(two, "shared")
    assert statuses(take_in(documents, two)) == ["replaced"]
    assert only(documents).paths == (str(one), str(two))


def test_what_a_changed_file_leaves_behind_is_called_after_its_other_path(
    documents: Documents, tmp_path: Path
) -> None:
    one, two = write(tmp_path / "one.txt", "shared"), write(tmp_path / "two.txt", "shared")
    take_in(documents, one, two)
    write(one, "different")
    take_in(documents, one)
    names = {document.paths[0]: document.name for document in documents.all()}
    assert names == {str(one): "one.txt", str(two): "two.txt"}
    write(one, "shared")
    take_in(documents, one)
    assert (only(documents).name, only(documents).paths) == ("two.txt", (str(one), str(two)))


def test_same_names_in_two_folders_are_told_apart(documents: Documents, tmp_path: Path) -> None:
    write(tmp_path / "a/README.md", "first")
    write(tmp_path / "b/README.md", "second")
    take_in(documents, tmp_path)
    assert [document.name for document in documents.all()] == ["README.md", "b/README.md"]


def test_one_bad_file_never_stops_the_others(documents: Documents, tmp_path: Path) -> None:
    (tmp_path / "1.pdf").write_bytes(make.pdf(["Good words."]))
    (tmp_path / "2.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "3.pdf").write_bytes(make.pdf([make.image_page, make.image_page]))
    (tmp_path / "4.pdf").write_bytes(make.pdf(["secret"], encrypt=("owner", "sesame")))
    (tmp_path / "5.zip").write_bytes(make.zipped({"a": "b"}))
    write(tmp_path / "6.txt", "More words.")
    results = take_in(documents, tmp_path)
    assert statuses(results) == ["added", "failed", "failed", "failed", "failed", "added"]
    scan = results[2]
    assert scan.pages == 2
    assert scan.empty_pages == (1, 2)
    assert "2 pages" in (scan.error or "")
    assert "--password" in results[3].hint
    assert "ZIP archive" in (results[4].error or "")
    assert tables(documents)["documents"] == 2
    (opened,) = take_in(documents, tmp_path / "4.pdf", password="sesame")
    assert opened.status == "added"


def test_pages_labels_and_warnings(documents: Documents, tmp_path: Path) -> None:
    path = tmp_path / "mixed.pdf"
    path.write_bytes(make.pdf(["Page one.", make.image_page, "Page three."]))
    (result,) = take_in(documents, path)
    assert (result.pages, result.empty_pages) == (3, (2,))
    assert "no text on page 2" in result.warnings
    document = only(documents)
    assert documents.text(document, 3) == "Page three."
    assert documents.text(document, 2) == ""
    assert documents.text(document) == "Page one.\n\nPage three."
    with pytest.raises(NotFound, match="has no page 4: it has 3 pages"):
        documents.text(document, 4)


def test_a_page_is_the_same_text_however_it_was_cut(documents: Documents, tmp_path: Path) -> None:
    pages = [make.paragraph(n, 60) for n in range(3)]
    path = tmp_path / "long.txt"
    path.write_text("\f".join(pages))
    take_in(documents, path)
    assert [documents.text(only(documents), n) for n in (1, 2, 3)] == pages


def test_hostile_text_is_stored_and_found(documents: Documents, tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes("line\x00 one heliotrope \ue000 \u202eabc \U000e0041\n[/] :smile:".encode())
    take_in(documents, path)
    text = documents.text(only(documents))
    assert "heliotrope" in text
    assert "[/] :smile:" in text
    assert not {"\x00", "\u202e", "\U000e0041"} & set(text)
    assert documents.search("heliotrope", 3).hits


def test_stdin_by_its_name(documents: Documents, tmp_path: Path) -> None:
    spool = write(tmp_path / "spool", "first version")
    source = stdin_source("notes.md", spool)
    assert statuses(list(documents.ingest([source], embed=False))) == ["added"]
    write(spool, "second version")
    assert statuses(list(documents.ingest([source], embed=False))) == ["replaced"]
    assert documents.get("notes.md").paths == ("stdin:notes.md",)


def test_nothing_of_a_document_is_stored_when_it_breaks_off(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = write(tmp_path / "note.md", "old words")
    take_in(documents, note)
    before = tables(documents)
    write(note, "new words")
    write(tmp_path / "other.md", "other words")

    def broken(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("jarvis.retrieval.index.write_many_terms", broken)
    for path in (note, tmp_path / "other.md"):
        with pytest.raises(RuntimeError):
            take_in(documents, path)
    assert tables(documents) == before
    assert documents.text(only(documents)) == "old words"
    monkeypatch.undo()
    assert statuses(take_in(documents, note, tmp_path / "other.md")) == ["replaced", "added"]


def test_two_processes_at_once_store_one(documents: Documents, tmp_path: Path) -> None:
    note = write(tmp_path / "note.md", make.paragraph(1, 30))
    results: list[str] = []

    def run() -> None:
        results.extend(statuses(take_in(documents, note)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["added", "unchanged", "unchanged", "unchanged"]
    assert tables(documents)["documents"] == 1


CLAUSES = (
    "Scope Definitions Fees Payment Delivery Confidentiality Termination Liability Warranty "
    "Insurance Law Notices Assignment Force Audit Data Security Staff Disputes Waiver"
).split()


def contract() -> str:
    """Twenty clauses that name each other."""
    parts = [
        f"## Clause {n}. {name}\n\n{make.paragraph(n * 3, 8)} See also clause {n * 3 % 20 + 1}."
        for n, name in enumerate(CLAUSES, 1)
    ]
    return "# Service Agreement\n\n" + "\n\n".join(parts)


def test_without_a_model_a_clause_is_found_by_its_number(
    documents: Documents, tmp_path: Path
) -> None:
    note = write(tmp_path / "contract.md", contract())
    (result,) = list(documents.ingest(files(note)))
    assert result.status == "added"
    assert "found by its words only" in result.warnings[-1]
    for number in (7, 12, 20):
        found = documents.search(f"What does clause {number} say?", 3)
        assert "words only" in found.notes[0]
        assert f"Clause {number}." in found.hits[0].heading
        assert found.hits[0].content.startswith(f"## Clause {number}. ")
    assert embed_job().pending(documents.app) == result.chunks
    with pytest.raises(ModelUnavailable):
        embed_job().run_once(documents.app, lambda: False)


def test_names_ids_and_paths(documents: Documents, tmp_path: Path) -> None:
    note = write(tmp_path / "Note.md", "words")
    take_in(documents, note)
    document = only(documents)
    for name in (str(document.id), "note.MD", str(note)):
        assert documents.get(name).id == document.id
    with pytest.raises(NotFound, match="99"):
        documents.get("99")
    one, two = write(tmp_path / "x/a.txt", "one"), write(tmp_path / "y/a.txt", "two")
    take_in(documents, one)
    (second,) = take_in(documents, two)
    assert documents.get("y/a.txt").id == second.id
    with documents.app.database.transaction() as tx:
        store.rename(tx, documents.app.user.id, second.id or 0, "a.txt")
    with pytest.raises(UsageError, match=r"several documents are called a\.txt"):
        documents.get("a.txt")


def test_forget_leaves_nothing(documents: Documents, tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", make.paragraph(1, 60))
    keep = write(tmp_path / "b.txt", "Heliotrope is a colour.")
    take_in(documents, path, keep)
    document = documents.get(str(path))
    user_id = documents.app.user.id
    with documents.app.database.transaction() as tx:
        upkeep.recount(tx, "chunk", user_id)
    done = documents.forget([document])
    assert done.verified
    with documents.app.database.connection() as connection:
        counted = connection.execute(
            "SELECT total FROM term_statistics WHERE user_id = %s AND kind = 'chunk'", (user_id,)
        ).fetchall()
    assert counted in ([], [(1,)]), "counted again at once, or no longer ahead"
    assert done.rows["documents"] == 1
    assert done.rows["chunks"] == done.rows["chunk_terms"] == document.chunks > 1
    assert tables(documents) == {
        "documents": 1,
        "document_paths": 1,
        "chunks": 1,
        "chunk_terms": 1,
        "chunk_vectors": 0,
    }
    assert path.exists()
    with pytest.raises(NotFound):
        documents.get(str(document.id))
    (again,) = take_in(documents, path)
    assert again.status == "added"
    assert (again.id or 0) > document.id, "ids are never given twice"


def test_documents_of_others_are_out_of_reach(documents: Documents, tmp_path: Path) -> None:
    note = write(tmp_path / "note.md", "mine")
    take_in(documents, note)
    other = App(replace(documents.app.config, user="somebody"), documents.app.paths)
    with other.database.transaction() as tx:
        from jarvis.store import users

        users.ensure(tx, "somebody")
    theirs = Documents(other)
    assert theirs.all() == []
    with pytest.raises(NotFound):
        theirs.get("1")
    assert not theirs.search("mine", 5).hits
    other.close()


def test_vectors_in_batches_over_files_and_later_by_the_worker(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "wake_worker", lambda: None)
    monkeypatch.setattr(document_ingest, "EMBED_BATCH", 4)
    documents = Documents(app)
    for number in range(5):
        write(tmp_path / f"{number}.md", f"The {make.WORDS[number]} stands in garden {number}.")
    seen: list[IngestProgress] = []
    first = files(tmp_path / "0.md", tmp_path / "1.md")
    assert statuses(list(documents.ingest(first, embed=False))) == ["added", "added"]
    assert tables(documents)["chunk_vectors"] == 0
    # An ingest that goes on makes the vectors that an earlier one did not.
    results = list(documents.ingest(files(tmp_path), progress=seen.append))
    assert statuses(results) == ["unchanged"] * 2 + ["added"] * 3
    assert tables(documents)["chunk_vectors"] == 5
    assert [event.done for event in seen if event.stage == "embedding"] == [1] * 5
    hit = documents.search("a lamp in the garden", 1).hits[0]
    assert "lantern" in hit.content
    assert hit.similarity is not None

    write(tmp_path / "late.md", "The ferry leaves at nine.")
    list(documents.ingest(files(tmp_path / "late.md"), embed=False))
    job = embed_job()
    assert job.pending(app) == 1
    assert job.run_once(app, lambda: False) == 1
    assert job.pending(app) == 0
    assert tables(documents)["chunk_vectors"] == 6
