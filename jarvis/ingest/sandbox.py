"""Reads files in a child process with limits on time, memory and output.

A parser of untrusted files can crash, hang or fill the memory; here that costs the user one line
and the process that did it. One child serves many files (starting one costs as much as reading
a short text), and is replaced after any of these.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from jarvis.ingest import wire
from jarvis.ingest.model import Reading, Unreadable

if TYPE_CHECKING:
    from jarvis.ingest.chunker import Sizes

Progress = Callable[[int, int], None]
"""Told how many of how many pages or chapters are read."""


CLOCK_FACTOR = 5
"""A busy machine may take this many times the processor time of a file by the clock."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may take: seconds of processor time, MiB of memory, MiB of text."""

    seconds: float = 60.0
    memory_mb: int = 1024
    text_mb: int = 64


class Reader:
    """Reads one file after the other; a context manager that ends its child.

    Args:
        limits: for each file.
        log: a file descriptor for the child's stderr; None: nowhere.
    """

    def __init__(self, limits: Limits | None = None, log: int | None = None) -> None:
        self.limits = limits or Limits()
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            child.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def read(
        self,
        path: Path,
        name: str,
        sizes: Sizes,
        *,
        password: str | None = None,
        progress: Progress = lambda _done, _total: None,
    ) -> Reading:
        """Reads ``path`` and cuts it into passages.

        Args:
            path: the file.
            name: what it is called for the user; its suffix settles what bytes cannot.
            sizes: how long passages may be.
            password: for an encrypted PDF.
            progress: called now and then.

        Raises:
            Unreadable: it cannot be read, or not within the limits.
        """
        size = _size(path)
        if size > self.limits.memory_mb * 1024 * 1024 // 2:
            raise Unreadable(
                f"is too large to be read ({size // (1024 * 1024)} MiB)",
                "raise documents.max_memory_mb, or split it",
                "limit",
            )
        child = self._ready()
        request = {
            "path": os.fsencode(path).hex(),
            "name": name,
            "password": password,
            "seconds": self.limits.seconds,
            "max_text": self.limits.text_mb * 1024 * 1024,
            "sizes": asdict(sizes),
        }
        finished = False
        try:
            reading = self._exchange(child, request, progress)
            finished = True
            return reading
        except Unreadable as error:
            finished = error.code not in {"limit", "crash"}
            raise
        finally:
            if not finished:
                self._kill()

    def _exchange(
        self, child: subprocess.Popen[bytes], request: wire.Message, progress: Progress
    ) -> Reading:
        assert child.stdin is not None and child.stdout is not None  # noqa: S101 -- both are pipes
        deadline = time.monotonic() + CLOCK_FACTOR * self.limits.seconds
        try:
            child.stdin.write(wire.pack(request))
            child.stdin.flush()
        except OSError:
            raise self._died(child) from None
        collector = wire.Collector()
        buffer = bytearray()
        # Twice for the sentences that passages share and for what JSON escapes.
        left = 2 * self.limits.text_mb * 1024 * 1024 + 64 * 1024 * 1024
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._too_long()
                piece = os.read(child.stdout.fileno(), 1 << 20)
                if not piece:
                    raise self._died(child)
                left -= len(piece)
                if left < 0:
                    raise Unreadable("holds too much text", "split it", "limit")
                buffer += piece
                for message in _messages(buffer):
                    if "progress" in message:
                        progress(*message["progress"])
                        continue
                    reading = collector.add(message)
                    if reading is not None:
                        return reading

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is None:
            return self._child
        self._child = subprocess.Popen(
            # -P: a folder of documents must not be a folder of modules.
            [sys.executable, "-P", "-m", "jarvis.ingest.child", str(self.limits.memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._log is None else self._log,
            env=_environment(os.environ),
        )
        return self._child

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
        self.close()

    def _too_long(self) -> Unreadable:
        return Unreadable(
            f"took longer than {self.limits.seconds:g} s to read",
            "raise documents.timeout if you trust it",
            "limit",
        )

    def _died(self, child: subprocess.Popen[bytes]) -> Unreadable:
        from jarvis.ingest.child import OVER_MEMORY, OVER_TIME, too_much_memory

        try:
            status = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = 0
        if status in (OVER_TIME, -signal.SIGXCPU):
            return self._too_long()
        if status in (OVER_MEMORY, -signal.SIGKILL):
            return too_much_memory()
        what = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return Unreadable(f"made its reader crash ({what})", "it is probably damaged", "crash")


def _messages(buffer: bytearray) -> list[wire.Message]:
    """Takes the whole frames out of ``buffer``."""
    found = []
    while len(buffer) >= wire.HEADER.size:
        (length,) = wire.HEADER.unpack_from(buffer)
        end = wire.HEADER.size + length
        if length > wire.MAX_FRAME:
            raise Unreadable("made its reader send nonsense", "it is probably damaged", "crash")
        if len(buffer) < end:
            break
        found.append(wire.unpack(bytes(buffer[wire.HEADER.size : end])))
        del buffer[:end]
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror}", code="missing") from error


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """What the child may know: nothing of passwords and settings."""
    import jarvis

    root = str(Path(jarvis.__file__).resolve().parent.parent)
    kept = {key: env[key] for key in ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME") if key in env}
    return kept | {"PYTHONPATH": root, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
