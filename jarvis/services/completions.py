"""Ids, titles and model names for shell completion: a small private file, read by the shell.

One line each, ``kind TAB value TAB description``. The completion scripts read it without
starting Python; it is written after commands that know the lists anyway, and removed by every
command that deletes something, so that nothing deleted can be completed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jarvis.paths import Paths, private_file, private_folder
from jarvis.security.terminal import escape_controls

if TYPE_CHECKING:
    from jarvis.services.app import App

KINDS = ("session", "memory", "document", "model", "user")
DESCRIPTION_LENGTH = 60
MAX_VALUES = 500
"""Values of one kind that are kept: the newest."""


def update(paths: Paths, kind: str, values: Iterable[tuple[str, str]]) -> None:
    """Replaces the values of one kind; the others stay. Never fails: completion is a courtesy."""
    with contextlib.suppress(Exception):
        lines = [line for line in _lines(paths) if not line.startswith(kind + "\t")]
        for number, (value, description) in enumerate(values):
            if number >= MAX_VALUES:
                break
            text = escape_controls(" ".join(description.split()))[:DESCRIPTION_LENGTH]
            lines.append(f"{kind}\t{escape_controls(value)}\t{text}")
        private_folder(paths.cache)
        fresh = paths.completions.with_name(f".completions.{os.getpid()}")
        descriptor = private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.writelines(line + "\n" for line in lines)
        fresh.replace(paths.completions)


def values(paths: Paths, kind: str) -> list[tuple[str, str]]:
    """The values of one kind, with their descriptions."""
    found = []
    for line in _lines(paths):
        first, _, rest = line.partition("\t")
        if first == kind:
            value, _, description = rest.partition("\t")
            found.append((value, description))
    return found


def purge(paths: Paths) -> None:
    """Forgets everything."""
    with contextlib.suppress(OSError):
        paths.completions.unlink()


def refresh(app: App) -> None:
    """Writes the lists that the database has; for a moment when nobody waits."""
    from jarvis.services import overview

    with contextlib.suppress(Exception):
        for kind, found in overview.of(app).lists.items():
            update(app.paths, kind, found)


def _lines(paths: Paths) -> list[str]:
    try:
        return paths.completions.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
