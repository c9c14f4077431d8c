"""Starts and ends the processes that hold models (``runner`` is their side)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jarvis.engine import machine
from jarvis.engine.llama import Check
from jarvis.engine.runner import RunnerSpec
from jarvis.paths import private_file

_LOG_BYTES = 2 << 20

_SPIN_COUNT = "1000"
"""How long a thread of llama.cpp spins for the others before it sleeps (GNU OpenMP's unit).

Its default is for a machine of one's own. With other work on the cores, every thread then spins
for one that does not run: measured with 14 processes on two cores, 0.4 tokens/s against 15.
"""


class Failed(Exception):
    """A model that cannot be loaded, and why."""


def start(
    spec: RunnerSpec, log_file: Path, limit: float, check: Check
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Starts a runner and waits until it serves; returns it and what it reported.

    Args:
        limit: seconds that it may take.
        check: raises ``Cancelled`` when the client has gone.

    Raises:
        Failed: it cannot load the model; the text says why.
    """
    with suppress(FileNotFoundError):
        Path(spec.socket).unlink()
    reading, writing = os.pipe()
    _rotate(log_file)
    with os.fdopen(reading, "rb") as answers, os.fdopen(private_file(log_file), "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "jarvis.engine.runner", str(writing)],
            stdin=subprocess.PIPE,
            stdout=errors,
            stderr=errors,
            pass_fds=[writing],
            env={"GOMP_SPINCOUNT": _SPIN_COUNT, **os.environ},
            text=True,
        )
        os.close(writing)
        try:
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.write(spec.to_json() + "\n")
                    process.stdin.flush()
            line = _first_line(answers.fileno(), process.pid, spec.memory, limit, check)
        except BaseException:
            kill(process)
            raise
    if not line:
        how = _how_it_ended(process)
        kill(process)
        raise Failed(f"llama.cpp {how} while it read the file")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        kill(process)
        raise Failed(answer["error"])
    return process, answer


def _rotate(log_file: Path) -> None:
    """Keeps what llama.cpp prints bounded: one older file."""
    with suppress(FileNotFoundError):
        if log_file.stat().st_size > _LOG_BYTES:
            log_file.replace(log_file.with_name(log_file.name + ".1"))


def _first_line(descriptor: int, pid: int, memory: int, limit: float, check: Check) -> bytes:
    """What the runner reports. llama.cpp tries the file's template, which may never end."""
    line, end = b"", time.monotonic() + limit
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        check()
        if ready:
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                return b""
            line += piece
        elif time.monotonic() > end:
            raise Failed(f"the model was not loaded within {limit:.0f} s")
        elif machine.resident_memory(pid) > memory:
            raise Failed(f"the file asks for more than {memory >> 20} MiB of memory")
    return line


def _how_it_ended(process: subprocess.Popen[str]) -> str:
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "stopped answering"
    return f"was killed by signal {-code}" if code < 0 else f"exited with {code}"


def kill(process: subprocess.Popen[str]) -> None:
    """Ends a runner at once."""
    process.kill()
    process.wait()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def end(process: subprocess.Popen[str], address: str) -> None:
    """Ends a runner: closing its standard input is enough; a stuck one is killed."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    kill(process)
    with suppress(FileNotFoundError):
        Path(address).unlink()
