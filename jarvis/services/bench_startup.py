"""CPU time until Jarvis is ready, beside another command-line assistant's.

Ratios of two programs measured in turn on the same machine say more than seconds. The other
program is ``llm`` (https://llm.datasette.io), where it is installed.
"""

from __future__ import annotations

import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jarvis.services.bench_latency import Figure, figure

JARVIS = (sys.executable, "-m", "jarvis")
BARS = {"--version": 0.05, "memory list": 0.45, "first prompt of the chat": 0.5}
"""At most these parts of ``llm --version`` (section 11 of the design)."""
PROMPT_TIMEOUT_S = 60.0


def find_other(named: str = "") -> str | None:
    """The ``llm`` program: the one named, or the one on PATH."""
    return named or shutil.which("llm")


def run(other: str, rounds: int, progress: Callable[[str], None]) -> list[Figure]:
    """CPU seconds of each command, as a ratio to ``llm --version``.

    Args:
        other: the ``llm`` program.
        rounds: measurements of each, in turn.
    """
    commands: dict[str, Callable[[], float]] = {
        "--version": lambda: cpu_seconds([*JARVIS, "--version"]),
        "memory list": lambda: cpu_seconds([*JARVIS, "memory", "list"]),
        "first prompt of the chat": cpu_until_prompt,
    }
    reference = [other, "--version"]
    cpu_seconds(reference)
    for measure in commands.values():
        measure()  # once unmeasured: compiled files, pages in memory
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    base: list[float] = []
    for number in range(rounds):
        progress(f"start-up, round {number + 1} of {rounds}")
        base.append(cpu_seconds(reference))
        for name, measure in commands.items():
            ratios[name].append(measure() / base[-1])
    figures = [figure("llm --version", "ms CPU", [value * 1000 for value in base])]
    for name, values in ratios.items():
        line = figure(f"jarvis {name}, against llm --version", "×", values)
        met = line.median <= BARS[name]
        figures.append(figure(line.name, "×", values, bar=f"≤ {BARS[name]:g}", met=met))
    return figures


def cpu_seconds(command: Sequence[str]) -> float:
    """User and system time of a command and of what it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def cpu_until_prompt() -> float:
    """CPU time of a chat in a terminal of its own until its first prompt is drawn."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(JARVIS[0], [*JARVIS, "chat"])  # noqa: S606
    try:
        seen = b""
        deadline = time.monotonic() + PROMPT_TIMEOUT_S
        while time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 1.0)
            if ready:
                seen += _read(terminal)
            if "› ".encode() in seen or b"> " in seen:
                return _cpu_of(child)
        raise TimeoutError("the chat showed no prompt")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def _cpu_of(process: int) -> float:
    """CPU seconds of a running process so far; Linux tells by /proc, others by ps."""
    stat = Path(f"/proc/{process}/stat")
    if stat.exists():
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    shown = subprocess.run(
        ["ps", "-o", "time=", "-p", str(process)], capture_output=True, text=True, check=True
    ).stdout.strip()
    minutes, _, seconds = shown.replace(",", ".").rpartition(":")
    return int(minutes or 0) * 60 + float(seconds)
