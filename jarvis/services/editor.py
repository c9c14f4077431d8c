"""The user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from jarvis.errors import UsageError


def run(path: Path) -> None:
    """Opens ``path`` in ``$VISUAL`` or ``$EDITOR`` (else vi) and waits until it is closed.

    Raises:
        UsageError: the editor cannot be started, or failed.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise UsageError(
            f"the editor {command[0]} cannot be started: {error.strerror}",
            "set EDITOR to one that can",
        ) from error
    if code:
        raise UsageError(f"the editor {command[0]} failed with {code}", "nothing was taken over")


def edited(draft: str, *, suffix: str = ".md") -> str:
    """Lets the user change a text, in a private file that is gone afterwards.

    Returns:
        What was saved, without line ends at the end.

    Raises:
        UsageError: the editor cannot be started, or failed.
    """
    with tempfile.TemporaryDirectory(prefix="jarvis-") as folder:
        path = Path(folder) / f"message{suffix}"
        path.write_text(draft, encoding="utf-8")
        path.chmod(0o600)
        run(path)
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
