"""One data folder: made, configured, started, stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jarvis.errors import DatabaseUnavailable
from jarvis.paths import private_file
from jarvis.postgres import ADMIN_ROLE, OWNER_ROLE, PORT, RUNTIME_ROLE, process
from jarvis.postgres.account import Account
from jarvis.postgres.process import Answer
from jarvis.postgres.programs import Binaries, environment

_MIB = 1 << 20
_LOG_LIMIT = 4 * _MIB
_SILENT_SECONDS = 60.0
"""How long a living server may take until its socket says anything at all."""
_BUILTIN_LOCALE_SINCE = 17

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A data folder with what is needed to run it."""

    data: Path
    run: Path
    log: Path
    binaries: Binaries
    account: Account

    def program(
        self, name: str, *arguments: str | Path, cwd: Path | None = None, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs one of the server's programs as the server's user.

        Raises:
            subprocess.CalledProcessError: it failed; its output is in the exception.
        """
        return subprocess.run(
            [self.binaries.bin / name, *arguments],
            check=True,
            capture_output=True,
            text=True,
            input=text if text is not None else "",
            cwd=cwd or self.data.parent,
            env=environment(),
            umask=0o077,
            **self.account.popen_arguments(),
        )

    def initialise(self, *, checksums: bool = True) -> None:
        """Makes the data folder; an unfinished one is never left under its final name.

        The builtin C.UTF-8 locale sorts and folds the same on every machine and never changes
        with a library of the system (so an index never breaks).

        Raises:
            DatabaseUnavailable: initdb failed.
        """
        unfinished = self.data.with_name(f"new-{self.data.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self.account.own(unfinished)
        locale = (
            ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
            if self.binaries.major >= _BUILTIN_LOCALE_SINCE
            else ("--locale-provider=libc", "--locale=C")
        )
        # Before 18 checksums were off unless asked for, and there was no word for "off".
        off = () if self.binaries.major < 18 else ("--no-data-checksums",)
        try:
            self.program(
                "initdb",
                "--pgdata",
                unfinished,
                f"--username={ADMIN_ROLE}",
                "--auth=peer",
                "--encoding=UTF8",
                *locale,
                *(("--data-checksums",) if checksums else off),
                "--no-instructions",
            )
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise DatabaseUnavailable(
                f"cannot make the embedded database in {self.data}: {reason(error)}",
                "check free space and rights there, or set database.url to a server of your own",
            ) from error
        unfinished.rename(self.data)

    def configure(self) -> None:
        """Writes the server's configuration; what a user put into ``custom.conf`` wins."""
        self._write("postgresql.conf", "".join(f"{k} = {v}\n" for k, v in self._settings()))
        self._write("pg_hba.conf", "local all all peer map=jarvis\n")
        callers = {self.account.name, _own_name()}
        roles = (ADMIN_ROLE, OWNER_ROLE, RUNTIME_ROLE)
        self._write(
            "pg_ident.conf",
            "".join(
                f"jarvis {_ident(name)} {role}\n" for name in sorted(callers) for role in roles
            ),
        )

    def _settings(self) -> list[tuple[str, str]]:
        memory = _memory_bytes()
        shared = min(max(memory // 16, 32 * _MIB), 256 * _MIB) // _MIB
        maintenance = min(max(memory // 32, 64 * _MIB), 256 * _MIB) // _MIB
        settings = {
            "listen_addresses": "''",
            "port": str(PORT),
            "unix_socket_directories": _quote('"' + str(self.run).replace('"', '""') + '"'),
            "unix_socket_permissions": "0700",
            "max_connections": "60",
            "shared_buffers": f"{shared}MB",
            "maintenance_work_mem": f"{maintenance}MB",
            "work_mem": "16MB",
            "dynamic_shared_memory_type": _shared_memory_type(),
            "max_worker_processes": "4",
            "max_parallel_workers": "2",
            "autovacuum_max_workers": "2",
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "wal_compression": "on",
            "min_wal_size": "32MB",
            "max_wal_size": "512MB",
            "fsync": "on",
            "synchronous_commit": "on",
            "jit": "off",
            # Loaded once by the server: it goes on working when the package is replaced.
            "shared_preload_libraries": "'vector'",
            "timezone": "'UTC'",
            "log_timezone": "'UTC'",
            "lc_messages": "'C'",
            "default_text_search_config": "'pg_catalog.simple'",
            # A statement or the detail of an error may quote what the user said.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "log_parameter_max_length_on_error": "0",
            "log_checkpoints": "off",
            "log_line_prefix": "'%m [%p] '",
            "cluster_name": "'jarvis'",
        }
        if process.PROC.exists():
            # A client that was killed must not leave its query running (not on every macOS).
            settings["client_connection_check_interval"] = "'10s'"
        if self.binaries.major >= 18:
            settings["io_method"] = "'sync'"  # no helper processes on a small machine
        return [*settings.items(), ("include_if_exists", "'custom.conf'")]

    def _write(self, name: str, text: str) -> None:
        path = self.data / name
        unfinished = path.with_name(f"{name}.new")
        with os.fdopen(
            private_file(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8"
        ) as file:
            file.write(text)
        self.account.own(unfinished)
        unfinished.replace(path)

    def start(self, progress: Progress) -> int:
        """Starts the server and waits until it answers; returns its process id.

        However long recovery takes, it is waited for, with a word now and then.

        Raises:
            DatabaseUnavailable: it stopped, or never said anything.
        """
        self._clear_stale()
        self.configure()
        _rotate(self.log)
        descriptor = private_file(self.log)
        try:
            begin = os.fstat(descriptor).st_size
            server = subprocess.Popen(
                [self.binaries.bin / "postgres", "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                cwd=self.data,
                env=environment(),
                start_new_session=True,
                umask=0o077,
                **self.account.popen_arguments(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DatabaseUnavailable(
                f"cannot start the embedded Postgres: {reason(error)}",
                "jarvis doctor, or set database.url to a server of your own",
            ) from error
        finally:
            os.close(descriptor)
        try:
            self._wait(server, progress, begin)
        finally:
            server.returncode = 0  # it stays when we leave: no warning about a running child
        return server.pid

    def _wait(self, server: subprocess.Popen[bytes], progress: Progress, begin: int) -> None:
        started = time.monotonic()
        said = 0.0
        pause = 0.01
        while (answer := process.ask(self.run)) is not Answer.READY:
            waited = time.monotonic() - started
            if server.poll() is not None:
                raise DatabaseUnavailable(
                    f"the embedded Postgres stopped while starting: {_last_words(self.log, begin)}",
                    f"the log is {self.log}",
                )
            if answer is Answer.NOTHING and waited > _SILENT_SECONDS:
                server.send_signal(signal.SIGQUIT)
                server.wait()
                raise DatabaseUnavailable(
                    f"the embedded Postgres said nothing for {_SILENT_SECONDS:.0f} s",
                    f"the log is {self.log}",
                )
            if waited - said >= 3:
                said = waited
                what = "recovering" if answer is Answer.STARTING else "starting"
                progress(f"the database is {what} ({waited:.0f} s)")
            time.sleep(pause)
            pause = min(pause * 1.3, 0.2)

    def wait_until_ready(self, pid: int, progress: Progress, patience: float = 5.0) -> bool:
        """Waits for a server that somebody else started; False: it ended, or says nothing.

        One that recovers (all its connections are cut when one of them crashes) is waited for as
        long as it takes, one without a word on its socket for ``patience`` seconds.
        """
        started = time.monotonic()
        said, heard = 0.0, started
        while process.works_in(pid, self.data):
            answer = process.ask(self.run)
            if answer is Answer.READY:
                return True
            now = time.monotonic()
            if answer is Answer.STARTING:
                heard = now
            elif now - heard > patience:
                return False
            if now - started - said >= 3:
                said = now - started
                progress(f"the database is recovering ({said:.0f} s)")
            time.sleep(0.02)
        return False

    def _clear_stale(self) -> None:
        """Makes what a killed server left behind harmless. Call it under the lock only."""
        found = process.PidFile.read(self.data)
        if found is not None:
            process.end_stragglers(self.data)
            if found.pid <= 0:
                found.path.unlink(missing_ok=True)  # a full disk can leave it empty
            else:
                # Postgres ignores a number that is its parent's: ours.
                found.replace_pid(os.getpid())
        for name in (f".s.PGSQL.{PORT}.lock", f".s.PGSQL.{PORT}"):
            (self.run / name).unlink(missing_ok=True)

    def stop(self, pid: int, progress: Progress, *, patience: float = 60.0) -> None:
        """Ends the server: connections are cut, what is committed is written out."""
        for number, seconds in ((signal.SIGINT, patience), (signal.SIGQUIT, 10.0)):
            if not _signal(pid, number):
                return
            started = time.monotonic()
            said = 0.0
            while process.works_in(pid, self.data):
                waited = time.monotonic() - started
                if waited > seconds:
                    break
                if waited - said >= 3:
                    said = waited
                    progress(f"the database is writing out what it holds ({waited:.0f} s)")
                time.sleep(0.02)
            else:
                return
        _signal(pid, signal.SIGKILL)
        process.end_stragglers(self.data)

    def sql(self, statement: str, *, dbname: str = "postgres", options: Sequence[str] = ()) -> str:
        """Runs SQL as the superuser and returns its bare output.

        Raises:
            DatabaseUnavailable: it failed.
        """
        arguments = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]
        arguments += ["--set", "ON_ERROR_STOP=1", "--host", str(self.run), "--port", str(PORT)]
        arguments += ["--username", ADMIN_ROLE, "--dbname", dbname, *options]
        try:
            return self.program("psql", *arguments, text=statement).stdout.strip()
        except (OSError, subprocess.CalledProcessError) as error:
            raise DatabaseUnavailable(
                f"the embedded Postgres refused to be set up: {reason(error)}",
                f"the log is {self.log}",
            ) from error


def reason(error: Exception) -> str:
    """The last line that a failed program wrote, else the error itself."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in f"{error.stdout}\n{error.stderr}".splitlines() if line.strip()]
        lines = [line for line in lines if line.strip() != "Failure, exiting"]  # of pg_upgrade
        wrong = [line for line in lines if "error:" in line.lower() or "fatal" in line.lower()]
        return (wrong or lines or [f"exit code {error.returncode}"])[-1].strip()
    return getattr(error, "strerror", None) or str(error)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _ident(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _own_name() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 2048 * _MIB


def _shared_memory_type() -> str:
    """``posix`` needs a roomy /dev/shm; containers often have 64 MiB, or none."""
    if not process.PROC.exists():
        return "posix"
    try:
        info = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return "mmap"
    roomy = info.f_bavail * info.f_frsize >= 512 * _MIB
    return "posix" if roomy and os.access("/dev/shm", os.W_OK) else "mmap"  # noqa: S108


def _rotate(log: Path) -> None:
    try:
        if log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_name(log.name + ".1"))
    except OSError:
        return


def _last_words(log: Path, begin: int) -> str:
    """The line that says why, from what was written since ``begin``."""
    try:
        with log.open("rb") as file:
            file.seek(begin)
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return "its log cannot be read"
    for number, line in enumerate(lines):
        for mark in ("FATAL:", "PANIC:", "ERROR:"):
            if mark in line:
                why = line.split(mark, 1)[1].strip()
                # "The file contains errors": which ones stands in the line before.
                cause = lines[number - 1].split("LOG:", 1)[-1].strip() if number else ""
                return f"{cause} ({why})" if "contains errors" in why and cause else why
    return lines[-1].strip() if lines else "it wrote nothing"
