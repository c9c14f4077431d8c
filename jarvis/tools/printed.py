"""What a tool prints goes into the log, never among what Jarvis itself prints.

A ``print`` left in somebody's tool would stand before the answer's JSON, or move the lines of a
terminal that is being drawn on. Only the thread that runs the tool is kept quiet: others go on
writing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from jarvis import log

_lock = threading.Lock()
_quiet: dict[int, str] = {}
"""Threads that run a tool, each with what it runs."""


class _Shared:
    """A standard stream without what quiet threads write."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes, or logs what a tool wrote."""
        source = _quiet.get(threading.get_ident())
        if source is None:
            return self.stream.write(text)
        if text.strip():
            log.get("tools").content(f"{source} printed", text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Each line as ``write`` does it."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def logged(source: str) -> Iterator[None]:
    """While it lasts, what this thread prints goes into the log.

    Args:
        source: what runs, for the log.
    """
    thread = threading.get_ident()
    with _lock:
        outer = _quiet.get(thread)
        _quiet[thread] = source
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _Shared):
                setattr(sys, name, _Shared(stream))
    try:
        yield
    finally:
        with _lock:
            if outer is None:
                del _quiet[thread]
            else:
                _quiet[thread] = outer
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                if not _quiet and isinstance(stream, _Shared):
                    setattr(sys, name, stream.stream)
