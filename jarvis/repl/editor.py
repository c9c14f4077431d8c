"""Writing in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from jarvis.errors import UsageError


def edited(draft: str, *, suffix: str = ".md") -> str:
    """Lets the user change ``draft`` in ``$VISUAL`` or ``$EDITOR`` (else vi).

    Returns:
        What was saved, without line ends at the end.

    Raises:
        UsageError: the editor cannot be started.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="jarvis-") as folder:
        path = Path(folder) / f"message{suffix}"
        path.write_text(draft, encoding="utf-8")
        path.chmod(0o600)
        try:
            subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise UsageError(
                f"the editor {command[0]} cannot be started: {error.strerror}",
                "set EDITOR to one that can",
            ) from error
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
