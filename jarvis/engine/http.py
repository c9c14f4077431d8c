"""A small HTTP/1.1 server for the engine: Unix socket and TCP, streams, limits, disconnects.

One thread a connection. What Ollama's clients need is here and no more: bodies with a length or
in chunks, ``Expect: 100-continue``, keep-alive, NDJSON streams, CORS for local pages. On TCP a
foreign ``Host`` (a name that was pointed at this machine by somebody else) or ``Origin`` (a page
of somebody else) is refused.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import closing

from jarvis.engine.llama import Cancelled
from jarvis.engine.origins import Origins
from jarvis.engine.request import Handler, HTTPError, Request, Response, error_response

log = logging.getLogger("jarvis.engine")

MAX_HEAD = 64 << 10
MAX_BODY = 64 << 20
MAX_CONNECTIONS = 256
"""More are told so; those beyond twice as many are closed unheard."""
CHUNK_OVERHEAD = 256
"""What a chunk of a body counts besides its bytes: many tiny ones are work, too."""
IDLE_SECONDS = 120.0
"""How long an open connection may wait for its next request."""
READ_SECONDS = 30.0
SLOWEST_BYTES = 16 << 10
"""A request may take so long to arrive, and a second more for so many bytes."""
WRITE_SECONDS = 120.0
"""How long a client may stall while it is answered."""

_REASONS = {
    200: "OK", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 413: "Payload Too Large",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable",
}  # fmt: skip


_TOO_SLOW = error_response(408, "the request was not sent in time")


class Listener:
    """Accepts connections on one bound socket and serves each on its own thread."""

    def __init__(self, bound: socket.socket, handler: Handler, origins: Origins | None) -> None:
        self.socket, self.handler, self.origins = bound, handler, origins
        self.active = 0
        self.last_active = time.monotonic()
        self._lock = threading.Lock()
        self._connections = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        bound.setblocking(False)

    def start(self) -> None:
        """Begins to accept."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._accept, name="accept", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stops accepting; connections that are open go on, new ones wait in the backlog."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def accept_waiting(self) -> bool:
        """Serves a connection that came while paused. False when there is none."""
        return self._take()

    def _accept(self) -> None:
        while not self._stop.is_set():
            ready, _, _ = select.select([self.socket], [], [], 0.2)
            if ready:
                self._take()

    def _take(self) -> bool:
        try:
            connection, _ = self.socket.accept()
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return False
        except OSError as error:  # no descriptors left: let some close
            log.error("cannot accept: %s", error)
            time.sleep(0.1)
            return False
        with self._lock:
            self._connections += 1
            full = self._connections > MAX_CONNECTIONS
            if self._connections > 2 * MAX_CONNECTIONS:
                self._connections -= 1
                connection.close()
                return True
        threading.Thread(target=self._serve, args=(connection, full), daemon=True).start()
        return True

    def _serve(self, connection: socket.socket, full: bool) -> None:
        try:
            with connection:
                connection.setblocking(True)
                if self.origins is not None:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _Connection(connection, self, full).run()
        except (OSError, Cancelled):
            pass
        except Exception:
            log.exception("a connection failed")
        finally:
            with self._lock:
                self._connections -= 1

    def begin(self) -> None:
        """Counts a request as active."""
        with self._lock:
            self.active += 1

    def end(self) -> None:
        """The end of ``begin``."""
        with self._lock:
            self.active -= 1
            self.last_active = time.monotonic()


class _Connection:
    """One connection: requests one after the other."""

    def __init__(self, connection: socket.socket, listener: Listener, full: bool) -> None:
        self.socket, self.listener, self.full = connection, listener, full
        self.buffer, self.deadline = b"", 0.0

    def run(self) -> None:
        first = True
        while True:
            self.deadline = time.monotonic() + (READ_SECONDS if first else IDLE_SECONDS)
            try:
                head = self._head()
            except TimeoutError:
                if self.buffer:
                    self._send(_TOO_SLOW, "GET", "HTTP/1.1")
                return
            if head is None:
                return
            first = False
            self.listener.begin()
            try:
                keep = self._answer(head)
            finally:
                self.listener.end()
            if not keep:
                return

    def _answer(self, head: bytes) -> bool:
        keep = True
        version, method, origin = "HTTP/1.1", "GET", ""
        try:
            method, target, version, headers = _parse_head(head)
            keep = _keeps_alive(version, headers)
            origin = headers.get("origin", "")
            self._admit(headers)
            body = self._body(headers)
            self.socket.settimeout(WRITE_SECONDS)
            path = _path(target)
            tcp = self.listener.origins is not None
            request = Request(method, path, headers, body, self.socket.fileno(), tcp)
            response = self.listener.handler(request)
        except HTTPError as error:
            keep = keep and error.status not in {400, 403, 408, 413, 431, 503}
            response = error_response(error.status, error.message)
        except TimeoutError:
            keep, response = False, _TOO_SLOW
        self._send(response, method, version, keep, origin)
        return keep

    def _admit(self, headers: Mapping[str, str]) -> None:
        if self.full:
            raise HTTPError(503, "server busy, too many connections")
        origins = self.listener.origins
        if origins is None:
            return
        host = headers.get("host", "")
        if not origins.host_allowed(host):
            raise HTTPError(403, f"the Host {host[:100]!r} is not this machine")
        if not origins.origin_allowed(headers.get("origin", ""), host):
            raise HTTPError(403, f"the Origin {headers['origin'][:100]!r} is not allowed")

    def _head(self) -> bytes | None:
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > MAX_HEAD:
                self._send(error_response(431, "the headers are too long"), "GET", "HTTP/1.1")
                return None
            idle = not self.buffer
            if not self._more():
                return None
            if idle:  # the request begins now, however long the connection was idle
                self.deadline = time.monotonic() + READ_SECONDS
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            self.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
                raise HTTPError(400, "unsupported transfer encoding")
            return self._chunked_body()
        text = headers.get("content-length", "0")
        if not text.isascii() or not text.isdigit():
            raise HTTPError(400, "invalid Content-Length")
        length = int(text)
        if length > MAX_BODY:
            raise HTTPError(413, f"the request is larger than {MAX_BODY >> 20} MiB")
        return self._exactly(length)

    def _chunked_body(self) -> bytes:
        pieces: list[bytes] = []
        total = 0
        while True:
            while b"\r\n" not in self.buffer:
                if len(self.buffer) > 1024 or not self._more():
                    raise HTTPError(400, "invalid chunked body")
            size, _, self.buffer = self.buffer.partition(b"\r\n")
            digits = size.split(b";")[0].strip()
            if not digits or digits.strip(b"0123456789abcdefABCDEF"):
                raise HTTPError(400, "invalid chunked body")
            length = int(digits, 16)
            total += length + CHUNK_OVERHEAD
            if total > MAX_BODY:
                raise HTTPError(413, f"the request is larger than {MAX_BODY >> 20} MiB")
            piece = self._exactly(length + 2)
            if not length:
                return b"".join(pieces)
            pieces.append(piece[:-2])

    def _exactly(self, length: int) -> bytes:
        pieces, have = [self.buffer], len(self.buffer)
        while have < length:
            piece = self._receive(1 << 18)
            if not piece:
                raise Cancelled("the client has gone")
            pieces.append(piece)
            have += len(piece)
        content = b"".join(pieces)
        self.buffer = content[length:]
        return content[:length]

    def _more(self) -> bool:
        piece = self._receive(1 << 16)
        self.buffer += piece
        return bool(piece)

    def _receive(self, most: int) -> bytes:
        """What comes next, before the deadline, which moves with what has come."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)
        piece = self.socket.recv(most)
        self.deadline += len(piece) / SLOWEST_BYTES
        return piece

    def _send(
        self, response: Response, method: str, version: str, keep: bool = False, origin: str = ""
    ) -> None:
        self.socket.settimeout(WRITE_SECONDS)
        streamed = response.lines is not None
        chunked = streamed and version != "HTTP/1.0"
        status = response.status
        head = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}",
            f"Content-Type: {response.content_type}",
            f"Date: {_http_date()}",
        ]
        if chunked:
            head.append("Transfer-Encoding: chunked")
        elif not streamed:
            head.append(f"Content-Length: {len(response.content)}")
        if origin and self.listener.origins is not None and status != 403:
            head += [
                f"Access-Control-Allow-Origin: {_one_line(origin)}",
                "Access-Control-Allow-Methods: GET, POST, DELETE, HEAD, OPTIONS",
                "Access-Control-Allow-Headers: Authorization, Content-Type, User-Agent, Accept, "
                "X-Requested-With",
                "Vary: Origin",
            ]
        if not keep or (streamed and not chunked):
            head.append("Connection: close")
        raw = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1", "replace")
        if not streamed or method == "HEAD":
            self.socket.sendall(raw + (b"" if method == "HEAD" else response.content))
            return
        self._stream(raw, response, chunked)

    def _stream(self, head: bytes, response: Response, chunked: bool) -> None:
        pending = head
        with closing(response.pieces()) as pieces:
            for content in pieces:
                if chunked:
                    content = b"%x\r\n%s\r\n" % (len(content), content)
                self.socket.sendall(pending + content)
                pending = b""
        self.socket.sendall(pending + (b"0\r\n\r\n" if chunked else b""))


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise HTTPError(400, "this is no HTTP/1 request")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or not name:
            raise HTTPError(400, "invalid header")
        name = name.lower()
        if name in headers and name in {"content-length", "transfer-encoding", "host"}:
            raise HTTPError(400, f"the header {name} stands twice")
        headers[name] = value.strip()
    return parts[0].upper(), parts[1], parts[2], headers


def _path(target: str) -> str:
    try:
        return urllib.parse.urlsplit(target).path
    except ValueError:
        raise HTTPError(400, "invalid request target") from None


def _keeps_alive(version: str, headers: Mapping[str, str]) -> bool:
    wish = headers.get("connection", "").lower()
    return wish == "keep-alive" if version == "HTTP/1.0" else wish != "close"


def _one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def _http_date() -> str:
    # email.utils would do, and costs more to import than all else here.
    now = time.gmtime()
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return (
        f"{days[now.tm_wday]}, {now.tm_mday:02d} {months[now.tm_mon - 1]} {now.tm_year} "
        f"{now.tm_hour:02d}:{now.tm_min:02d}:{now.tm_sec:02d} GMT"
    )
