"""The embedded engine, seen from outside: started, stopped, looked at, run in the foreground."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING

from jarvis.engine import launcher
from jarvis.engine.launcher import EngineStatus
from jarvis.errors import UsageError

if TYPE_CHECKING:
    from jarvis.config import Config
    from jarvis.paths import Paths


def start(paths: Paths, config: Config, progress: Callable[[str], None]) -> EngineStatus:
    """Starts the engine where none runs.

    Raises:
        ProviderUnavailable: it does not start.
    """
    launcher.ensure_running(paths, config, progress=progress)
    return launcher.status(paths)


def stop(paths: Paths) -> bool:
    """Stops it: answers that are being written are finished. False: none ran."""
    return launcher.stop(paths)


def status(paths: Paths) -> EngineStatus:
    """How it does. Starts nothing."""
    return launcher.status(paths)


def serve(
    paths: Paths,
    config: Config,
    *,
    host: str,
    port: int,
    idle_minutes: float,
    warn: Callable[[str], None],
) -> int:
    """Runs the engine in this process until Ctrl-C; with ``host`` as an Ollama for others too.

    Raises:
        UsageError: the address is none, or is taken.
        JarvisError: an engine of this data folder runs already.
    """
    from jarvis.engine import server

    if not 0 <= port <= 65_535:
        raise UsageError(f"{port} is no port", "give one from 1 to 65535; 0 takes a free one")
    if host and not _is_loopback(host):
        warn(f"{host} can be reached from other machines: whoever does can use the models")
    return server.serve(paths, config, host=host, port=port, idle_minutes=idle_minutes)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
