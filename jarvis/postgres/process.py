"""The running server: whether there is one, whether it is ours, and whether it answers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from jarvis.postgres import ADMIN_ROLE, PORT

PROC = Path("/proc")

_CANNOT_CONNECT_NOW = "57P03"


class Answer(Enum):
    """What the socket said."""

    READY = "ready"
    STARTING = "starting"
    """It listens, and is starting, recovering or shutting down."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class PidFile:
    """``postmaster.pid``. ``pid`` 0: it cannot be read."""

    path: Path
    pid: int

    @classmethod
    def read(cls, cluster: Path) -> PidFile | None:
        """The file of a data folder, or None."""
        path = cluster / "postmaster.pid"
        try:
            first = path.read_text("utf-8", "replace").split("\n", 1)[0].strip()
        except OSError:
            return None
        return cls(path, int(first) if first.isdigit() else 0)

    def replace_pid(self, pid: int) -> None:
        """Writes another number into the first line and keeps the rest.

        The rest names the shared memory. Postgres refuses to start while processes of a killed
        server still use it, and must be able to go on doing so.
        """
        lines = self.path.read_text("utf-8", "replace").split("\n")
        lines[0] = str(pid)
        self.path.write_text("\n".join(lines), "utf-8")


def running(cluster: Path) -> int | None:
    """The process id of the server of ``cluster``; None: it does not run.

    A number in a pid file proves nothing: it may long belong to another program. It is believed
    only when that process works in the data folder.
    """
    found = PidFile.read(cluster)
    if found is None or found.pid <= 0 or not works_in(found.pid, cluster):
        return None
    return found.pid


def works_in(pid: int, cluster: Path) -> bool:
    """Whether ``pid`` is alive and a Postgres of this data folder (they all ``chdir`` there)."""
    if (PROC / "self" / "cwd").exists():
        try:
            if not (PROC / str(pid) / "cwd").samefile(cluster):
                return False
            state = (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            return False
        return state not in {"Z", "X"}
    listing = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], check=False, capture_output=True, text=True
    )
    return "postgres" in listing.stdout and str(cluster) in listing.stdout


def stragglers(cluster: Path) -> list[int]:
    """Processes that a killed server left behind in its data folder (Linux)."""
    try:
        pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []
    return [pid for pid in pids if works_in(pid, cluster) and _is_postgres(pid)]


def _is_postgres(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().startswith(b"postgres:")
    except OSError:
        return False


def end_stragglers(cluster: Path, seconds: float = 10.0) -> None:
    """Ends what a killed server left behind: they hold its shared memory."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + seconds
        for pid in stragglers(cluster):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while stragglers(cluster) and time.monotonic() < deadline:
            time.sleep(0.02)


def ask(folder: Path | str, timeout: float = 5.0) -> Answer:
    """Says hello to the server at the socket in ``folder``, as its client library would."""
    try:
        with _hello(folder, timeout) as connection:
            kind, body = _message(connection)
    except (OSError, EOFError, struct.error):
        return Answer.NOTHING
    if kind == b"E" and _field(body, b"C") == _CANNOT_CONNECT_NOW:
        return Answer.STARTING
    return Answer.READY


def server_version(folder: Path | str, timeout: float = 5.0) -> str:
    """The running server's version (``18.4``), empty when it does not say."""
    try:
        with _hello(folder, timeout) as connection:
            while True:
                kind, body = _message(connection)
                if kind == b"S":
                    name, value, _ = body.split(b"\0", 2)
                    if name == b"server_version":
                        return value.decode().split()[0]
                elif kind in {b"E", b"Z"}:
                    return ""
    except (OSError, EOFError, struct.error, ValueError):
        return ""


@contextlib.contextmanager
def _hello(folder: Path | str, timeout: float) -> Iterator[socket.socket]:
    """A connection that has sent the start-up message of protocol 3.0, ended politely."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(str(Path(folder) / f".s.PGSQL.{PORT}"))
        body = f"user\0{ADMIN_ROLE}\0database\0postgres\0application_name\0jarvis\0\0".encode()
        connection.sendall(struct.pack("!ii", 8 + len(body), 3 << 16) + body)
        yield connection
        with contextlib.suppress(OSError):
            connection.sendall(b"X\0\0\0\4")
    finally:
        connection.close()


def _message(connection: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(connection, 1)
    (length,) = struct.unpack("!i", _exactly(connection, 4))
    return kind, _exactly(connection, length - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _field(body: bytes, code: bytes) -> str:
    """One field of an error message, for example its SQLSTATE (``C``)."""
    for field in body.split(b"\0"):
        if field[:1] == code:
            return field[1:].decode("utf-8", "replace")
    return ""
