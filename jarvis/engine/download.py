"""Fetches one large file over HTTP: in parallel blocks, resumable, stoppable.

The blocks that are done are recorded beside the unfinished file, so a second try asks only for
what is missing. The caller checks the hash; nothing here decides that a file is good. Standard
library only.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from jarvis import __version__
from jarvis.engine.store import write_json
from jarvis.paths import private_file

BLOCK = 8 << 20
"""Bytes in one range request: large enough for throughput, small enough to lose."""

CONNECTIONS = 4
"""Range requests at a time; one stream from a CDN rarely fills a fast line."""

ATTEMPTS = 5
FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further one waits twice as long."""
CONNECT_TIMEOUT = 15.0
_CHUNK = 1 << 18


class Stopped(Exception):
    """The caller's ``stop`` said so; what was fetched is kept for the next try."""


class Unreachable(Exception):
    """The server cannot be reached, or does not have the file. The text says which."""


Report = Callable[[int], None]
Stop = Callable[[], bool]


def reachable(url: str, timeout: float = 3.0) -> bool:
    """Whether the server at ``url`` answers at all. Bounded, the name's resolution included."""
    answered = threading.Event()

    def probe() -> None:
        try:
            with _open(url, method="HEAD", timeout=timeout):
                answered.set()
        except urllib.error.HTTPError as error:
            error.close()
            answered.set()
        except (OSError, http.client.HTTPException):
            pass

    # A daemon thread: the resolver of the C library cannot be interrupted.
    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(timeout)
    return answered.is_set()


def fetch(url: str, target: Path, size: int, report: Report, stop: Stop) -> None:
    """Makes ``target`` the ``size`` bytes at ``url``.

    Args:
        target: the unfinished file; ``<target>.blocks`` beside it records the blocks done.
        report: called with the bytes that are there, every quarter of a second or so.
        stop: asked between reads.

    Raises:
        Stopped: ``stop`` returned true.
        Unreachable: the server does not answer, refuses, or sends another size.
    """
    with _first(url) as response:
        final = response.url
        ranges = response.status == 206
        total = _total(response)
    if total is not None and total != size:
        raise Unreachable(f"{url} has {total:,} bytes instead of {size:,}")
    if ranges:
        _Blocks(url, final, target, size, report, stop).run()
    else:
        _whole(final, target, size, report, stop)


class _Blocks:
    """The parallel range requests for one file.

    ``url`` is where ``origin`` redirects to, so that every block needs one request only. Such an
    address may be good for a while only: what it refuses is asked for at the origin again.
    """

    def __init__(
        self, origin: str, url: str, target: Path, size: int, report: Report, stop: Stop
    ) -> None:
        self.origin, self.url, self.target, self.size = origin, url, target, size
        self.report, self.stop = report, stop
        self.record = target.with_name(target.name + ".blocks")
        self.count = -(-size // BLOCK)
        self.done = self._load()
        self.fetched = sum(self._length(block) for block in self.done)
        self.lock = threading.Lock()
        self.failed = threading.Event()
        self.reported = 0.0

    def run(self) -> None:
        descriptor = private_file(self.target, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(descriptor, self.size)
            todo = [block for block in range(self.count) if block not in self.done]
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                futures = [pool.submit(self._block, descriptor, block) for block in todo]
                for future in futures:
                    try:
                        future.result()
                    except BaseException:
                        self.failed.set()
                        raise
        finally:
            os.close(descriptor)
        self.report(self.size)
        self.record.unlink(missing_ok=True)

    def _block(self, descriptor: int, block: int) -> None:
        start = block * BLOCK
        last: Exception | None = None
        for attempt in range(ATTEMPTS):
            got = 0
            try:
                for piece in _ranged(self.url, start, self._length(block)):
                    self._check()
                    os.pwrite(descriptor, piece, start + got)
                    got += len(piece)
                    self._advance(len(piece))
                if got == self._length(block):
                    self._finish(block)
                    return
                last = OSError(f"the connection closed after {got:,} bytes")
            except urllib.error.HTTPError as error:
                error.close()  # it holds the refused answer's connection
                last = error
                with suppress(Unreachable), _first(self.origin) as response:
                    self.url = response.url
            except (OSError, http.client.HTTPException) as error:
                last = error
            self._advance(-got)
            _pause(2.0**attempt * FIRST_PAUSE, self._check)
        raise Unreachable(f"{self.url.partition('?')[0]}: {last}")

    def _check(self) -> None:
        if self.failed.is_set() or self.stop():
            raise Stopped

    def _advance(self, count: int) -> None:
        with self.lock:
            self.fetched += count
            now = time.monotonic()
            if now - self.reported < 0.25:
                return
            self.reported = now
            self.report(self.fetched)

    def _finish(self, block: int) -> None:
        with self.lock:
            self.done.add(block)
            write_json(self.record, {"size": self.size, "block": BLOCK, "done": sorted(self.done)})

    def _load(self) -> set[int]:
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
            same = record["size"] == self.size and record["block"] == BLOCK
            if same and self.target.stat().st_size == self.size:
                return {block for block in record["done"] if 0 <= block < self.count}
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return set()

    def _length(self, block: int) -> int:
        return min(BLOCK, self.size - block * BLOCK)


def _whole(url: str, target: Path, size: int, report: Report, stop: Stop) -> None:
    """One plain stream, for a server without ranges. It cannot be resumed."""
    got = 0
    try:
        with (
            _open(url) as response,
            os.fdopen(private_file(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as out,
        ):
            while piece := response.read(_CHUNK):
                if stop():
                    raise Stopped
                out.write(piece)
                got += len(piece)
                report(got)
                if got > size:
                    break
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{url}: {error}") from error
    if got != size:
        raise Unreachable(f"{url} sent {got:,} bytes instead of {size:,}")


def _first(url: str) -> http.client.HTTPResponse:
    try:
        return _open(url, range_="bytes=0-0")
    except urllib.error.HTTPError as error:
        error.close()
        raise Unreachable(f"{url}: HTTP {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(f"{url}: {reason}") from error


def _ranged(url: str, start: int, length: int) -> Iterator[bytes]:
    with _open(url, range_=f"bytes={start}-{start + length - 1}") as response:
        if response.status != 206:
            raise OSError(f"HTTP {response.status} instead of a range")
        if not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise OSError("the server sent another range than was asked for")
        left = length
        while left and (piece := response.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece


def _open(
    url: str, *, method: str = "GET", range_: str = "", timeout: float = CONNECT_TIMEOUT
) -> http.client.HTTPResponse:
    if not url.startswith(("https://", "http://")):
        raise Unreachable(f"{url} is no web address")
    headers = {"User-Agent": f"jarvis/{__version__}", "Accept-Encoding": "identity"}
    if range_:
        headers["Range"] = range_
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 -- checked above
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
    return response


def _total(response: http.client.HTTPResponse) -> int | None:
    if response.status == 206:
        text = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        text = response.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _pause(seconds: float, check: Callable[[], None]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, 0.1))


def short_reason(error: Exception) -> str:
    """What went wrong, in a few words, for a message."""
    if isinstance(error, TimeoutError | socket.timeout):
        return "no answer"
    return str(error)
