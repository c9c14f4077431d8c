"""The log: one file for every process, 0600, rotated, and silent about what people say.

``get("worker").info("stored %d facts", 3)`` writes one line::

    2026-11-30T22:41:07.518Z info  worker[4711] stored 3 facts

What a user said, a model answered or a document holds is written at level ``debug`` only, by
:meth:`Log.content`; an exception's own text often quotes such things (a database error names the
row), so without debug only its type and the places in the code are kept. Secrets are removed at
every level. A log that cannot be written never stops anything.

The standard ``logging`` is not used: it costs more at start than all else a small command needs,
and its rotation loses lines when several processes write.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")
FILE_NAME = "jarvis.log"
MAX_BYTES = 1 << 20
"""Size at which the file becomes ``jarvis.log.1``."""
KEPT = 3
"""Older files that are kept."""

_CREDENTIALS = re.compile(
    r"(?i)(\w+://[^\s:/@]*:)[^\s]+(?=@)"  # scheme://user:password@ (the last @ ends it)
    r"|(\b[\w-]*(?:password|passwd|pwd|token|secret|api[_-]?key|authorization)\b[\"']?\s*[=:]\s*)"
    r"(?:(?:basic|bearer)\s+)?(?:\"[^\"]*\"|'[^']*'|[^\s,;]+)"
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Sink:
    """Where the lines of this process go."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.level = 1
        self.debug = False
        self.broken = False

    def resolve(self) -> Path:
        """The file, in a folder of ours."""
        from jarvis.paths import Paths, private_folder

        if self.folder is None:
            self.folder = Paths.from_environment().logs
        return private_folder(self.folder) / FILE_NAME


_sink = _Sink()


def set_up(folder: Path, level: str = "info", *, debug: bool = False) -> None:
    """Says where this process logs and from which level on.

    Args:
        folder: ``paths.logs``. Nothing is made before the first line.
        level: one of ``LEVELS``.
        debug: ``--debug``: everything, contents of messages included.
    """
    _sink.folder = folder
    _sink.level = 0 if debug else LEVELS.index(level)
    _sink.debug = debug or level == "debug"
    _sink.broken = False


def get(name: str) -> Log:
    """The log of a part of Jarvis: ``worker``, ``engine``, ``cli`` …"""
    return Log(name)


class Log:
    """Writes lines under one name. Arguments are put in as by ``%``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name.removeprefix("jarvis.")

    def debug(self, message: str, *values: object, exc_info: object = None) -> None:
        """For whoever looks for a fault."""
        self._write(0, message, values, exc_info)

    def info(self, message: str, *values: object, exc_info: object = None) -> None:
        """Something began or ended."""
        self._write(1, message, values, exc_info)

    def warning(self, message: str, *values: object, exc_info: object = None) -> None:
        """Something went wrong and was made up for."""
        self._write(2, message, values, exc_info)

    def error(self, message: str, *values: object, exc_info: object = None) -> None:
        """Something was not done."""
        self._write(3, message, values, exc_info)

    def exception(self, message: str, *values: object) -> None:
        """An error, with the exception that is being handled."""
        self._write(3, message, values, True)

    def content(self, what: str, text: str) -> None:
        """Words of a user, a model or a document: written with ``--debug`` only."""
        if _sink.debug:
            self._write(0, "%s: %s", (what, text), None)

    def _write(
        self, level: int, message: str, values: tuple[object, ...], exc_info: object
    ) -> None:
        if level < _sink.level or _sink.broken:
            return
        try:
            text = message % values if values else message
        except (TypeError, ValueError):
            text = f"{message} {values!r}"
        error = _exception(exc_info)
        if error is not None:
            text += f": {_describe(error)}"
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        head = f"{stamp}.{int(now % 1 * 1000):03d}Z {LEVELS[level]:<7} {self.name}[{os.getpid()}] "
        lines = [head + _one_line(_without_secrets(text))]
        if error is not None:
            lines += [f"    {place}" for place in _places(error)]
        _append("\n".join(lines) + "\n")


def _exception(value: object) -> BaseException | None:
    if isinstance(value, BaseException):
        return value
    if value:
        import sys

        return sys.exc_info()[1]
    return None


def _describe(error: BaseException) -> str:
    from jarvis.errors import JarvisError

    kind = type(error).__name__
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        kind += f" [{state}]"
    # Our own messages are made for people and hold no contents; others may quote anything.
    return f"{kind}: {error}" if _sink.debug or isinstance(error, JarvisError) else kind


def _places(error: BaseException) -> list[str]:
    """Where it came from, innermost last: file and line, no source and no values."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]


def _short(filename: str) -> str:
    parts = Path(filename).parts
    for mark in ("site-packages", "jarvis"):
        if mark in parts:
            start = len(parts) - parts[::-1].index(mark) - (1 if mark == "jarvis" else 0)
            return "/".join(parts[start:])
    return parts[-1]


def _without_secrets(text: str) -> str:
    if _sink.debug:
        # Contents are in here only now; looking for secrets in them costs an import.
        from jarvis.security import secrets

        text = secrets.redact(text)
    return _CREDENTIALS.sub(lambda found: (found[1] or found[2]) + "***", text)


def _one_line(text: str) -> str:
    """``text`` with control characters escaped: nobody forges a line or moves a cursor."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _append(text: str) -> None:
    from jarvis.errors import JarvisError
    from jarvis.paths import private_file

    data = text.encode("utf-8", "backslashreplace")
    try:
        path = _sink.resolve()
        descriptor = private_file(path)
        try:
            if os.fstat(descriptor).st_size + len(data) > MAX_BYTES:
                os.close(descriptor)
                descriptor = -1
                _rotate(path, len(data))
                descriptor = private_file(path)
            os.write(descriptor, data)  # one write to the end: lines of two processes never mix
        finally:
            if descriptor >= 0:
                os.close(descriptor)
    except (OSError, JarvisError):
        _sink.broken = True


def _rotate(path: Path, coming: int) -> None:
    """Renames the files, oldest first; only one process does, and only if it is still needed."""
    import fcntl

    from jarvis.paths import private_file

    lock = private_file(path.with_name(f".{path.name}.lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if path.stat().st_size + coming <= MAX_BYTES:
                return
        except FileNotFoundError:
            return  # another process has just rotated, and nobody has written since
        for number in range(KEPT, 0, -1):
            older = path.with_name(f"{path.name}.{number}")
            newer = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
    finally:
        os.close(lock)
