"""What a route sees of HTTP: a request, the kinds of answers, and errors with a status."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from jarvis.engine.llama import Cancelled

_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"


class HTTPError(Exception):
    """An answer that is an error: ``{"error": message}`` with a status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(slots=True)
class Request:
    """One request. ``watch`` is the client's socket, to notice that it has gone."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    watch: int
    tcp: bool
    cancelled: threading.Event = field(default_factory=threading.Event)

    def json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            HTTPError: 400, with Ollama's words for a missing or broken body.
        """
        if not self.body.strip():
            raise HTTPError(400, "missing request body")
        try:
            value = json.loads(self.body)
        except RecursionError:
            raise HTTPError(400, "the JSON is nested too deeply") from None
        except ValueError as error:
            raise HTTPError(400, f"invalid JSON: {error}") from None
        if not isinstance(value, dict):
            raise HTTPError(400, "the body must be a JSON object")
        return value

    def gone(self) -> bool:
        """Whether the client has closed its side."""
        try:
            ready, _, _ = select.select([self.watch], [], [], 0)
            if not ready:
                return False
            with socket.socket(fileno=os.dup(self.watch)) as copy:
                return not copy.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def check(self) -> None:
        """Raises ``Cancelled`` when the client has gone or the work was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled("preempted")
        if self.gone():
            raise Cancelled("the client has gone")


@dataclass(slots=True)
class Response:
    """An answer: ``content`` as it is, or ``lines`` as a stream of JSON objects.

    ``events``: the stream is one of server-sent events, as OpenAI has it, instead of NDJSON.
    """

    status: int = 200
    content: bytes = b""
    kind: str = _JSON
    lines: Iterator[Mapping[str, Any]] | None = None
    events: bool = False

    @property
    def content_type(self) -> str:
        """The media type of what is sent."""
        if self.lines is None:
            return self.kind
        return "text/event-stream" if self.events else "application/x-ndjson"

    def pieces(self) -> Generator[bytes, None, None]:
        """The stream, framed. Closing it closes ``lines``, which stops the work."""
        lines = self.lines or iter(())
        try:
            for line in lines:
                content = encode(line)
                yield b"data: %s\n\n" % content if self.events else content + b"\n"
            if self.events:
                yield b"data: [DONE]\n\n"
        finally:
            close = getattr(lines, "close", None)
            if close is not None:
                with suppress(Cancelled):
                    close()


def json_response(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(status, encode(value))


def text_response(text: str, status: int = 200) -> Response:
    """A plain answer."""
    return Response(status, text.encode(), _TEXT)


def error_response(status: int, message: str) -> Response:
    """``{"error": message}``."""
    return json_response({"error": message}, status)


def encode(value: object) -> bytes:
    """JSON in UTF-8. A lone surrogate, which UTF-8 cannot hold, stays escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


Handler = Callable[[Request], Response]
