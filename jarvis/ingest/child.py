"""The process that touches the bytes of files. Run as ``python -m jarvis.ingest.child``.

It reads requests from stdin and answers on stdout, one file after the other, within limits that
it sets on itself before it opens the first: memory, no files written, no core dumps. A guard
thread ends it when memory or processor time go over their limits inside native code, and when the
parent is gone; the parent keeps the time by the clock and kills it.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from jarvis.ingest import wire
from jarvis.ingest.model import Reading, Source, Unreadable

OVER_MEMORY = 77
"""Exit status after the guard found too much memory in use."""

OVER_TIME = 78
"""Exit status after the guard found too much processor time used for one file."""

MEMORY_HEADROOM = 768 * 1024 * 1024
"""Address space that Python, its threads and the libraries reserve without using it."""

GUARD_INTERVAL = 0.05

_processor_limit = math.inf
"""Processor time of this process at which the file at hand has taken too long, in seconds."""


def main() -> int:
    """Serves requests until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reader, writer = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # A library that prints must not speak into the protocol.
    os.dup2(2, 1)
    limit = int(sys.argv[1]) * 1024 * 1024
    _set_limits(limit)
    threading.Thread(target=_guard, args=(limit, os.getppid()), daemon=True).start()
    while True:
        request = _receive(reader)
        if request is None:
            return 0
        _serve(request, writer)


def _serve(request: wire.Message, writer: BinaryIO) -> None:
    global _processor_limit
    last_progress = 0.0
    _processor_limit = time.process_time() + request["seconds"]
    _limit_processor(math.ceil(_processor_limit) + 1)

    def send(message: wire.Message) -> None:
        writer.write(wire.pack(message))
        writer.flush()

    def progress(done: int, total: int) -> None:
        nonlocal last_progress
        now = time.monotonic()
        if now - last_progress > 0.1 or done == total:
            last_progress = now
            send({"progress": [done, total]})

    try:
        for message in wire.reading_messages(_read(request, progress)):
            send(message)
    except Unreadable as error:
        send(_refusal(error))
    except MemoryError:
        send(_refusal(too_much_memory()))
    except RecursionError:
        send(_refusal(Unreadable("is nested too deeply to be read", code="limit")))
    except Exception as error:  # noqa: BLE001 -- whatever a parser raises is about the file
        import traceback

        print(traceback.format_exc(), file=sys.stderr)  # noqa: T201 -- stderr is the log
        what = f"{type(error).__name__} in its reader"
        send(_refusal(Unreadable(f"cannot be read: {what}", "it is probably damaged")))
    finally:
        _processor_limit = math.inf
        _limit_processor(resource.RLIM_INFINITY)


def too_much_memory() -> Unreadable:
    """The error of a file that takes more memory than is allowed."""
    return Unreadable(
        "needs more memory than is allowed",
        "raise documents.max_memory_mb if you trust it",
        "limit",
    )


def _refusal(error: Unreadable) -> wire.Message:
    return {
        "unreadable": {
            "reason": error.reason,
            "hint": error.hint,
            "code": error.code,
            "pages": error.pages,
        }
    }


def _read(request: wire.Message, progress: Any) -> Reading:
    from jarvis.ingest.assemble import assemble
    from jarvis.ingest.chunker import Sizes, passages
    from jarvis.ingest.extract import extract

    try:
        data = Path(os.fsdecode(bytes.fromhex(request["path"]))).read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror}", code="missing") from error
    source = Source(data, request["name"], request["password"], request["max_text"], progress)
    extracted = extract(source)
    document = assemble(extracted)
    if not document.text.strip():
        raise Unreadable("holds no text", code="empty")
    return Reading(
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        media_type=extracted.media_type,
        title=" ".join(extracted.title.split())[:300],
        passages=tuple(passages(document, Sizes(**request["sizes"]))),
        pages=document.pages,
        empty_pages=document.empty_pages,
        warnings=extracted.warnings,
    )


def _receive(stream: BinaryIO) -> wire.Message | None:
    header = stream.read(wire.HEADER.size)
    if len(header) < wire.HEADER.size:
        return None
    (length,) = wire.HEADER.unpack(header)
    body = stream.read(length)
    return wire.unpack(body) if len(body) == length else None


def _set_limits(memory: int) -> None:
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_AS, memory + MEMORY_HEADROOM),
    ):
        # macOS refuses some of these; the guard is there for both.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (value, value))


def _limit_processor(seconds: int) -> None:
    """Has the kernel end this process (SIGXCPU) after so much processor time in all: the guard
    cannot run while native code holds the interpreter's lock."""
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))


def _guard(limit: int, parent: int) -> None:
    while True:
        if resident_bytes() > limit:
            os._exit(OVER_MEMORY)
        if time.process_time() > _processor_limit:
            os._exit(OVER_TIME)
        if os.getppid() != parent:
            os._exit(0)
        time.sleep(GUARD_INTERVAL)


def resident_bytes() -> int:
    """Memory in use by this process; on macOS the most that it ever was."""
    try:
        with Path("/proc/self/statm").open("rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sys.exit(main())
