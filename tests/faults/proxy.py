"""A proxy before the server's socket that can cut, hold and refuse connections."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

PORT = 5432


class Proxy:
    """Passes bytes between clients and the server at ``target``.

    Attributes:
        folder: the host to connect to, instead of the server's.
        refusing: new connections are closed at once.
        connections: how many were made so far.
    """

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self.refusing = False
        self.connections = 0
        self._target = target
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> int:
        """Ends every connection without a farewell; returns how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self) -> None:
        """Ends the proxy."""
        self.refusing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                server.connect(str(self._target))
            except OSError:
                client.close()
                server.close()
                continue
            self.connections += 1
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        with client, server, contextlib.suppress(OSError, ValueError):
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    other[end].sendall(data)


@contextlib.contextmanager
def proxied(target: Path) -> Iterator[Proxy]:
    """A proxy before the socket ``target``."""
    with tempfile.TemporaryDirectory(prefix="jx") as folder:
        proxy = Proxy(Path(folder), target)
        try:
            yield proxy
        finally:
            proxy.close()
