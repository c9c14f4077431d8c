"""The engine's HTTP server by itself, under clients that mean no good. Its limits are shortened."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jarvis.engine import http
from jarvis.engine.request import Request, Response, json_response


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(http, "READ_SECONDS", 0.5)
    monkeypatch.setattr(http, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 4)

    def echo(request: Request) -> Response:
        return json_response({"path": request.path, "bytes": len(request.body)})

    bound = socket.socket(socket.AF_UNIX)
    path = str(tmp_path / "s")
    bound.bind(path)
    bound.listen(16)
    listener = http.Listener(bound, echo, None)
    listener.start()
    yield path
    listener.pause()
    bound.close()


def connect(address: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(20)
    client.connect(address)
    return client


def everything(client: socket.socket) -> bytes:
    """What comes until the server closes."""
    answer = b""
    while piece := client.recv(1 << 16):
        answer += piece
    return answer


def drip(client: socket.socket, begin: bytes) -> bytes:
    """Sends one byte after the other, faster than any single pause is too long."""
    client.sendall(begin)
    client.settimeout(0.05)
    while True:
        try:
            return client.recv(1 << 16)
        except TimeoutError:
            client.sendall(b"a")


@pytest.mark.parametrize("begin", [b"GET /", b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"])
def test_a_request_that_drips_in_ends(address: str, begin: bytes) -> None:
    with connect(address) as client:
        assert drip(client, begin).startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_and_a_slow_but_steady_one_is_served(address: str) -> None:
    with connect(address) as client:
        assert everything(client) == b""
    with connect(address) as client:
        size = 12 * http.SLOWEST_BYTES
        client.sendall(b"POST /x HTTP/1.1\r\nConnection: close\r\n")
        client.sendall(b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(6):
            client.sendall(bytes(size // 6))
            time.sleep(0.2)  # together longer than a request that sends nothing may take
        assert json.loads(everything(client).partition(b"\r\n\r\n")[2])["bytes"] == size


def test_pipelined_requests_are_answered_in_order(address: str) -> None:
    with connect(address) as client:
        client.sendall(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(9)))
        client.sendall(b"GET /last HTTP/1.1\r\nConnection: close\r\n\r\n")
        answer = everything(client).decode()
    places = [answer.index(f'"/{name}"') for name in [*range(9), "last"]]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", 200),
        (b"3;ext=1\r\nabc\r\n0\r\n\r\n", 200),
        (b"0x3\r\nabc\r\n0\r\n\r\n", 400),
        (b"-3\r\nabc\r\n", 400),
        (b"1_0\r\n", 400),
        (b"\r\n", 400),
        (b"f" * 2000, 400),
        (b"ffffffffffffffffff\r\n", 413),
        (b"1\r\na\r\n" * (http.MAX_BODY // http.CHUNK_OVERHEAD + 1), 413),
    ],
)
def test_chunked_bodies(address: str, chunks: bytes, status: int) -> None:
    with connect(address) as client:
        with suppress(BrokenPipeError):  # it has heard enough
            client.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        assert client.recv(100).startswith(b"HTTP/1.1 %d " % status)


def test_strange_targets_are_answered(address: str) -> None:
    for target, status in ((b"//[", 400), (b"/\xff%00", 200), (b"*", 200), (b"http://x/y", 200)):
        with connect(address) as client:
            client.sendall(b"GET %s HTTP/1.1\r\n\r\n" % target)
            assert client.recv(100).startswith(b"HTTP/1.1 %d " % status), target


def test_too_many_connections_are_told_and_then_closed(address: str) -> None:
    clients = [connect(address) for _ in range(4)]
    told, unheard = connect(address), []
    told.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert told.recv(100).startswith(b"HTTP/1.1 503 ")
    unheard = [connect(address) for _ in range(8)]
    assert b"" in [_first(each) for each in unheard]
    for each in (*clients, told, *unheard):
        each.close()
    for _ in range(200):  # they have gone, so there is room
        with connect(address) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            if client.recv(100).startswith(b"HTTP/1.1 200 "):
                return
        time.sleep(0.05)
    raise AssertionError("no room again")


def _first(client: socket.socket) -> bytes:
    try:
        return client.recv(1)
    except OSError:
        return b""
