"""Which files of a folder are meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jarvis.services.document_files import Selection, stdin_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "a.md",
        "b.pdf",
        ".hidden.md",
        "debug.log",
        "sub/c.md",
        "sub/keep.log",
        "sub/deep/d.txt",
        "build/out.md",
        ".git/config",
        "node_modules/x.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("*.log\n/build/\n")
    (tmp_path / "sub/.gitignore").write_text("!keep.log\n")
    return tmp_path


def names(selection: Selection, *paths: Path) -> list[str]:
    return [os.path.relpath(source.path, paths[0]) for source in selection.files(list(paths))]


def test_a_folder_without_its_folders(folder: Path) -> None:
    assert names(Selection(), folder) == ["a.md", "b.pdf"]


def test_recursive(folder: Path) -> None:
    found = names(Selection(recursive=True), folder)
    assert found == ["a.md", "b.pdf", "sub/c.md", "sub/deep/d.txt", "sub/keep.log"]


def test_everything(folder: Path) -> None:
    found = names(Selection(recursive=True, everything=True), folder)
    assert {".hidden.md", "build/out.md", "debug.log", ".git/config"} <= set(found)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["*.md"], ["a.md", "sub/c.md"]),
        (["sub/*"], ["sub/c.md", "sub/deep/d.txt", "sub/keep.log"]),
        (["**/*.txt", "*.pdf"], ["b.pdf", "sub/deep/d.txt"]),
    ],
)
def test_globs(folder: Path, globs: list[str], expected: list[str]) -> None:
    assert names(Selection(recursive=True, globs=globs), folder) == expected


def test_rules_of_the_repository_hold_in_its_folders(folder: Path) -> None:
    (folder / "sub/other.log").write_text("x")
    assert names(Selection(), folder / "sub") == ["c.md", "keep.log"]


def test_a_named_file_is_always_taken(folder: Path) -> None:
    assert names(Selection(), folder / "debug.log") == ["."]
    assert names(Selection(), folder / ".hidden.md") == ["."]


def test_each_file_once(folder: Path) -> None:
    twice = Selection().files([folder / "a.md", folder, folder / "sub" / ".." / "a.md"])
    assert [source.name for source in twice] == ["a.md", "b.pdf"]


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    problems = {
        source.name: source.problem
        for source in Selection(recursive=True).files([tmp_path / "missing", fifo, tmp_path])
    }
    assert problems == {
        "missing": "cannot be opened: No such file or directory",
        "pipe": "is no regular file",
        "dangling": "is a link to nothing",
    }


def test_a_name_in_no_encoding_can_be_stored(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_text("x")
    (source,) = Selection().files([tmp_path])
    assert source.path.endswith("caf\\xe9.txt")
    assert source.file.read_text() == "x"


def test_stdin(tmp_path: Path) -> None:
    source = stdin_source("notes.md", tmp_path)
    assert source.path == "stdin:notes.md"
    assert source.from_stdin
