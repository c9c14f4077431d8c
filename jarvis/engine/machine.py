"""What this machine can run: cores, memory, and the chat model that follows from them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from jarvis.engine import catalogue
from jarvis.engine.catalogue import DefaultModel

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def cores() -> int:
    """Processor cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory, or a container's limit where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            total = min(total, int(limit.read_text()))
    return total


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
