"""Documents, measured: what is read, how fast, and whether the right page is found.

    python -m tests.bench.documents files DATA     one line a file of DATA/pdfs and DATA/texts
    python -m tests.bench.documents speed DATA     pages a second, extraction alone
    python -m tests.bench.documents questions      right page first, over a book of 300 pages
    python -m tests.bench.documents throughput     an ingest against the engine by itself

DATA holds ``pdfs/expect.json`` and ``texts/expect.json``: what a good reader does with each file.
Where it is absent, this says so and ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jarvis.config import Config
from jarvis.ingest.chunker import embedding_text
from jarvis.ingest.extract import extract
from jarvis.ingest.model import Source
from jarvis.paths import Paths
from jarvis.services.app import App
from jarvis.services.document_files import Selection
from jarvis.services.documents import Documents
from jarvis.store import documents as store
from tests.bench.book import QUESTIONS, book

SECONDS_A_FILE = 10.0
"""A normal file that takes longer counts as a hang."""


@dataclass
class Tally:
    """What the expectations came to."""

    met: int = 0
    files: int = 0
    phrases: int = 0
    found: int = 0
    missed: int = 0


def folded(text: str) -> str:
    """As phrases are compared: NFKC, white space as one blank."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text))


@contextlib.contextmanager
def services() -> Iterator[App]:
    """Jarvis with a database and an engine of its own, gone afterwards."""
    from jarvis import postgres
    from jarvis.engine import launcher

    models = Paths.from_environment().models
    with tempfile.TemporaryDirectory(prefix="jb", ignore_cleanup_errors=True) as home:
        paths = Paths.from_environment({"JARVIS_HOME": home, "JARVIS_MODELS": str(models)})
        config = Config(
            user="bench",
            embedding=replace(Config().embedding, provider="embedded"),
            documents=replace(Config().documents, timeout=SECONDS_A_FILE),
        )
        app = App(config, paths)
        app.__dict__["wake_worker"] = lambda: None
        try:
            yield app
        finally:
            app.close()
            launcher.stop(paths)
            postgres.remove(paths)


def files(data: Path) -> int:
    """One line a file: what became of it, and whether that was right."""
    tally = Tally()
    with services() as app:
        documents = Documents(app)
        documents.all()  # starts the database
        for folder in ("pdfs", "texts"):
            for entry in json.loads((data / folder / "expect.json").read_text()):
                judge(documents, data / folder / entry["file"], entry, tally)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    share = tally.found / max(1, tally.phrases)
    print(
        f"\n{tally.met} of {tally.files} files as expected;"
        f" phrases that pdfium can get on their page: {tally.found} of {tally.phrases}"
        f" ({share:.1%}); other phrases missed: {tally.missed};"
        f" peak memory of the parent {peak:.0f} MiB"
    )
    return 0 if tally.met == tally.files and share >= 0.95 and peak <= 300 else 1


def judge(documents: Documents, path: Path, entry: dict[str, Any], tally: Tally) -> None:
    """Takes one file in, compares, prints a line, and forgets it."""
    started = time.perf_counter()
    sources = list(Selection().files([path]))
    problems = []
    (first,) = documents.ingest(sources, embed=False)
    result = first
    if entry["expect"] == "needs_password":
        if "password" not in (first.error or ""):
            problems.append("opened without its password")
        (result,) = documents.ingest(sources, embed=False, password=entry["password"])
    seconds = time.perf_counter() - started
    stored = result.status != "failed"
    if stored != (result.id is not None) or partial(documents, result.id):
        problems.append("partial rows")
    if "reader" in (result.error or ""):
        problems.append("a crash or traceback of the reader")
    if seconds > SECONDS_A_FILE + 1:
        problems.append("hangs")
    problems += expectation(entry["expect"], result, stored)
    if stored and result.id is not None:
        document = documents.get(str(result.id))
        problems += phrases(documents, document, entry, tally)
        if entry.get("pages") and document.pages and document.pages != entry["pages"]:
            problems.append(f"{document.pages} pages instead of {entry['pages']}")
        documents.forget([document])
    tally.files += 1
    tally.met += not problems
    outcome = f"{result.pages} p, {result.chunks} passages" if stored else result.error
    notes = "; ".join(result.warnings)[:120]
    print(
        f"{'ok  ' if not problems else 'FAIL'} {seconds:6.2f} s  {path.name[:44]:44}"
        f" {entry['expect']:20} {outcome}{f' ({notes})' if notes else ''}"
        f"{'' if not problems else '  <- ' + '; '.join(problems)}"
    )


def partial(documents: Documents, document_id: int | None) -> bool:
    """Whether rows are there that belong to no whole document."""
    app = documents.app
    with app.database.connection() as connection:
        found = store.everything(connection, app.user.id)
        if document_id is None:
            return bool(found)
        rows = store.rows(connection, app.user.id, [document_id])
    return len(found) != 1 or rows["chunks"] != rows["chunk_terms"] or not rows["chunks"]


def expectation(expect: str, result: Any, stored: bool) -> list[str]:
    """What is wrong about the outcome itself."""
    wrong = []
    if expect in {"text", "needs_password", "partial", "text_or_warning"} and not stored:
        wrong.append("not read")
    if expect in {"no_text", "corrupt", "not_pdf", "refuse_binary", "empty", "placeholder"}:
        wrong += ["read"] if stored else []
    if expect in {"garbled", "placeholder"} and stored and not short(result):
        wrong.append("filed as text")
    if expect == "partial" and not result.warnings:
        wrong.append("no warning")
    if expect == "no_text" and not stored and "page" not in (result.error or ""):
        wrong.append("no page count")
    # "limit": within the limits, or refused at one. Pictures are never unpacked here, so a bomb
    # of pictures is read like any other page.
    return wrong


def short(result: Any) -> bool:
    """Whether there is so little text that nobody could tell whether it is garbled."""
    return bool(result.chunks <= 1)


def phrases(documents: Documents, document: Any, entry: dict[str, Any], tally: Tally) -> list[str]:
    """The phrases that are not where they should be."""
    wrong = []
    for phrase in entry["phrases"]:
        if isinstance(phrase, str):
            there = folded(phrase) in folded(documents.text(document))
            wanted = entry["expect"] != "text_or_refuse"
        else:
            there = phrase["page"] <= document.pages and folded(phrase["text"]) in folded(
                documents.text(document, phrase["page"])
            )
            wanted = "pdfium" in phrase["found_by"]
            tally.phrases += wanted
            tally.found += wanted and there
        if not there and wanted:
            wrong.append(f"misses {phrase!r:.60}")
        tally.missed += not there and not wanted
    return wrong


def speed(data: Path) -> int:
    """Pages a second of CPU time for ordinary text PDFs, extraction alone, on one core."""
    slow = 0
    chosen = [("a book of 300 pages", book().pdf)]
    chosen += [
        (entry["file"].partition("/")[2], (data / "pdfs" / entry["file"]).read_bytes())
        for entry in json.loads((data / "pdfs" / "expect.json").read_text())
        if entry["expect"] == "text" and (entry["pages"] or 0) >= 5
        if entry["category"] not in {"rotated", "truncated"}
    ]
    for name, content in chosen:
        pages, best = 0, 0.0
        for _ in range(3):
            started = time.process_time()
            pages = len(extract(Source(content, name)).pages)
            best = max(best, pages / (time.process_time() - started))
        slow += best < 150
        print(f"{best:7.0f} pages/s  {pages:4} pages  {name}")
    return slow


def questions() -> int:
    """Whether the first hit is on the right page, with and without the embedding model."""
    made = book()
    with services() as app, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.pdf"
        path.write_bytes(made.pdf)
        documents = Documents(app)
        started = time.perf_counter()
        (result,) = documents.ingest(list(Selection().files([path])))
        seconds = time.perf_counter() - started
        print(f"{result.pages} pages, {result.chunks} passages in {seconds:.0f} s")
        first = in_three = 0
        for question, phrase in QUESTIONS:
            right = made.pages_with(phrase)
            hits = documents.search(question, 3).hits
            pages = [hit.page for hit in hits]
            first += bool(pages) and pages[0] in right
            in_three += bool(set(pages) & right)
            mark = "ok  " if pages and pages[0] in right else "FAIL"
            print(f"{mark} right {sorted(right)} found {pages}  {question}")
    print(f"right page first: {first} of {len(QUESTIONS)}; among three: {in_three}")
    return 0 if first >= 0.9 * len(QUESTIONS) else 1


def throughput() -> int:
    """Passages a second of an ingest, against the embedding of the same texts by itself."""
    content = make_pages(40)
    ratios = []
    with services() as app, tempfile.TemporaryDirectory() as folder:
        documents = Documents(app)
        warm = Path(folder) / "warm.txt"
        warm.write_text("The first use of a model calibrates it.")
        list(documents.ingest(list(Selection().files([warm]))))
        for number in range(3):
            path = Path(folder) / f"{number}.txt"
            path.write_text(f"{number}\n\n{content}")
            started = time.perf_counter()
            (result,) = documents.ingest(list(Selection().files([path])))
            whole = time.perf_counter() - started
            with app.database.connection() as connection:
                rows = store.chunks(connection, app.user.id, result.id or 0)
            texts = [embedding_text(row.heading, row.content) for row in rows]
            started = time.perf_counter()
            app.embedder().embed_documents(texts)
            alone = time.perf_counter() - started
            ratios.append(alone / whole)
            print(
                f"{len(texts)} passages: ingest {len(texts) / whole:.2f}/s,"
                f" engine alone {len(texts) / alone:.2f}/s, ratio {ratios[-1]:.3f}"
            )
    print(f"median ratio {statistics.median(ratios):.3f}")
    return 0 if statistics.median(ratios) >= 0.9 else 1


def make_pages(count: int) -> str:
    """Text for so many pages."""
    return "\f".join(book().texts[:count])


def main() -> int:
    """Runs one measurement."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.documents", description=__doc__)
    parser.add_argument("what", choices=["files", "speed", "questions", "throughput"])
    parser.add_argument("data", nargs="?", type=Path, default=None)
    arguments = parser.parse_args()
    runs: dict[str, Callable[[], int]] = {"questions": questions, "throughput": throughput}
    if arguments.what in runs:
        return runs[arguments.what]()
    data = arguments.data or Path(os.environ.get("JARVIS_BENCH_DATA", ""))
    if not (data / "pdfs" / "expect.json").is_file():
        print("no data: give the folder that holds pdfs/ and texts/", file=sys.stderr)
        return 0
    return files(data) if arguments.what == "files" else speed(data)


if __name__ == "__main__":
    sys.exit(main())
