"""Tells the worker that somebody is waiting for an answer.

A turn holds the lock file shared while it runs; the worker looks whether it could have it alone.
The kernel releases it when a process dies, so a crash never leaves the worker waiting.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from jarvis.errors import JarvisError
from jarvis.paths import Paths, private_file, private_folder


def _open(paths: Paths) -> int:
    return private_file(private_folder(paths.runtime) / "turn.lock", os.O_RDWR | os.O_CREAT)


@contextlib.contextmanager
def running(paths: Paths) -> Iterator[None]:
    """Marks a turn as running until the block ends.

    In a home that cannot be written there is no mark, and no worker that looks for it.
    """
    try:
        descriptor = _open(paths)
    except (JarvisError, OSError):
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_running(paths: Paths) -> bool:
    """Whether any process answers a turn now."""
    descriptor = _open(paths)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
