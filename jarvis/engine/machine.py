"""What this machine can run: cores, memory, and the chat model that follows from them.

Limits of a container count. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from jarvis.engine import catalogue
from jarvis.engine.catalogue import DefaultModel

_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_CORE_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Processor cores that this process may use: its affinity and its container's quota."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = _CORE_LIMIT.read_text().split()
        count = min(count, max(1, round(int(quota) / int(period))))
    return count


def memory_bytes() -> int:
    """Physical memory, or the container's limit where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):
            total = min(total, int(limit.read_text()))
    return total


def available_memory() -> int:
    """Bytes that can be taken now without swapping; an estimate where the system has none."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, memory_bytes())
    return memory_bytes() * 3 // 4


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process holds; 0 when it is gone or cannot be asked."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    try:  # no such file system: macOS
        shown = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)],
            capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip
        return int(shown.stdout) * 1024
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor; 0 when it is gone or cannot be asked."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def default_chat_model() -> DefaultModel:
    """The catalogue's chat model for this machine. Asks the network only where that decides."""
    have_cores, have_memory = cores(), memory_bytes()
    decided = catalogue.default_chat_model(have_cores, have_memory, huggingface=False)
    if decided.name == catalogue.default_chat_model(have_cores, have_memory, huggingface=True).name:
        return decided
    from jarvis.engine.pull import huggingface_reachable

    return catalogue.default_chat_model(
        have_cores, have_memory, huggingface=huggingface_reachable()
    )
