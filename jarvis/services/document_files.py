"""Which files a user means: paths, folders, globs; what is hidden or git-ignored stays out."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jarvis.paths import expand

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STDIN_PREFIX = "stdin:"
"""What the path of a document from stdin begins with; no absolute path does."""

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class FileSource:
    """One file to read.

    Attributes:
        path: the absolute path that it is known by, or ``stdin:NAME``.
        file: where its bytes are.
        name: what it is called.
        problem: why it cannot be read, when that is known already.
    """

    path: str
    file: Path
    name: str
    problem: str = ""

    @property
    def from_stdin(self) -> bool:
        """Whether it has no path of its own."""
        return self.path.startswith(STDIN_PREFIX)

    def still_there(self) -> bool:
        """Whether the path leads to a file now."""
        return self.from_stdin or Path(self.path).is_file()


@dataclass(slots=True)
class Selection:
    """How folders are walked.

    Attributes:
        recursive: go into subfolders.
        globs: take only files that match one of these, by name or by path below the folder.
        everything: hidden and ignored files too.
    """

    recursive: bool = False
    globs: Sequence[str] = ()
    everything: bool = False
    _rules: dict[Path, GitIgnoreSpec | None] = field(default_factory=dict)

    def files(self, paths: Sequence[Path]) -> Iterator[FileSource]:
        """Every file that is meant, once, in a stable order. A named file is always taken."""
        seen: set[str] = set()
        for path in paths:
            for source in self._below(path):
                if source.path not in seen:
                    seen.add(source.path)
                    yield source

    def _below(self, path: Path) -> Iterator[FileSource]:
        absolute = Path(os.path.abspath(expand(path)))  # noqa: PTH100 -- resolve follows links
        try:
            mode = absolute.stat().st_mode
        except OSError as error:
            yield file_source(absolute, f"cannot be opened: {error.strerror}")
            return
        if stat.S_ISREG(mode):
            yield file_source(absolute)
        elif stat.S_ISDIR(mode):
            yield from self._folder(absolute, absolute, _repository(absolute) or absolute)
        else:
            yield file_source(absolute, "is no regular file")

    def _folder(self, folder: Path, top: Path, root: Path) -> Iterator[FileSource]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            yield file_source(folder, f"cannot be opened: {error.strerror}")
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if self.recursive and not self._left_out(path, root, folder=True):
                    yield from self._folder(path, top, root)
            elif self._wanted(path, top) and not self._left_out(path, root, folder=False):
                # A link to a folder could lead round in a circle; other things are no files.
                if path.is_file():
                    yield file_source(path)
                elif entry.is_symlink() and not path.exists():
                    yield file_source(path, "is a link to nothing")

    def _wanted(self, path: Path, top: Path) -> bool:
        if not self.globs:
            return True
        below = path.relative_to(top).as_posix()
        return any(
            fnmatch.fnmatch(path.name, pattern)
            or fnmatch.fnmatch(below, pattern)
            or fnmatch.fnmatch(below, pattern.removeprefix("**/"))
            for pattern in self.globs
        )

    def _left_out(self, path: Path, root: Path, *, folder: bool) -> bool:
        if self.everything:
            return False
        if path.name.startswith(".") or (folder and path.name in _SKIPPED_FOLDERS):
            return True
        return self._ignored(path, root, folder=folder)

    def _ignored(self, path: Path, root: Path, *, folder: bool) -> bool:
        """Whether a ``.gitignore`` between ``root`` and the file leaves it out."""
        parent = path.parent
        while True:
            rules = self._rules_of(parent)
            if rules is not None:
                below = path.relative_to(parent).as_posix() + ("/" if folder else "")
                verdict = rules.check_file(below).include
                if verdict is not None:  # the nearest file that says something decides
                    return bool(verdict)
            if parent in (root, parent.parent):
                return False
            parent = parent.parent

    def _rules_of(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._rules:
            self._rules[folder] = _read_rules(folder / ".gitignore")
        return self._rules[folder]


def file_source(path: Path, problem: str = "") -> FileSource:
    """The file at an absolute path."""
    return FileSource(_shown(str(path)), path, _shown(path.name), problem)


def stdin_source(name: str, file: Path) -> FileSource:
    """What came from stdin, kept in ``file`` while it is read."""
    shown = _shown(name)
    return FileSource(STDIN_PREFIX + shown, file, shown)


def _shown(text: str) -> str:
    """A path as text that can be stored: bytes in no encoding are written out."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _read_rules(path: Path) -> GitIgnoreSpec | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _repository(folder: Path) -> Path | None:
    """The root of the repository that ``folder`` is in, or None when it is in none."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None
