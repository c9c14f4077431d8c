"""The client's side of the engine: where it is, start it, stop it, ask how it does.

Standard library only, and light: every command that needs a model comes through here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jarvis import __version__
from jarvis.errors import ProviderUnavailable
from jarvis.paths import Paths, private_file, private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jarvis.config import Config

START_SECONDS = 30.0
"""How long a started engine may take until it accepts (it loads no model before that)."""

STOP_SECONDS = 40.0
"""How long an engine may take to finish its answers and leave."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How the engine does. ``models`` are entries of ``/api/ps``."""

    running: bool
    pid: int = 0
    version: str = ""
    socket: str = ""
    address: str = ""
    memory: int = 0
    uptime_ms: int = 0
    requests: int = 0
    models: tuple[dict[str, Any], ...] = field(default_factory=tuple)


def socket_path(paths: Paths) -> Path:
    """The engine's socket. Nothing is created."""
    return paths.engine_runtime / "engine.sock"


def record_path(paths: Paths) -> Path:
    """What the running engine says about itself: pid, version, address."""
    return paths.engine_runtime / "engine.json"


def instance_lock(paths: Paths) -> Path:
    """Locked by the engine for as long as it lives."""
    return paths.engine_runtime / "instance.lock"


def build() -> str:
    """Which engine this is: the version, and the sizes of the engine's modules.

    So a checkout that was updated replaces its engine too, not only a new release.
    """
    import zlib

    folder = Path(__file__).parent
    with os.scandir(folder) as entries:
        sizes = sorted((each.name, each.stat().st_size) for each in entries if each.is_file())
    return f"{__version__}+{zlib.crc32(repr(sizes).encode()):08x}"


def ensure_running(
    paths: Paths, config: Config | None = None, *, progress: Callable[[str], None] | None = None
) -> Path:
    """Returns the socket of an engine that accepts connections; starts one where none does.

    An engine of another version of Jarvis is asked to finish and replaced.

    Args:
        progress: told in a few words when there is something to wait for.

    Raises:
        ProviderUnavailable: it does not start; the message has the reason, the hint the log.
    """
    path = socket_path(paths)
    if answers(path) and not _is_other_version(paths):
        return path
    private_folder(paths.runtime)
    private_folder(paths.engine_runtime)
    with start_lock(paths):
        if answers(path):
            if not _is_other_version(paths):
                return path
            if progress is not None:
                progress("replacing the engine of another version")
            _stop(paths)
        if progress is not None:
            progress("starting the engine")
        _start(paths, config)
    return path


def stop(paths: Paths) -> bool:
    """Ends the engine: running answers are finished first. False when none ran.

    Raises:
        ProviderUnavailable: it does not end.
    """
    if not paths.engine_runtime.is_dir():
        return False
    with start_lock(paths):
        return _stop(paths)


def status(paths: Paths) -> EngineStatus:
    """Asks the engine how it does. Never starts one."""
    from jarvis.engine.machine import resident_memory

    path, record = socket_path(paths), _record(paths)
    if not answers(path):
        return EngineStatus(running=False, socket=os.fspath(path))
    answer = _ask(path, "GET", "/api/jarvis") or {}
    pid = int(record.get("pid") or 0)
    return EngineStatus(
        running=True,
        pid=pid,
        version=str(answer.get("version") or record.get("version") or ""),
        socket=os.fspath(path),
        address=str(record.get("address") or ""),
        memory=resident_memory(pid) if pid else 0,
        uptime_ms=int(answer.get("uptime_ms") or 0),
        requests=int(answer.get("requests") or 0),
        models=tuple(answer.get("models") or ()),
    )


def unload(paths: Paths, model: str) -> None:
    """Asks a running engine to give the model's memory back. Never starts one."""
    _ask(socket_path(paths), "POST", "/api/jarvis/unload", {"model": model})


def answers(path: Path) -> bool:
    """Whether somebody accepts connections at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True


@contextmanager
def start_lock(paths: Paths, *, wait: bool = True) -> Iterator[None]:
    """Held while an engine is started, and by one that leaves.

    Raises:
        BlockingIOError: somebody else has it and ``wait`` is false.
    """
    descriptor = private_file(paths.engine_runtime / "start.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _start(paths: Paths, config: Config | None) -> None:
    private_folder(paths.state)
    private_folder(paths.logs)
    output = paths.logs / "engine-start.log"
    log = private_file(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # the folder "/" is no place to import from
                "-m",
                "jarvis.engine",
                "serve",
                "--spec",
                _spec(paths, config),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
            env=_environment(),
            cwd="/",
        )
    finally:
        os.close(log)
    end = time.monotonic() + START_SECONDS
    while not answers(socket_path(paths)):
        if process.poll() is not None:
            raise ProviderUnavailable(
                f"the embedded engine did not start: {_last_line(output)}", f"see {output}"
            )
        if time.monotonic() > end:
            process.kill()
            raise ProviderUnavailable(
                f"the embedded engine did not start within {START_SECONDS:.0f} s", f"see {output}"
            )
        time.sleep(0.02)
    # It lives on without us: nothing is to be waited for, and Python must not warn about that.
    process.returncode = 0


def _spec(paths: Paths, config: Config | None) -> str:
    """The paths and settings of this process, so that the engine has the same."""
    spec: dict[str, Any] = {
        "paths": {name: os.fspath(getattr(paths, name)) for name in Paths.__slots__}
    }
    if config is not None:
        engine = config.engine
        spec["engine"] = {name: getattr(engine, name) for name in type(engine).__slots__}
        spec["log"] = config.log.level
    return json.dumps(spec)


def _environment() -> dict[str, str]:
    """This process's variables, with the package importable from any folder."""
    import jarvis

    package = os.fspath(Path(jarvis.__file__).parent.parent)
    others = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([package, *others])}


def _stop(paths: Paths) -> bool:
    path = socket_path(paths)
    running = answers(path)
    if running:
        _ask(path, "DELETE", "/api/jarvis")
    end = time.monotonic() + STOP_SECONDS
    while _instance_locked(paths):
        if time.monotonic() > end:
            raise ProviderUnavailable(
                "the engine does not stop: it still writes an answer",
                f"wait, or end process {_record(paths).get('pid', '?')}",
            )
        time.sleep(0.02)
    return running


def _instance_locked(paths: Paths) -> bool:
    try:
        descriptor = os.open(instance_lock(paths), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in {errno.EWOULDBLOCK, errno.EAGAIN}
    finally:
        os.close(descriptor)
    return False


def _is_other_version(paths: Paths) -> bool:
    running = _record(paths).get("build")
    return running is not None and running != build()


def _record(paths: Paths) -> dict[str, Any]:
    try:
        value = json.loads(record_path(paths).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _ask(
    path: Path, method: str, target: str, body: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """One small request; None when it is not answered within a few seconds."""
    sent = "" if body is None else json.dumps(body)
    request = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Length: {len(sent)}\r\n\r\n{sent}"
    )
    content = b""
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(os.fspath(path))
        client.sendall(request.encode())
        while piece := client.recv(1 << 16):
            content += piece
        value = json.loads(content.partition(b"\r\n\r\n")[2])
        return value if isinstance(value, dict) else None
    return None


def _last_line(path: Path) -> str:
    with suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:300]
    return "no reason given"
