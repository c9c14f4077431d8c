"""Connections that are cut, servers that are restarted, disks that are full."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from jarvis import postgres
from jarvis.config import DatabaseSettings
from jarvis.errors import DatabaseUnavailable, JarvisError
from jarvis.paths import Paths
from jarvis.postgres import process
from jarvis.services import backup
from jarvis.store import sessions, users
from jarvis.store.database import Database
from tests.conftest import REAL_PATHS, Cli
from tests.faults.home import Home, home
from tests.faults.proxy import Proxy, proxied


@pytest.fixture
def proxy(settings: DatabaseSettings) -> Iterator[Proxy]:
    """A proxy before the shared server."""
    with proxied(Path(settings.host) / f".s.PGSQL.{settings.port}") as made:
        yield made


@pytest.fixture
def distant(settings: DatabaseSettings, paths: Paths, proxy: Proxy) -> Iterator[Database]:
    """The test's database, reached through the proxy."""
    opened = Database(replace(settings, host=str(proxy.folder)), paths)
    yield opened
    opened.close()


def test_connections_cut_at_random_lose_no_acknowledged_write(
    distant: Database, database: Database, proxy: Proxy
) -> None:
    with distant.transaction() as tx:
        user = users.ensure(tx, "tester")
    acknowledged: list[str] = []
    failures = 0
    stop = threading.Event()
    chance = random.Random(4)

    def cut() -> None:
        while not stop.wait(chance.uniform(0.005, 0.05)):
            proxy.cut()

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        for number in range(150):
            try:
                with distant.transaction() as tx:
                    sessions.create(tx, user.id, title=str(number))
                acknowledged.append(str(number))
            except DatabaseUnavailable:
                failures += 1
    finally:
        stop.set()
        cutter.join()
    with database.connection() as connection:
        rows = connection.execute("SELECT title FROM sessions").fetchall()
    there = [row[0] for row in rows]
    assert set(acknowledged) <= set(there)
    assert len(there) == len(set(there))
    assert failures > 0, "nothing was cut: the test tests nothing"
    assert acknowledged, "nothing was ever stored"
    with distant.transaction() as tx:
        assert users.find(tx, "tester") == user


def test_a_connection_that_died_while_idle_costs_nobody_a_command(
    distant: Database, proxy: Proxy
) -> None:
    for _ in range(5):
        with distant.transaction() as tx:
            users.ensure(tx, "tester")
        assert proxy.cut() == 1
        time.sleep(0.02)


def test_a_server_that_is_gone_is_said_in_one_line(
    cli: Cli, settings: DatabaseSettings, proxy: Proxy
) -> None:
    proxy.refusing = True
    done = cli("memory", "list", env={"JARVIS_DATABASE_HOST": str(proxy.folder)})
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("error: cannot connect to the database")
    assert len(done.stderr.splitlines()) == 2


def test_the_server_restarted_between_two_transactions(tmp_path: Path) -> None:
    paths = Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})
    database = Database(DatabaseSettings(), paths)
    try:
        with database.transaction() as tx:
            user = users.ensure(tx, "tester")
        postgres.stop(paths)  # the next use starts it again
        with database.transaction() as tx:
            assert users.find(tx, "tester") == user
        status = postgres.status(paths)
        assert status.pid is not None
        os.kill(status.pid, signal.SIGKILL)
        # Between two transactions: until its processes have noticed, one could still begin.
        deadline = time.monotonic() + 60
        while process.stragglers(status.data) and time.monotonic() < deadline:
            time.sleep(0.05)
        with database.transaction() as tx:
            assert users.find(tx, "tester") == user
    finally:
        database.close()
        postgres.remove(paths)


def test_a_client_that_is_killed_leaves_nothing_running(database: Database) -> None:
    info = database.conninfo()
    code = (
        "import psycopg, sys; c = psycopg.connect(sys.argv[1]); print('on', flush=True);"
        " c.execute('SELECT pg_sleep(300)')"
    )
    address = psycopg.conninfo.make_conninfo(**info, application_name="to-be-killed")
    child = subprocess.Popen([sys.executable, "-c", code, address], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.2)
    child.kill()
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 30
    with database.connection() as connection:
        while True:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'to-be-killed'"
            ).fetchone()
            if row == (0,):
                break
            assert time.monotonic() < deadline, "the dead client's query still runs"
            time.sleep(0.5)


@contextlib.contextmanager
def small_disk(mebibytes: int) -> Iterator[Path]:
    """A file system of that size (root only)."""
    folder = Path(tempfile.mkdtemp(prefix="jd"))
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0755", "tmpfs", folder],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        folder.rmdir()
        pytest.skip(f"no small file system here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


@pytest.fixture
def small_home() -> Iterator[Home]:
    """A home on a disk of its own, with 24 MiB left."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    with small_disk(160) as disk:
        # The folder is there and open: so the database lies on the small disk, too.
        (disk / "home").mkdir(mode=0o755)
        with home(REAL_PATHS.models, folder=disk) as place:
            done = place.run("memory", "add", "Before the disk was full")
            assert done.returncode == 0, done.stderr
            assert disk in postgres.status(place.paths).data.parents
            free = shutil.disk_usage(disk).free
            ballast = disk / "ballast"
            with ballast.open("wb") as file:
                file.write(b"\0" * max(0, free - (24 << 20)))
            yield place


def test_a_full_disk_loses_nothing_and_says_so(small_home: Home) -> None:
    place = small_home
    stored = ["Before the disk was full"]
    failed = None
    filler = place.folder / "filler"
    with filler.open("wb") as file, contextlib.suppress(OSError):
        while shutil.disk_usage(place.folder).free > (2 << 20):
            file.write(b"\0" * (1 << 20))
            file.flush()
    for number in range(60):
        lines = "\n".join(f"Crate {number}-{n} holds thing {n * number}" for n in range(40))
        done = place.run("memory", "add", "--json", stdin=lines.encode())
        stored += [line for line in lines.splitlines() if f'"{line}"' in done.stdout]
        assert "Traceback" not in done.stderr
        if done.returncode:
            failed = done
            break
    assert failed is not None, "the disk never filled: the test tests nothing"
    assert failed.stderr.startswith("error:")
    target = place.folder / "full.zip"
    made = place.run("db", "backup", str(target))
    assert (made.returncode == 0) == target.exists(), "half a backup under its final name"
    filler.unlink()
    (place.folder / "ballast").unlink()
    done = place.run("memory", "list", "--json", "--limit", "100000")
    assert done.returncode == 0, done.stderr
    missing = [text for text in stored if f'"{text}"' not in done.stdout]
    assert missing == []
    done = place.run("memory", "add", "After there was room again")
    assert done.returncode == 0, done.stderr


@pytest.mark.owner
def test_a_backup_on_a_full_disk_is_no_backup(database: Database, paths: Paths) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    with database.transaction() as tx:
        user = users.ensure(tx, "tester")
        chance = random.Random(1)
        for number in range(40):
            noise = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=60_000))
            sessions.create(tx, user.id, title=f"{number} {noise}")
    with small_disk(1) as disk:
        with pytest.raises(JarvisError, match="cannot write the backup") as caught:
            backup.create(database, paths, disk / "b.zip")
        assert "room" in caught.value.hint
        assert list(disk.iterdir()) == []
