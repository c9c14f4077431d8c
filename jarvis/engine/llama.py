"""Talks HTTP to a runner's socket, and notices when the client on the other side has gone.

Every request has its own connection: closing it is how llama.cpp is told to stop. While an
answer is awaited, ``gone`` is asked and the client's own socket is watched, so that a prompt
that is still being read can be cancelled too.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

_POLL = 0.1
_MAX_HEAD = 1 << 16


class RunnerFailed(Exception):
    """llama.cpp refused or failed. ``status`` is its HTTP status, 0 when it has gone."""

    def __init__(self, message: str, status: int = 0, details: dict[str, Any] | None = None):
        super().__init__(message)
        self.status = status
        self.details = details or {}


class RunnerGone(RunnerFailed):
    """The process that holds the model has ended, or takes no connection."""


class Cancelled(Exception):
    """The work was given up: the client has gone, or something comes first."""


Check = Callable[[], None]
"""Raises ``Cancelled`` when the work is to stop."""


def call(address: str, path: str, body: object, check: Check, watch: int | None = None) -> Any:
    """POSTs ``body`` and returns the parsed answer.

    Args:
        watch: descriptor of the client's socket; ``check`` is called when it becomes readable.

    Raises:
        RunnerFailed, Cancelled.
    """
    with _Exchange(address, path, body, check, watch) as exchange:
        status = exchange.status()
        content = b"".join(exchange.pieces())
    return _parse(status, content)


def stream(
    address: str, path: str, body: object, check: Check, watch: int | None = None
) -> Iterator[dict[str, Any]]:
    """POSTs ``body`` and yields the events of the answer. Closing the iterator stops the work.

    Raises:
        RunnerFailed, Cancelled.
    """
    with _Exchange(address, path, body, check, watch) as exchange:
        status = exchange.status()
        if status != 200:
            _parse(status, b"".join(exchange.pieces()))
            raise RunnerFailed(f"llama.cpp answered with status {status}", status)
        pending = b""
        for piece in exchange.pieces():
            pending += piece
            *lines, pending = pending.split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    if "error" in event:
                        _fail(500, event)
                    yield event
                elif line.startswith(b"error: "):
                    _fail(500, {"error": json.loads(line[7:])})


def _parse(status: int, content: bytes) -> Any:
    try:
        value = json.loads(content)
    except ValueError:
        raise RunnerFailed(f"llama.cpp answered with status {status}", status) from None
    if status != 200 or (isinstance(value, dict) and "error" in value):
        _fail(status, value)
    return value


def _fail(status: int, value: Any) -> None:
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        raise RunnerFailed(
            str(error.get("message", error)), int(error.get("code", status) or status), error
        )
    raise RunnerFailed(str(error), status)


class _Exchange:
    """One request and its answer, over one connection."""

    def __init__(
        self, address: str, path: str, body: object, check: Check, watch: int | None
    ) -> None:
        self.check, self.watch = check, watch
        payload = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
        )
        self.buffer = b""
        self.chunked, self.length = False, -1
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.settimeout(30)
            self.socket.connect(address)
            self.socket.sendall(head.encode() + payload)
        except OSError as error:
            self.socket.close()
            raise RunnerGone(f"the model's process does not answer: {error}") from error

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def status(self) -> int:
        """Reads the head of the answer and returns its status."""
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > _MAX_HEAD:
                raise RunnerFailed("llama.cpp sent no valid answer")
            self.buffer += self._more(self.check)
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        for line in lines[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "transfer-encoding" and "chunked" in value.lower():
                self.chunked = True
            elif name.lower() == "content-length":
                self.length = int(value)
        return int(lines[0].split()[1])

    def pieces(self) -> Iterator[bytes]:
        """The body as it arrives."""
        if self.chunked:
            yield from self._chunks()
            return
        left = self.length
        while left:
            piece, self.buffer = self.buffer or self._more(self.check), b""
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            while b"\r\n" not in self.buffer:
                self.buffer += self._more(self.check)
            size, _, self.buffer = self.buffer.partition(b"\r\n")
            length = int(size.split(b";")[0], 16)
            while len(self.buffer) < length + 2:
                self.buffer += self._more(self.check)
            if not length:
                return
            yield self.buffer[:length]
            self.buffer = self.buffer[length + 2 :]

    def _more(self, check: Check) -> bytes:
        """The next bytes; waits for them, and looks meanwhile whether the work is to stop."""
        ours = self.socket.fileno()
        watched = [ours] if self.watch is None else [ours, self.watch]
        while True:
            ready, _, _ = select.select(watched, [], [], _POLL)
            if ours not in ready:
                check()
                if ready:  # the client sent more: nothing to learn from its socket for a while
                    time.sleep(0.02)
                continue
            check()
            try:
                data = self.socket.recv(1 << 18)
            except OSError as error:
                raise RunnerGone(f"the model's process has gone: {error}") from error
            if not data:
                raise RunnerGone("the model's process has gone")
            return data
