"""To a newer major version of Postgres, in place, with a way back at every moment.

1. Start the old server and dump the database into the backups folder.
2. Make a new data folder beside the old one and let ``pg_upgrade`` copy into it.
3. Rename the new folder to its final name: only now does it count.
4. The old folder is set aside and deleted after the new server has started once.

Killed anywhere, the next start begins again from the untouched old folder, or finds the new one
finished.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from jarvis.errors import DatabaseUnavailable
from jarvis.paths import Paths, private_file, private_folder
from jarvis.postgres import ADMIN_ROLE, DATABASE, PORT, process, programs
from jarvis.postgres.account import Account
from jarvis.postgres.cluster import Cluster, reason
from jarvis.postgres.layout import Layout
from jarvis.postgres.programs import Binaries

Progress = Callable[[str], None]


def run(
    place: Layout,
    owner: Account,
    data: Path,
    newest: Binaries,
    paths: Paths,
    progress: Progress,
) -> None:
    """Brings ``data`` (an older major version) to ``newest``. Call it under the lock.

    Raises:
        DatabaseUnavailable: it did not work; the old data are as they were.
    """
    major = int((data / "PG_VERSION").read_text().strip())
    old = Cluster(
        data,
        place.run,
        place.log,
        programs.for_user(programs.find(major), owner.uid),
        owner,
    )
    progress(f"upgrading the database from Postgres {major} to {newest.major}")
    if (pid := process.running(data)) is not None:
        old.stop(pid, progress)
    pid = old.start(progress)  # recovers what a crash left, which pg_upgrade cannot
    try:
        backup = dump(old, paths, f"before-postgres-{newest.major}")
    finally:
        old.stop(pid, progress)
    progress(f"backup: {backup}")
    new = Cluster(place.home / f"upgrade-{newest.major}", place.run, place.log, newest, owner)
    shutil.rmtree(new.data, ignore_errors=True)
    new.initialise(checksums=_has_checksums(old))
    new.configure()
    try:
        new.program(
            "pg_upgrade",
            *("--old-bindir", old.binaries.bin, "--new-bindir", newest.bin),
            *("--old-datadir", data, "--new-datadir", new.data),
            *("--socketdir", place.run, "--username", ADMIN_ROLE, "--jobs", "2"),
            cwd=new.data,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        kept = _keep_report(new.data, place.log)
        shutil.rmtree(new.data, ignore_errors=True)
        raise DatabaseUnavailable(
            f"the upgrade to Postgres {newest.major} failed: {reason(error)}",
            f"nothing was changed; the backup is {backup}"
            + (f", the report {kept}" if kept else ""),
        ) from error
    final = place.cluster(newest.major)
    # It names the old folder, which goes by itself, and another that this one is about to have.
    (new.data / "delete_old_cluster.sh").unlink(missing_ok=True)
    new.data.rename(final)
    _sync(place.home)
    progress(f"the database is of Postgres {newest.major} now")


def dump(cluster: Cluster, paths: Paths, why: str) -> Path:
    """Writes the database of a running cluster into the backups folder; returns the file.

    Raises:
        DatabaseUnavailable: it failed; no half a file is left.
    """
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    target = private_folder(paths.backups) / f"jarvis-{stamp}-{why}.dump"
    unfinished = target.with_suffix(".part")
    with os.fdopen(private_file(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        done = subprocess.run(
            [
                *(str(cluster.binaries.bin / "pg_dump"), "--format=custom"),
                *("--host", str(cluster.run), "--port", str(PORT)),
                *("--username", ADMIN_ROLE, DATABASE),
            ],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            env=programs.environment(),
            cwd=cluster.data.parent,
            **cluster.account.popen_arguments(),
        )
        os.fsync(file.fileno())
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        raise DatabaseUnavailable(
            f"cannot back up the database: {done.stderr.decode('utf-8', 'replace').strip()}",
            "make room, then try again; nothing was changed",
        )
    unfinished.replace(target)
    return target


def discard_old(place: Layout, major: int) -> None:
    """Deletes the data folders of versions before ``major``, which has started once."""
    for version, data in place.clusters().items():
        if version < major:
            shutil.rmtree(data, ignore_errors=True)
    for leftover in place.home.glob("upgrade-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _has_checksums(cluster: Cluster) -> bool:
    text = cluster.program("pg_controldata", cluster.data).stdout
    values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return values.get("Data page checksum version", "0").strip() != "0"


def _keep_report(data: Path, log: Path) -> Path | None:
    """Copies what pg_upgrade wrote beside the server's log."""
    found = [
        path
        for path in sorted((data / "pg_upgrade_output.d").rglob("*"))
        if path.suffix in {".log", ".txt"} and path.stat().st_size
    ]
    if not found:
        return None
    target = log.with_name("pg_upgrade.log")
    with (
        contextlib.suppress(OSError),
        os.fdopen(private_file(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file,
    ):
        for path in found:
            file.write(f"== {path.name}\n".encode() + path.read_bytes())
    return target


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
