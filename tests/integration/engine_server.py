"""An engine of a test's own, with tiny models, and a way to talk to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jarvis.config import Config, EngineSettings
from jarvis.engine import launcher, store
from jarvis.paths import Paths
from tests import tiny_model

MODELS = {
    "tiny": {"context": 32_768},
    "strict": {"template": tiny_model.STRICT_TEMPLATE},
    "short": {"context": 256},
    "thinker": {"template": tiny_model.THINKING_TEMPLATE},
}


@dataclass
class Served:
    """A running engine and a client of it."""

    paths: Paths
    client: httpx.Client

    @property
    def pid(self) -> int:
        """The engine's process."""
        pid = launcher.status(self.paths).pid
        assert pid > 0
        return pid

    def post(self, path: str, body: dict[str, Any], **more: Any) -> httpx.Response:
        """One POST."""
        return self.client.post(path, json=body, **more)

    def chat(self, text: str = "hi", model: str = "tiny", **fields: Any) -> dict[str, Any]:
        """One answer, not streamed."""
        body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": False}
        fields["options"] = {"num_predict": 4, **fields.get("options", {})}
        response = self.post("/api/chat", {**body, **fields})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def lines(self, path: str, body: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """A stream, whole."""
        with self.client.stream("POST", path, json=body, **more) as response:
            assert response.status_code == 200, response.read()
            return [json.loads(line) for line in response.iter_lines()]


def install(paths: Paths) -> None:
    """Puts the tiny models into the store."""
    for name, shape in MODELS.items():
        file = tiny_model.write(store.partial_folder(paths) / f"{name}.gguf", **shape)  # type: ignore[arg-type]
        store.add(paths, name, file, store.sha256(file), "made by a test")


@contextmanager
def home() -> Iterator[Paths]:
    """Paths in a short temporary folder with the tiny models; its engine is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="je", ignore_cleanup_errors=True) as folder:
        paths = Paths.from_environment({"JARVIS_HOME": folder})
        install(paths)
        try:
            yield paths
        finally:
            launcher.stop(paths)


@contextmanager
def served(paths: Paths, **engine: Any) -> Iterator[Served]:
    """The engine of ``paths``, running."""
    config = Config(engine=EngineSettings(**engine))
    socket = launcher.ensure_running(paths, config)
    with client(socket) as made:
        yield Served(paths, made)


def client(socket: Path) -> httpx.Client:
    """A client of the socket."""
    transport = httpx.HTTPTransport(uds=str(socket))
    return httpx.Client(transport=transport, base_url="http://localhost", timeout=60)


def environment(paths: Paths) -> dict[str, str]:
    """The variables of a process in this home."""
    home = str(paths.data.parent)
    return {**os.environ, "JARVIS_HOME": home, "JARVIS_MODELS": str(paths.models)}


@contextmanager
def on_tcp(paths: Paths, **variables: str) -> Iterator[str]:
    """``serve --host 127.0.0.1`` as a process; yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jarvis.engine", "serve", "--host", "127.0.0.1", "--port", "0"],
        env={**environment(paths), **variables},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: launcher.answers(launcher.socket_path(paths)))
        yield launcher.status(paths).address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def children(pid: int) -> list[int]:
    """The processes that ``pid`` started and that live."""
    shown = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in shown.stdout.split()]


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(condition: Any, seconds: float = 60) -> Any:
    """Waits until ``condition()`` is true and returns what it returned."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)
    return value
