"""Files that a user asks for: private, and never in place of another."""

from __future__ import annotations

import os
from pathlib import Path

from jarvis.errors import UsageError
from jarvis.paths import private_file


def write_new(path: Path, text: str) -> None:
    """Writes a file of mode 0600 that does not exist yet.

    Raises:
        UsageError: it exists, or cannot be written.
    """
    try:
        descriptor = private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise UsageError(f"{path} exists already", "give another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
