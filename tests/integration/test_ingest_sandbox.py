"""The child process: its limits cost one line, and it is there again for the next file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jarvis.ingest import child, detect, sandbox
from jarvis.ingest.chunker import Sizes
from jarvis.ingest.model import Unreadable
from jarvis.ingest.sandbox import Limits, Reader
from tests import documents as make


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader() as opened:
        yield opened


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("# Note\n\nThe spare key is under the blue pot.\n")
    return path


def refusal(reader: Reader, path: Path) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        reader.read(path, path.name, Sizes())
    return caught.value


def test_a_reading_crosses_whole(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make.pdf([make.paragraph(n, 20) for n in range(30)] + [make.image_page]))
    seen: list[tuple[int, int]] = []
    found = reader.read(path, path.name, Sizes(), progress=lambda *step: seen.append(step))
    assert found.media_type == detect.PDF
    assert len(found.pages) == 31
    assert found.empty_pages == (31,)
    assert found.size_bytes == path.stat().st_size
    assert seen[-1] == (31, 31)
    assert {passage.page for passage in found.passages} == set(range(1, 31))


def test_one_child_serves_many_files(reader: Reader, note: Path) -> None:
    first = reader.read(note, note.name, Sizes())
    process = reader._child
    assert reader.read(note, note.name, Sizes()) == first
    assert reader._child is process


def test_time_is_limited_and_the_next_file_is_read(note: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    os.mkfifo(slow)  # opening it waits for a writer that never comes
    with Reader(Limits(seconds=0.5)) as reader:
        reader.read(note, note.name, Sizes())
        started = time.monotonic()
        assert "took longer than 0.5 s" in refusal(reader, slow).reason
        assert time.monotonic() - started < 5
        assert reader.read(note, note.name, Sizes()).passages


def test_processor_time_is_limited(note: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("\n\n".join(f"word {n} and more of them" for n in range(400_000)))
    with Reader(Limits(seconds=0.3)) as reader:
        reader.read(note, note.name, Sizes())
        assert "took longer than 0.3 s" in refusal(reader, long).reason
        assert reader.read(note, note.name, Sizes()).passages


def test_native_code_that_never_returns_is_ended(
    note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A regular expression that backtracks for ever holds the interpreter's lock."""
    extractor = tmp_path / "sitecustomize.py"
    extractor.write_text(
        "import sys, types, re\n"
        "module = types.ModuleType('jarvis.ingest.markdown')\n"
        "module.extract = lambda source: re.match('(a+)+b', 'a' * 60)\n"
        "sys.modules['jarvis.ingest.markdown'] = module\n"
    )
    environment = sandbox._environment(os.environ)
    environment["PYTHONPATH"] += f":{tmp_path}"
    monkeypatch.setattr(sandbox, "_environment", lambda _: environment)
    with Reader(Limits(seconds=1)) as reader:
        started = time.monotonic()
        child_time = os.times().children_user
        assert "took longer than 1 s" in refusal(reader, note).reason
        assert os.times().children_user - child_time < 4
        assert time.monotonic() - started < 60


def test_memory_is_limited_and_the_next_file_is_read(note: Path, tmp_path: Path) -> None:
    greedy = tmp_path / "greedy.docx"
    greedy.write_bytes(make.docx_body("<w:p/>" * 4_000_000))
    with Reader(Limits(memory_mb=150)) as reader:
        assert refusal(reader, greedy).code == "limit"
        assert reader.read(note, note.name, Sizes()).passages


def test_output_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("word " * 300_000)
    with Reader(Limits(text_mb=1)) as reader:
        assert "more than 1 MiB of text" in refusal(reader, path).reason


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "huge.pdf"
    with path.open("wb") as file:
        file.truncate(600 * 1024 * 1024)
    with Reader() as reader:
        assert "too large" in refusal(reader, path).reason
        assert reader._child is None


def test_a_crash_is_one_line(reader: Reader, note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.read(note, note.name, Sizes())
    assert reader._child is not None
    reader._child.send_signal(signal.SIGSEGV)
    reader._child.wait()
    broken = reader._child
    monkeypatch.setattr(reader, "_ready", lambda: broken)
    assert "SIGSEGV" in refusal(reader, note).reason
    monkeypatch.undo()
    assert reader.read(note, note.name, Sizes()).passages


def test_the_child_writes_no_files_and_knows_no_secrets(
    reader: Reader, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JARVIS_DATABASE_PASSWORD", "hunter2")
    reader.read(note, note.name, Sizes())
    assert reader._child is not None
    process = Path(f"/proc/{reader._child.pid}")
    if not process.exists():
        pytest.skip("no /proc here")
    assert b"hunter2" not in (process / "environ").read_bytes()
    limits = (process / "limits").read_text()
    assert next(line for line in limits.splitlines() if "file size" in line).split()[3] == "0"


def test_the_child_ends_with_its_parent(note: Path) -> None:
    reader = Reader()
    reader.read(note, note.name, Sizes())
    process = reader._child
    assert process is not None
    reader.close()
    assert process.returncode is not None


def test_a_folder_of_documents_is_no_folder_of_modules(
    reader: Reader, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lxml.py").write_text("raise SystemExit('imported from the documents')")
    (tmp_path / "a.html").write_text("<p>words</p>")
    monkeypatch.chdir(tmp_path)
    assert reader.read(tmp_path / "a.html", "a.html", Sizes()).passages[0].content == "words"


def test_memory_in_use_is_known() -> None:
    assert 1_000_000 < child.resident_bytes() < 10_000_000_000
