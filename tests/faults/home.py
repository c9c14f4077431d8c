"""A home with an embedded server and engine of its own, and the program run in it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from jarvis import postgres
from jarvis.paths import Paths

CONFIG = """
user = "tester"
[chat]
provider = "embedded"
model = "qwen2.5-coder:0.5b"
temperature = 0
[embedding]
provider = "embedded"
[context]
answer_tokens = 64
"""

PROGRAM = (
    "import faulthandler, runpy, signal;"
    " faulthandler.register(signal.SIGUSR1);"
    " runpy.run_module('jarvis', run_name='__main__', alter_sys=True)"
)
"""``python -m jarvis``, and SIGUSR1 makes it say where every thread of it stands."""


@dataclass
class Home:
    """Where everything of one run lies. ``environment`` reaches it."""

    folder: Path
    paths: Paths
    environment: dict[str, str] = field(default_factory=dict)

    def start(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """``jarvis ARGUMENTS`` in a process group of its own; output into files beside it."""
        with (
            tempfile.TemporaryFile() as source,
            (self.folder / "stdout").open("wb") as out,
            (self.folder / "stderr").open("wb") as err,
        ):
            source.write(stdin)
            source.seek(0)
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments],
                stdin=source,
                stdout=out,
                stderr=err,
                env={**self.environment, **(env or {})},
                start_new_session=True,
            )

    @property
    def stdout(self) -> str:
        """What the last started process has written so far."""
        return (self.folder / "stdout").read_text("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Likewise."""
        return (self.folder / "stderr").read_text("utf-8", "replace")

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout: float = 240,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """``jarvis ARGUMENTS``, to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "jarvis", *arguments],
            input=stdin,
            capture_output=True,
            env={**self.environment, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace")
        )

    def standing(self, pid: int) -> str:
        """Where a process that :meth:`start` made stands, who serves it, and who waits for whom."""
        os.kill(pid, signal.SIGUSR1)
        time.sleep(1)
        # A machine whose processors others have is slow, and looks like a program that hangs.
        lines = [
            self.stderr,
            f"processes: {self.pids()}",
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, nice {os.nice(0)}",
        ]
        with contextlib.suppress(psycopg.Error), self.sql() as connection:
            rows = connection.execute(
                "SELECT pid, pg_blocking_pids(pid), state, wait_event_type, wait_event, query"
                " FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ).fetchall()
            lines += [" | ".join(str(value) for value in row) for row in rows]
        return "\n".join(lines)

    @contextlib.contextmanager
    def sql(self, dbname: str = postgres.DATABASE) -> Iterator[psycopg.Connection]:
        """A connection that sees everything."""
        address = postgres.ensure_running(self.paths)
        with psycopg.connect(
            host=address.host,
            port=address.port,
            user=postgres.ADMIN_ROLE,
            dbname=dbname,
            autocommit=True,
        ) as connection:
            yield connection

    def pids(self) -> dict[str, int]:
        """The processes of this home that can be killed, by name."""
        from jarvis.engine import launcher

        found: dict[str, int] = {}
        server = postgres.status(self.paths).pid
        if server is not None:
            found["postgres"] = server
            with contextlib.suppress(psycopg.Error), self.sql() as connection:
                row = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                    " AND pid <> pg_backend_pid() LIMIT 1"
                ).fetchone()
                if row is not None:
                    found["backend"] = row[0]
        engine = launcher.status(self.paths)
        if engine.pid:
            found["engine"] = engine.pid
        for lock in self.paths.state.glob("worker-*.lock"):
            with contextlib.suppress(ValueError, OSError):
                pid = int(lock.read_text())
                if pid > 1 and "worker" in Path(f"/proc/{pid}/cmdline").read_text():
                    found["worker"] = pid
        return found


def kill(pid: int) -> bool:
    """SIGKILL; whether there was such a process."""
    assert pid > 1, "0 would be our own process group"
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def records(text: str) -> list[dict[str, Any]]:
    """The whole JSON lines of ``text``; a torn last line is no record."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


@contextlib.contextmanager
def home(models: Path, prefix: str = "jf", folder: Path | None = None) -> Iterator[Home]:
    """A fresh home, with the models of ``models``; all its processes are ended at the end."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
                )
            )
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JARVIS_", "OLLAMA_"))
        }
        environment = {**kept, "JARVIS_HOME": str(folder / "home"), "JARVIS_MODELS": str(models)}
        paths = Paths.from_environment(environment)
        paths.config.mkdir(mode=0o700, parents=True)
        paths.config_file.write_text(CONFIG)
        paths.config_file.chmod(0o600)
        made = Home(folder, paths, environment)
        try:
            yield made
        finally:
            for name, pid in made.pids().items():
                if name != "postgres":
                    kill(pid)
            from jarvis.engine import launcher

            launcher.stop(paths)
            postgres.remove(paths)
