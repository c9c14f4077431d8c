"""The log is private, whole with many writers, and silent about contents and secrets."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jarvis import log
from jarvis.errors import JarvisError
from jarvis.services import worker


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "logs"
    log.set_up(place)
    yield place
    log.set_up(place)


def _text(folder: Path) -> str:
    return (folder / log.FILE_NAME).read_text("utf-8")


def test_file_and_folder_are_private(folder: Path) -> None:
    log.get("jarvis.worker").info("stored %d facts", 3)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / log.FILE_NAME).stat().st_mode) == 0o600
    assert _text(folder).endswith("stored 3 facts\n")
    assert " info    worker[" in _text(folder)


def test_levels(folder: Path) -> None:
    log.set_up(folder, "warning")
    log.get("a").info("unseen")
    log.get("a").warning("seen")
    assert "unseen" not in _text(folder)
    assert "seen" in _text(folder)


def test_contents_only_with_debug(folder: Path) -> None:
    log.get("a").content("question", "my cat is called Tom")
    log.get("a").info("answered")
    assert "Tom" not in _text(folder)
    log.set_up(folder, debug=True)
    log.get("a").content("question", "my cat is called Tom")
    assert "Tom" in _text(folder)


def test_an_exception_does_not_quote_what_it_failed_on(folder: Path) -> None:
    def fail() -> None:
        raise ValueError("Key (content)=(my cat is called Tom) already exists")

    try:
        fail()
    except ValueError:
        log.get("store").exception("not stored")
    text = _text(folder)
    assert "Tom" not in text
    assert "not stored: ValueError" in text
    assert "test_log.py:" in text
    assert "fail" in text
    log.get("store").error("not stored", exc_info=JarvisError("no space left on the disk"))
    assert "no space left on the disk" in _text(folder)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "connecting to postgresql://me:hunt#er2@db.example/jarvis",
        "connecting to postgresql://me:hu@nt#er2@db.example/jarvis",
        "password=hunt#er2 host=x",
        'headers {"Authorization": "Bearer hunt#er2"}',
        "api_key: hunt#er2",
        "db.example/x?sslmode=require&sslpassword=hunt#er2&port=1",
        "OPENAI_API_KEY=hunt#er2",
        "X-Api-Key: hunt#er2",
    ],
)
def test_secrets_never(folder: Path, line: str, debug: bool) -> None:
    log.set_up(folder, debug=debug)
    log.get("a").info(line)
    assert "er2" not in _text(folder)
    assert "***" in _text(folder) or "[" in _text(folder).partition("] ")[2]


def test_nobody_forges_a_line(folder: Path) -> None:
    log.get("a").info("name %s", "x\n2026-01-01 error  db[1] all lost\x1b[2J")
    assert len(_text(folder).splitlines()) == 1
    assert "\x1b" not in _text(folder)


def test_wrong_arguments_are_no_error(folder: Path) -> None:
    log.get("a").info("%d facts", "three")
    assert "three" in _text(folder)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log.set_up(tmp_path / "file" / "logs")
    log.get("a").error("nobody reads this")
    assert (tmp_path / "file").read_text() == ""


def test_rotation_keeps_every_line_of_many_writers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import sys; from pathlib import Path; from jarvis import log\n"
        "log.MAX_BYTES = 40_000; log.KEPT = 9; log.set_up(Path(sys.argv[1]))\n"
        "for n in range(600): log.get('w').info('%s line %d', sys.argv[2], n)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), str(number)])
        for number in range(4)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    files = list(folder.glob("jarvis.log*"))
    assert len(files) > 2
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    lines = [line for file in files for line in file.read_text().splitlines()]
    said = {" ".join(line.split()[-3:]) for line in lines}
    assert said == {f"{w} line {n}" for w in range(4) for n in range(600)}
    assert len(lines) == 2400


def test_what_workers_say_is_bounded_too(folder: Path) -> None:
    folder.mkdir()
    path = folder / "worker.err"
    for size in (5, log.MAX_BYTES + 1, 7):
        with os.fdopen(worker._errors(folder), "wb") as file:
            file.write(b"x" * size)
    assert path.stat().st_size == 7
    older = folder / "worker.err.1"
    assert older.stat().st_size == 5 + log.MAX_BYTES + 1
    assert {stat.S_IMODE(one.stat().st_mode) for one in (path, older)} == {0o600}
