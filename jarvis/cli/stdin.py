"""What a command reads from stdin.

``-`` waits for it. Without a prompt, a pipe is the prompt. With a prompt and a pipe, one second
is given for a first byte: a cron job or an editor often leaves an open pipe there that nobody
ever writes to.
"""

from __future__ import annotations

import select
import sys
from typing import TextIO

from jarvis.cli.output import is_terminal, note
from jarvis.errors import UsageError

FIRST_BYTE = 1.0
"""Seconds that an unasked-for pipe has to bring its first byte."""
MAX_BYTES = 64 * 2**20
"""The most that is read: some pipes never end."""


def read_stdin(*, explicit: bool = False, have_prompt: bool = False) -> str | None:
    """Reads all of stdin as text (UTF-8; other bytes become U+FFFD), or not.

    Args:
        explicit: ``-`` was given: wait for the end of input, also at a terminal.
        have_prompt: there is a prompt already, so stdin is an addition that may be absent.

    Returns:
        The text; None when there is nothing to read (a terminal, a closed stdin, a pipe in
        which nothing came, which is said on stderr).

    Raises:
        UsageError: stdin holds more than ``MAX_BYTES``.
    """
    stream = sys.stdin
    if stream is None or stream.closed or (not explicit and is_terminal(stream)):
        return None
    if have_prompt and not explicit and not _comes_soon(stream):
        note("stdin was not read: nothing came within a second (- waits for it)")
        return None
    data = stream.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"stdin holds more than {MAX_BYTES // 2**20} MiB",
            "put it into a file and add that with `jarvis doc ingest`",
        )
    return data.decode("utf-8-sig", "replace")


def _comes_soon(stream: TextIO) -> bool:
    """Whether there is a first byte, or the end, within a second."""
    try:
        ready, _, _ = select.select([stream], [], [], FIRST_BYTE)
    except (OSError, ValueError):
        return True  # no file of the system's: what is in memory is there already
    return bool(ready)
