"""The embedded server: made, shared, crashed, moved, upgraded; and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from jarvis import postgres
from jarvis.errors import DatabaseUnavailable
from jarvis.paths import Paths
from jarvis.postgres import account, layout, process, programs, supervisor, upgrade

Home = Callable[[Path], Paths]


@pytest.fixture
def home() -> Iterator[Home]:
    """Makes the paths of a home; its server is removed at the end."""
    made: list[Paths] = []

    def make(folder: Path) -> Paths:
        paths = Paths.from_environment({"JARVIS_HOME": str(folder)})
        made.append(paths)
        return paths

    yield make
    for paths in made:
        postgres.remove(paths)


@pytest.fixture
def server(home: Home, tmp_path: Path) -> Paths:
    """A running server in a home of its own."""
    paths = home(tmp_path / "home")
    postgres.ensure_running(paths)
    return paths


def connect(paths: Paths, role: str = postgres.RUNTIME_ROLE) -> psycopg.Connection:
    address = postgres.address(paths)
    return psycopg.connect(
        host=address.host, port=address.port, user=role, dbname=address.dbname, autocommit=True
    )


def fill(paths: Paths, text: str) -> None:
    with connect(paths, postgres.OWNER_ROLE) as connection:
        connection.execute("CREATE TABLE kept (words text, place vector)")
        connection.execute("INSERT INTO kept VALUES (%s, '[1,2,3]')", (text,))


def kept(paths: Paths) -> str:
    with connect(paths, postgres.OWNER_ROLE) as connection:
        row = connection.execute("SELECT words FROM kept").fetchone()
    assert row is not None
    return str(row[0])


def pid_of(paths: Paths) -> int:
    pid = postgres.status(paths).pid
    assert pid is not None
    return pid


def modes(path: Path) -> dict[Path, tuple[int, int, int]]:
    found = {}
    for folder in [path, *path.parents]:
        info = folder.stat()
        found[folder] = (info.st_mode, info.st_uid, info.st_gid)
    return found


@pytest.mark.parametrize("name", ["a home", 'it\'s "quoted"', "h" * 150, "höme 家"])
def test_any_home_and_nothing_above_it_changes(home: Home, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir(mode=0o755)
    above = modes(folder)
    system = modes(layout.SYSTEM_FOLDER.parent)
    paths = home(folder)
    postgres.ensure_running(paths)
    with connect(paths) as connection:
        row = connection.execute("SELECT '[1,2]'::vector <=> '[2,1]'").fetchone()
    assert row is not None
    assert row[0] == pytest.approx(0.2)
    assert modes(folder) == above
    assert modes(layout.SYSTEM_FOLDER.parent) == system
    assert len(os.fsencode(postgres.address(paths).socket)) <= 100


def test_only_a_socket_and_only_for_us(server: Paths) -> None:
    status = postgres.status(server)
    assert status.running
    socket = status.address.socket
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(status.data.stat().st_mode) == 0o700
    assert stat.S_IMODE(status.log.stat().st_mode) == 0o600
    with connect(server, postgres.ADMIN_ROLE) as connection:
        rows = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN"
            " ('listen_addresses', 'fsync', 'jit', 'log_min_error_statement')"
        ).fetchall()
        locale = connection.execute(
            "SELECT datlocprovider::text, datlocale FROM pg_database WHERE datname = 'jarvis'"
        ).fetchone()
        methods = connection.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules")
        assert methods.fetchall() == [("peer",)]
    assert dict(rows) == {
        "listen_addresses": "",
        "fsync": "on",
        "jit": "off",
        "log_min_error_statement": "panic",
    }
    assert locale == ("b", "C.UTF-8")


def test_the_role_of_daily_work_owns_nothing(server: Paths) -> None:
    with connect(server) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles"
            " WHERE rolname = current_user"
        ).fetchone()
        assert row == (False, False, False, False)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE mine ()")


def test_what_a_statement_holds_is_not_in_the_log(server: Paths) -> None:
    fill(server, "x")
    with connect(server, postgres.OWNER_ROLE) as connection:
        connection.execute("CREATE UNIQUE INDEX ON kept (words)")
        for statement in (
            "INSERT INTO kept (words) VALUES ('my cat Tom'), ('my cat Tom')",
            "SELECT 'my cat Tom' FROM nowhere",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
    assert "Tom" not in postgres.status(server).log.read_text()


def test_stop_and_start_keep_what_is_there(server: Paths) -> None:
    fill(server, "hello")
    assert postgres.stop(server)
    assert not postgres.stop(server)
    assert not postgres.status(server).running
    assert postgres.status(server).version == "18"
    postgres.ensure_running(server)
    assert kept(server) == "hello"


def test_many_starts_at_once_are_one(home: Home, tmp_path: Path) -> None:
    paths = home(tmp_path / "home")
    errors: list[Exception] = []

    def start() -> None:
        try:
            postgres.ensure_running(paths)
        except Exception as error:  # noqa: BLE001 -- a thread's failure is the test's
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    servers = [pid for pid in process_ids() if process.works_in(pid, postgres.status(paths).data)]
    assert pid_of(paths) in servers


def process_ids() -> list[int]:
    listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    return [int(word) for word in listing.stdout.split()]


def test_killed_in_the_middle_of_a_query(server: Paths) -> None:
    fill(server, "hello")
    with connect(server) as connection:
        sleeper = threading.Thread(target=lambda: _sleep(connection))
        sleeper.start()
        time.sleep(0.2)
        os.kill(pid_of(server), signal.SIGKILL)
        sleeper.join()
    postgres.ensure_running(server)
    assert kept(server) == "hello"


def _sleep(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT pg_sleep(60)")


def test_a_pid_file_that_names_another_program_is_not_believed(server: Paths) -> None:
    fill(server, "hello")
    data = postgres.status(server).data
    pid_file = data / "postmaster.pid"
    text = pid_file.read_text()
    postgres.stop(server)
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        lines = text.split("\n")
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]))
        assert not postgres.status(server).running
        assert not postgres.stop(server)
        postgres.ensure_running(server)
        assert kept(server) == "hello"
        assert other.poll() is None, "a stranger's process was ended"
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("content", ["", "\n", "garbage\n"])
def test_a_torn_pid_file(server: Paths, content: str) -> None:
    data = postgres.status(server).data
    postgres.stop(server)
    (data / "postmaster.pid").write_text(content)
    postgres.ensure_running(server)
    assert postgres.status(server).running


def test_another_installation_restarts_it(server: Paths) -> None:
    before = pid_of(server)
    postgres.ensure_running(server)
    assert pid_of(server) == before
    owner = account.current()
    assert owner is not None
    record = layout.find(server, owner.uid).record
    record.write_text(record.read_text().replace("18.", "17."))
    said: list[str] = []
    postgres.ensure_running(server, progress=said.append)
    assert pid_of(server) != before
    assert any("another installation" in line for line in said)


def test_an_initdb_that_was_killed_leaves_nothing_in_the_way(home: Home, tmp_path: Path) -> None:
    paths = home(tmp_path / "home")
    code = (
        "import sys; from jarvis import postgres; from jarvis.paths import Paths;"
        "postgres.ensure_running(Paths.from_environment({'JARVIS_HOME': sys.argv[1]}),"
        " progress=lambda text: print(text, flush=True))"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "home")],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    while b"making" not in (line := starter.stdout.readline()):
        assert line
    time.sleep(0.15)
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    postgres.ensure_running(paths)
    assert postgres.status(paths).running


def test_a_command_in_a_pipe_returns(home: Home, tmp_path: Path) -> None:
    home(tmp_path / "home")
    code = (
        "import sys; from jarvis import postgres; from jarvis.paths import Paths;"
        "postgres.ensure_running(Paths.from_environment({'JARVIS_HOME': sys.argv[1]}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "home")],
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""


def test_a_server_that_cannot_start_says_why(server: Paths) -> None:
    postgres.stop(server)
    (postgres.status(server).data / "custom.conf").write_text("shared_buffers = nonsense\n")
    with pytest.raises(DatabaseUnavailable, match="shared_buffers"):
        postgres.ensure_running(server)
    (postgres.status(server).data / "custom.conf").write_text("work_mem = 8MB\n")
    postgres.ensure_running(server)
    with connect(server) as connection:
        row = connection.execute("SHOW work_mem").fetchone()
    assert row == ("8MB",)


def test_stopped_when_idle_and_only_then(server: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    assert not postgres.stop_if_idle(server, 12)
    clock[0] += 11 * 3600
    assert not postgres.stop_if_idle(server, 12)
    with connect(server) as connection:
        connection.execute("SELECT 1")
    clock[0] += 2 * 3600
    assert not postgres.stop_if_idle(server, 12), "somebody was here"
    connection = connect(server)
    clock[0] += 13 * 3600
    assert not postgres.stop_if_idle(server, 12), "somebody is here"
    connection.close()
    _wait_until_alone(server)
    assert not postgres.stop_if_idle(server, 12)
    clock[0] += 13 * 3600
    assert postgres.stop_if_idle(server, 12)
    assert not postgres.status(server).running


def test_the_process_that_watches_ends_with_the_server(home: Home, tmp_path: Path) -> None:
    paths = home(tmp_path / "home")
    # A quarter of a second: it looks about every 30 ms, and needs two looks a quarter apart.
    postgres.ensure_running(paths, idle_hours=0.25 / 3600)
    deadline = time.monotonic() + 60
    while postgres.status(paths).running:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    postgres.ensure_running(paths)
    watchers = _watchers(pid_of(paths))
    assert len(watchers) == 1
    postgres.stop(paths)
    while _watchers(0) & watchers:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _watchers(server: int) -> set[int]:
    """The processes that watch ``server`` (0: any)."""
    listing = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,command="], capture_output=True, text=True, check=True
    )
    mark = f"jarvis.postgres.idle {server or ''}"
    return {int(line.split()[0]) for line in listing.stdout.splitlines() if mark in line}


def _wait_until_alone(paths: Paths) -> None:
    with connect(paths) as connection:
        for _ in range(100):
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'jarvis'"
            ).fetchone()
            if row == (1,):
                break
            time.sleep(0.05)


@pytest.mark.skipif(16 not in programs.available(), reason="no Postgres 16 in the package")
def test_upgrade_from_16_to_18(home: Home, tmp_path: Path) -> None:
    paths = home(tmp_path / "a home")
    supervisor.ensure_running(paths, progress=lambda _: None, major=16)
    assert postgres.status(paths).version.startswith("16.")
    fill(paths, "said on 16: Grüße, 日本語")
    os.kill(pid_of(paths), signal.SIGKILL)  # not even shut down
    said: list[str] = []
    postgres.ensure_running(paths, progress=said.append)
    status = postgres.status(paths)
    assert status.version.startswith("18.")
    assert kept(paths) == "said on 16: Grüße, 日本語"
    with connect(paths, postgres.OWNER_ROLE) as connection:
        connection.execute("INSERT INTO kept VALUES ('and on 18', '[3,2,1]')")
    backups = list(paths.backups.glob("*before-postgres-18.dump"))
    assert len(backups) == 1
    assert stat.S_IMODE(backups[0].stat().st_mode) == 0o600
    listing = subprocess.run(
        [postgres.binaries() / "pg_restore", "--list", backups[0]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TABLE DATA public kept" in listing.stdout
    assert not (status.data.parent / "data-16").exists()
    assert list(status.data.glob("*.sh")) == []
    assert any("upgrading" in line for line in said)


@pytest.mark.skipif(16 not in programs.available(), reason="no Postgres 16 in the package")
def test_an_upgrade_that_fails_changes_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = home(tmp_path / "home")
    supervisor.ensure_running(paths, progress=lambda _: None, major=16)
    fill(paths, "hello")

    def wrong(_: object) -> bool:
        return False

    monkeypatch.setattr(upgrade, "_has_checksums", wrong)
    with pytest.raises(DatabaseUnavailable, match="checksums") as caught:
        postgres.ensure_running(paths)
    assert "nothing was changed" in caught.value.hint
    assert not postgres.status(paths).running
    supervisor.ensure_running(paths, progress=lambda _: None, major=16)
    assert kept(paths) == "hello"
    monkeypatch.undo()
    postgres.ensure_running(paths)
    assert kept(paths) == "hello"


def test_a_newer_version_is_not_touched(server: Paths) -> None:
    fill(server, "hello")
    if 16 not in programs.available():
        pytest.skip("no Postgres 16 in the package")
    postgres.stop(server)
    with pytest.raises(DatabaseUnavailable, match="18"):
        supervisor.ensure_running(server, progress=lambda _: None, major=16)
    postgres.ensure_running(server)
    assert kept(server) == "hello"


def _python_for_anybody() -> list[str] | None:
    """An interpreter that any user can run, and the packages of this one."""
    for candidate in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        if candidate is None or layout.reachable(Path(candidate).resolve(), None) is not None:
            continue
        code = "import sys; print(sys.version_info[:2])"
        said = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if said.stdout.strip() == str(sys.version_info[:2]):
            return [candidate]
    return None


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@ROOT_ONLY
def test_as_a_normal_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    import pwd
    import tempfile

    python = _python_for_anybody()
    root = Path(__file__).parents[2]
    packages = Path(psycopg.__file__).parents[1]
    if python is None or any(layout.reachable(p, None) for p in (root, packages)):
        pytest.skip("another user cannot reach this checkout or its interpreter")
    somebody = pwd.getpwnam("nobody")
    code = """
import os, signal, sys
from jarvis import postgres
from jarvis.paths import Paths
from jarvis.postgres import supervisor
paths = Paths.from_environment({"JARVIS_HOME": sys.argv[1]})
supervisor.ensure_running(paths, progress=lambda _: None, major=16)
os.kill(postgres.status(paths).pid, signal.SIGKILL)
postgres.ensure_running(paths)
status = postgres.status(paths)
print(status.version, status.running, status.data.stat().st_uid)
postgres.remove(paths)
print(status.data.exists())
"""
    with tempfile.TemporaryDirectory(prefix="jt") as folder:
        shutil.chown(folder, somebody.pw_uid, somebody.pw_gid)
        above = modes(Path(folder))
        done = subprocess.run(
            [*python, "-B", "-c", code, f"{folder}/a home"],
            capture_output=True,
            text=True,
            check=False,
            user=somebody.pw_uid,
            group=somebody.pw_gid,
            extra_groups=[],
            cwd="/",
            env={"PYTHONPATH": f"{root}:{packages}", "HOME": folder, "PATH": os.environ["PATH"]},
            timeout=120,
        )
        assert done.stderr == ""
        assert done.stdout.splitlines()[0].startswith("18.")
        assert done.stdout.splitlines()[0].endswith(f" True {somebody.pw_uid}")
        assert done.stdout.splitlines()[1] == "False"
        assert modes(Path(folder)) == above


@ROOT_ONLY
def test_as_root_the_server_has_no_rights(server: Paths) -> None:
    pid = pid_of(server)
    listing = subprocess.run(
        ["ps", "-o", "user:32=,group:32=,supgrp:64=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    user, group, groups = listing.stdout.split()
    assert user == group == account.SYSTEM_USER
    assert groups in {"-", account.SYSTEM_USER}
    anchor = layout.anchor_folder(server)
    assert stat.S_IMODE(anchor.stat().st_mode) == 0o710
    assert anchor.stat().st_uid == 0


@ROOT_ONLY
def test_as_root_binaries_that_the_server_cannot_reach_are_copied(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    real = programs.find(18)
    package = real.bin.parents[1]
    shutil.copytree(real.bin.parent, closed / package.name / real.bin.parent.name, symlinks=True)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    hidden = programs.Binaries(closed / package.name / real.bin.parent.name / "bin", real.version)
    monkeypatch.setattr(programs, "find", lambda _major=None: hidden)
    paths = home(tmp_path / "home")
    postgres.ensure_running(paths)
    status = postgres.status(paths)
    assert status.running
    assert status.binaries is not None
    assert layout.SYSTEM_FOLDER / "binaries" in status.binaries.parents
    assert (status.binaries / "postgres").stat().st_uid == 0
