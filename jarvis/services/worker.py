"""The background worker: what nobody should have to wait for.

One detached process per data folder, started when there is work, gone when there is none. It
embeds, extracts facts, writes titles and summaries, builds indexes and recounts statistics: the
jobs below, each in small crash-safe batches with its state in the database, so that a worker
that is killed loses nothing and the next one goes on.

Two locks keep it single: a lock file, which tells other processes cheaply that it lives, and an
advisory lock in the database, for a database that two machines share. To leave, it lets the file
go and then looks once more: work that was stored before a caller looked at the lock is seen by
one of the two.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jarvis.errors import JarvisError, ModelUnavailable
from jarvis.log import MAX_BYTES
from jarvis.paths import Paths, private_file, private_folder
from jarvis.services import turn_lock
from jarvis.store import users, work

if TYPE_CHECKING:
    from jarvis.services.app import App

JOBS = (
    "jarvis.services.indexing:turn_keys_job",
    "jarvis.services.indexing:embed_memories_job",
    "jarvis.services.indexing:embed_turns_job",
    "jarvis.services.extraction.job:ExtractionJob",
    "jarvis.services.document_vectors:embed_job",
    "jarvis.services.changes:job",
    "jarvis.services.titles:job",
    "jarvis.services.summary:job",
    "jarvis.services.indexing:statistics_job",
    "jarvis.services.indexing:indexes_job",
)
"""In the order in which they run: what a search needs first comes first."""

LINGER_S = 3.0
"""How long an idle worker waits for more: the next turn of a chat often comes soon."""

_spawned: list[subprocess.Popen[bytes]] = []
"""Workers that this process started: asked for now and then, so that none stays a zombie."""

GIVE_UP = 3
"""Failures in a row after which a job rests until the next worker."""


class Job(Protocol):
    """One kind of background work, for the user of the ``App`` that it is given."""

    name: str

    def pending(self, app: App) -> int:
        """How many rows wait (those that wait for a retry are not counted)."""
        ...

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Does one small batch in transactions of its own; returns how many rows it settled.

        Returns early, leaving the rest as it was, when ``stop()`` becomes true.
        """
        ...


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a worker runs, and what waits, by job."""

    running: bool
    pid: int | None
    pending: dict[str, int]


def jobs() -> list[Job]:
    """All jobs, in their order."""
    found: list[Job] = []
    for entry in JOBS:
        module, _, factory = entry.partition(":")
        found.append(getattr(importlib.import_module(module), factory)())
    return found


def wake(app: App) -> None:
    """Starts a worker if none runs. Call it after the work is committed; it never waits."""
    with _lock(app) as mine:
        if not mine:
            return
    spawn(app)


def _errors(folder: Path) -> int:
    """What a worker says goes here. Each adds its lines: bounded, with one older file."""
    path = folder / "worker.err"
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    return private_file(path)


def spawn(app: App) -> None:
    """Starts the detached process: its own session, no terminal, no pipe of the caller's."""
    log = _errors(private_folder(app.paths.logs))
    command = [sys.executable, "-m", "jarvis", "worker", "run"]
    if app.config_path != app.paths.config_file:
        command += ["--config", str(app.config_path)]
    try:
        _spawned[:] = [process for process in _spawned if process.poll() is None]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            close_fds=True,
            cwd="/",
            env=_environment(),
        )
        _spawned.append(process)
    finally:
        os.close(log)


def run(app: App, *, linger: float = LINGER_S) -> int:
    """Works until nothing is left; returns how many rows were settled.

    Returns 0 at once when other workers do everybody's work. SIGTERM ends it after the current
    statement.
    """
    stopping = False

    def stop_asked() -> bool:
        return stopping

    def on_term(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    previous = signal.signal(signal.SIGTERM, on_term)
    try:
        done = 0
        while not stopping:
            with _lock(app, wait_s=1.0) as mine:
                if not mine:
                    return done
                with work.worker_locks(app.database) as locks:
                    settled = _work(app, locks, stop_asked, linger)
                if settled is None:
                    return done
                done += settled
            # Looked at again without the lock: what was stored while it was still held.
            if stop_asked() or not any(status(app).pending.values()) or not _useful(app):
                return done
        return done
    finally:
        signal.signal(signal.SIGTERM, previous)


def drain(
    app: App,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    stalled_after: float = 120.0,
) -> int:
    """Waits until the worker has done what is this user's, starting it where none runs.

    It goes round among all users; nobody waits for what somebody else left it to do.

    Args:
        on_progress: told how many rows still wait.
        stalled_after: seconds without any progress after which waiting ends.

    Returns:
        how many rows still wait: 0 unless the worker could not do them.
    """
    last, since, starts = -1, time.monotonic(), 0
    while True:
        left = sum(job.pending(app) for job in jobs())
        if left == 0:
            return 0
        if left != last:
            last, since = left, time.monotonic()
            on_progress(left)
        if not _is_running(app) and not _starting():
            if starts >= GIVE_UP:
                return left
            starts += 1
            try:
                wake(app)
            except (JarvisError, OSError):
                return left  # a home that cannot be written: another one does the work
            time.sleep(0.5)
        if time.monotonic() - since > stalled_after:
            return left
        time.sleep(0.1)


def status(app: App) -> Status:
    """Whether a worker runs, and what waits for any user."""
    running = _is_running(app)
    pending: dict[str, int] = {}
    for person in _everybody(app):
        for job in jobs():
            pending[job.name] = pending.get(job.name, 0) + job.pending(person)
    return Status(running, _pid(app) if running else None, pending)


def _is_running(app: App) -> bool:
    with contextlib.suppress(JarvisError), _lock(app) as mine:
        return not mine
    return False


def _starting() -> bool:
    """Whether a worker that this process started still lives: on a busy machine it takes long to
    get to its lock."""
    return any(process.poll() is None for process in _spawned)


def hold_back(paths: Paths, stop: Callable[[], bool]) -> Callable[[], bool]:
    """A ``stop`` that is also true while somebody waits for an answer."""
    return lambda: stop() or turn_lock.is_running(paths)


def _work(app: App, locks: work.WorkerLocks, stop: Callable[[], bool], linger: float) -> int | None:
    """Rows that were settled; None: every user's work is done by another worker."""
    from jarvis import log

    logger = log.get("worker")
    todo = jobs()
    failures = dict.fromkeys((job.name for job in todo), 0)
    done, idle_since = 0, time.monotonic()
    while not stop():
        settled = 0
        everybody = list(_everybody(app))
        ours = [person for person in everybody if locks.take(person.user.id)]
        if everybody and not ours:
            return done or None
        for person in ours:
            for job in todo:
                if stop() or failures[job.name] >= GIVE_UP:
                    continue
                try:
                    settled += _run_job(job, person, stop)
                    failures[job.name] = 0
                except ModelUnavailable as error:
                    failures[job.name] += 1
                    app.forget_models()
                    logger.warning("%s: %s", job.name, error.message)
                except JarvisError as error:
                    failures[job.name] += 1
                    logger.warning("%s: %s", job.name, error.message)
                except Exception:
                    failures[job.name] += 1
                    logger.exception("%s failed", job.name)
        done += settled
        if settled:
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since > linger:
            break
        else:
            time.sleep(0.2)
    return done


def _run_job(job: Job, app: App, stop: Callable[[], bool]) -> int:
    """Batches of one job, until it has none left or somebody else should have a turn."""
    settled = 0
    until = time.monotonic() + 2.0
    while time.monotonic() < until and not stop():
        while turn_lock.is_running(app.paths) and not stop():
            time.sleep(0.05)
        got = job.run_once(app, hold_back(app.paths, stop))
        settled += got
        if got == 0:
            break
    return settled


def _useful(app: App) -> bool:
    """Whether a second round could do more than the first: its models answer."""
    try:
        app.embedder()
    except JarvisError:
        return False
    return True


def _everybody(app: App) -> Iterator[App]:
    with app.database.connection() as connection:
        people = users.everyone(connection)
    for person in people:
        yield app.for_user(person)


@contextlib.contextmanager
def _lock(app: App, wait_s: float = 0.0) -> Iterator[bool]:
    """Tries the lock file; gives whether it is ours. Its content is the worker's pid.

    Args:
        wait_s: how long to try. A worker that starts waits a moment, since a process that only
            looks has the lock for a moment too.
    """
    path = _lock_file(app)
    try:
        descriptor = private_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise JarvisError(
            f"the background worker cannot use {path}: {error.strerror}",
            "make it writable, or set JARVIS_HOME to a folder that is",
        ) from error
    until = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(0.02)
        if wait_s:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield True
    finally:
        os.close(descriptor)


def _lock_file(app: App) -> Path:
    """One a database and role: a data folder has one, unless its configuration names others."""
    database = app.database
    seen_by = f"{database.describe()} {database.conninfo().get('user', '')}"
    name = hashlib.sha256(seen_by.encode()).hexdigest()[:8]
    return private_folder(app.paths.state) / f"worker-{name}.lock"


def _pid(app: App) -> int | None:
    try:
        return int(_lock_file(app).read_text())
    except (OSError, ValueError):
        return None


def stop(app: App, *, wait_s: float = 10.0) -> bool:
    """Ends the worker after its current statement; returns whether one ran.

    What it was doing stays as it was and is done by the next one.
    """
    pid = _pid(app)
    with _lock(app) as mine:
        if mine or pid is None:
            return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        with _lock(app) as mine:
            if mine:
                return True
        time.sleep(0.05)
    return True


def _environment() -> dict[str, str]:
    """This process's environment, so that the worker reads the same configuration."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}
