"""The embedded Postgres server: find it, start it, stop it, upgrade it.

A command first tries the socket at :func:`address`; only when nothing answers there does it call
:func:`ensure_running`, which loads the supervisor. So this module stays light: it imports nothing
but the standard library, and of that little.

Three roles stand in the embedded cluster. ``postgres`` is the superuser and serves the supervisor
and ``jarvis db psql --admin`` only. ``jarvis_owner`` owns the tables and runs the migrations.
``jarvis`` is what commands connect as. Who may be which is decided by the operating system: the
server listens on a Unix socket in a 0700 folder and asks the kernel who is calling (``peer``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jarvis.paths import Paths

PORT = 5432
"""Only a part of the socket's name: the server opens no TCP port."""
RUNTIME_ROLE = "jarvis"
OWNER_ROLE = "jarvis_owner"
ADMIN_ROLE = "postgres"
DATABASE = "jarvis"


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect. ``host`` is the folder of the socket.

    ``user`` is the role for daily work; ``owner`` the one that owns the tables (migrations).
    """

    host: str
    port: int = PORT
    user: str = RUNTIME_ROLE
    dbname: str = DATABASE
    owner: str = OWNER_ROLE

    @property
    def socket(self) -> Path:
        """The socket itself."""
        return Path(self.host) / f".s.PGSQL.{self.port}"


@dataclass(frozen=True, slots=True)
class Status:
    """What is known about the embedded server without starting it.

    ``version`` is that of the running server, else of the data (major only), else empty.
    """

    initialised: bool
    running: bool
    pid: int | None
    version: str
    address: Address
    data: Path
    log: Path
    binaries: Path | None
    size_bytes: int


def address(paths: Paths) -> Address:
    """Where the embedded server of ``paths`` listens when it runs. Touches no file's content."""
    from jarvis.postgres.layout import socket_folder

    return Address(str(socket_folder(paths)))


def _silent(_message: str) -> None:
    return


def ensure_running(
    paths: Paths, *, progress: Callable[[str], None] = _silent, idle_hours: float = 12.0
) -> Address:
    """Starts the embedded server if it does not run, makes it first if need be.

    Safe to call from many processes at once. ``progress`` gets short sentences for people. A
    server that it starts is stopped after ``idle_hours`` without a connection (0: never).

    Raises:
        DatabaseUnavailable: it cannot be made or started; the message says why.
    """
    from jarvis.postgres import supervisor

    return supervisor.ensure_running(paths, progress=progress, idle_hours=idle_hours)


def stop(paths: Paths, *, progress: Callable[[str], None] = _silent) -> bool:
    """Stops the embedded server, finishing what is committed. False: it did not run."""
    from jarvis.postgres import supervisor

    return supervisor.stop(paths, progress=progress)


def stop_if_idle(paths: Paths, hours: float) -> bool:
    """Stops the server when nobody has connected for ``hours``. True: it was stopped."""
    from jarvis.postgres import supervisor

    return supervisor.stop_if_idle(paths, hours)


def status(paths: Paths) -> Status:
    """Looks at the embedded server without changing anything."""
    from jarvis.postgres import supervisor

    return supervisor.status(paths)


def binaries(major: int | None = None) -> Path:
    """The folder with ``postgres``, ``psql``, ``pg_dump``…; ``major`` default: the newest.

    Raises:
        DatabaseUnavailable: the package with the binaries is not installed.
    """
    from jarvis.postgres.programs import find

    return find(major).bin


def remove(paths: Paths, *, progress: Callable[[str], None] = _silent) -> list[Path]:
    """Stops the server and deletes everything of it; returns what was deleted."""
    from jarvis.postgres import supervisor

    return supervisor.remove(paths, progress=progress)
