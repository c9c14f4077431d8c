"""The engine's process: locks, sockets, signals, idle exit.

Two locks in the runtime folder. ``instance.lock`` is held for life: whoever has it is the
engine, and the kernel frees it when the process dies, however it dies. ``start.lock`` is held
by whoever starts an engine and, for a moment, by an engine that wants to leave: it stops
accepting, looks once more for a client, removes its socket and goes, so that no client finds
a socket behind which nobody will answer.
"""

from __future__ import annotations

import fcntl
import logging
import logging.handlers
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from jarvis import __version__
from jarvis.config import Config
from jarvis.engine import launcher, options
from jarvis.engine.api import Engine
from jarvis.engine.http import Listener
from jarvis.engine.origins import Origins
from jarvis.engine.pool import Pool
from jarvis.engine.store import write_json
from jarvis.errors import JarvisError, UsageError
from jarvis.paths import Paths, private_file, private_folder

log = logging.getLogger("jarvis.engine")

DRAIN_SECONDS = 30.0
"""How long SIGTERM waits for answers that are being written."""

_LOG_BYTES, _LOG_FILES = 2 << 20, 3
_SWEEP_SECONDS = 1.0
_DEFAULT_KEEP_ALIVE = 600.0


def serve(
    paths: Paths,
    config: Config,
    *,
    host: str = "",
    port: int = 0,
    idle_minutes: float | None = None,
    foreground: bool = True,
) -> int:
    """Runs the engine until it is idle for long enough, or told to stop.

    Args:
        host, port: a TCP address to listen on besides the socket; empty: no TCP at all.
        idle_minutes: 0 stays for ever; None takes the configured time.
        foreground: log to standard error too.

    Raises:
        JarvisError: an engine of this data folder runs already, or an address is taken.
    """
    private_folder(paths.runtime)
    private_folder(paths.engine_runtime)
    private_folder(paths.logs)
    _set_up_log(paths.logs / "engine.log", config.log.level, foreground=foreground)
    idle = config.engine.idle_minutes if idle_minutes is None else idle_minutes
    return _Server(paths, config, idle * 60).run(host, port)


class _Server:
    """One engine, from its lock to its end."""

    def __init__(self, paths: Paths, config: Config, idle: float) -> None:
        self.paths, self.config, self.idle = paths, config, idle
        keep_alive = options.keep_alive(config.engine.keep_alive)
        self.pool = Pool(
            paths,
            config.engine.threads,
            _DEFAULT_KEEP_ALIVE if keep_alive is None else keep_alive,
            paths.logs / "engine-models.log",
        )
        self.engine = Engine(paths, config, self.pool)
        self.engine.shutdown = self.request_stop
        self.build = launcher.build()  # of the code that runs, not of what replaces it later
        self.listeners: list[Listener] = []
        self.stopping = threading.Event()
        self.inode = 0
        self.address = ""

    def run(self, host: str, port: int) -> int:
        instance = private_file(launcher.instance_lock(self.paths), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(instance, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(instance)
            raise JarvisError(
                "an engine of this data folder runs already", "jarvis engine status shows it"
            ) from None
        try:
            self._sweep_runtime()
            if host:
                self._listen_on_tcp(host, port)
            # Before the socket: whoever finds that answering may read the record.
            self._record()
            self._listen()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.request_stop())
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            for listener in self.listeners:
                listener.start()
            where = [self.address] if self.address else []
            where.append(str(launcher.socket_path(self.paths)))
            log.info("engine %s serves on %s", __version__, " and ".join(where))
            self._wait()
        finally:
            self._leave()
            os.close(instance)
        return 0

    def request_stop(self) -> None:
        """Begins the end: no new connections, running answers are finished."""
        self.stopping.set()

    def _sweep_runtime(self) -> None:
        """Removes sockets that a killed engine left. We hold the lock, so they are nobody's."""
        for stale in self.paths.engine_runtime.glob("*.sock"):
            stale.unlink(missing_ok=True)

    def _listen(self) -> None:
        path = launcher.socket_path(self.paths)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        bound.bind(os.fspath(path))
        path.chmod(0o600)
        self.inode = path.stat().st_ino
        bound.listen(128)
        self.listeners.append(Listener(bound, self.engine.handle, None))

    def _listen_on_tcp(self, host: str, port: int) -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            bound = socket.socket(family, socket.SOCK_STREAM)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, port))
            bound.listen(128)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                "choose another address with --host and --port",
            ) from error
        name, number = bound.getsockname()[:2]
        self.address = f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}"
        origins = Origins(host, os.environ.get("OLLAMA_ORIGINS", ""))
        self.listeners.append(Listener(bound, self.engine.handle, origins))

    def _record(self) -> None:
        write_json(
            launcher.record_path(self.paths),
            {
                "pid": os.getpid(),
                "version": __version__,
                "build": self.build,
                "started": time.time(),
                "address": self.address,
                "python": sys.executable,
            },
        )

    def _wait(self) -> None:
        """Until told to stop, or idle and nobody is about to come."""
        while not self.stopping.wait(_SWEEP_SECONDS):
            self.pool.sweep()
            if not self._has_its_socket():
                log.warning("the socket is gone, nobody can come: leaving")
                break
            if self.idle and self._idle_for() > self.idle and self._try_to_leave():
                return
        self._close_listeners()
        end = time.monotonic() + DRAIN_SECONDS
        while any(listener.active for listener in self.listeners) and time.monotonic() < end:
            time.sleep(0.05)

    def _idle_for(self) -> float:
        if any(listener.active for listener in self.listeners) or self.pool.pinned():
            return 0.0
        return time.monotonic() - max(listener.last_active for listener in self.listeners)

    def _try_to_leave(self) -> bool:
        """The protocol of the module's docstring. False: somebody came, stay."""
        with suppress(BlockingIOError), launcher.start_lock(self.paths, wait=False):
            for listener in self.listeners:
                listener.pause()
            if not any(listener.accept_waiting() or listener.active for listener in self.listeners):
                log.info("idle: leaving")
                self._unlink()
                self._close_listeners()
                return True
            for listener in self.listeners:
                listener.start()
        return False

    def _has_its_socket(self) -> bool:
        """Whether the socket at our path is ours: the folder may be removed, or another's now."""
        with suppress(OSError):
            return launcher.socket_path(self.paths).stat().st_ino == self.inode
        return False

    def _unlink(self) -> None:
        if not self._has_its_socket():
            return
        launcher.socket_path(self.paths).unlink(missing_ok=True)
        launcher.record_path(self.paths).unlink(missing_ok=True)

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            listener.pause()
            listener.socket.close()

    def _leave(self) -> None:
        self._unlink()
        self.pool.close()
        log.info("engine stopped")


def _set_up_log(path: Path, level: str, *, foreground: bool) -> None:
    class PrivateFile(logging.handlers.RotatingFileHandler):
        """Rotates; every file is 0600."""

        def _open(self) -> object:  # type: ignore[override]
            return os.fdopen(private_file(Path(self.baseFilename)), "a", encoding="utf-8")

    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handlers: list[logging.Handler] = [
        PrivateFile(path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8")
    ]
    if foreground:
        handlers.append(logging.StreamHandler(sys.stderr))
    log.handlers.clear()
    for handler in handlers:
        handler.setFormatter(form)
        log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
