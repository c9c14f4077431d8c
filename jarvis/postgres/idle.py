"""Stops the server once nobody has used it for hours: ``python -m jarvis.postgres.idle``.

One small process beside each server, started with it. It sleeps until the server ends (then it
ends too) or until it is time to look again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from jarvis.paths import Paths

LOOKS = 8
"""How often it looks in the time after which it stops the server."""
LONGEST_S = 1800.0


def spawn(paths: Paths, pid: int, hours: float) -> None:
    """Starts the process that looks after the server ``pid``; 0 hours: none is wanted."""
    if not hours:
        return
    places = {field.name: str(getattr(paths, field.name)) for field in dataclasses.fields(paths)}
    command = [sys.executable, "-m", "jarvis.postgres.idle", str(pid), str(hours)]
    with contextlib.suppress(OSError):  # the server runs on; only nobody stops it
        child = subprocess.Popen(
            [*command, json.dumps(places)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        child.returncode = 0  # it stays when we leave: no warning about a running child


def watch(paths: Paths, pid: int, hours: float) -> None:
    """Returns when the server ``pid`` has ended, by itself or because it was idle."""
    from jarvis import postgres

    pause = min(hours * 3600 / LOOKS, LONGEST_S)
    while not _ended(pid, pause):
        if postgres.status(paths).pid != pid or postgres.stop_if_idle(paths, hours):
            return


def _ended(pid: int, seconds: float) -> bool:
    """Waits at most ``seconds`` for a process that is no child of ours; whether it has ended."""
    if hasattr(os, "pidfd_open"):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # an old kernel
        else:
            try:
                return bool(select.select([handle], [], [], seconds)[0])
            finally:
                os.close(handle)
    if sys.platform == "darwin":
        queue = select.kqueue()
        try:
            event = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            return bool(queue.control([event], 1, seconds))
        except ProcessLookupError:
            return True
        finally:
            queue.close()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(5.0, seconds))
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            continue
    return False


def main(arguments: list[str]) -> int:
    """The process: server's pid, hours, places as JSON."""
    pid, hours, places = arguments
    paths = Paths(**{name: Path(value) for name, value in json.loads(places).items()})
    watch(paths, int(pid), float(hours))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
