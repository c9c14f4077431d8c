"""A Postgres as somebody else runs it: passwords over TCP, roles with few rights."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from jarvis.postgres import account, layout, programs
from jarvis.postgres.account import Account
from jarvis.postgres.cluster import Cluster

ADMIN_PASSWORD = "adm:in@#%/ß"


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class ExternalServer:
    """A running server; ``admin`` is its superuser."""

    port: int
    major: int
    admin: str = "postgres"
    host: str = "127.0.0.1"

    def connect(
        self, user: str = "", password: str = ADMIN_PASSWORD, dbname: str = "postgres"
    ) -> psycopg.Connection:
        """A connection in autocommit."""
        return psycopg.connect(
            host=self.host,
            port=self.port,
            user=user or self.admin,
            password=password,
            dbname=dbname,
            autocommit=True,
        )

    def run(self, *statements: str, dbname: str = "postgres") -> None:
        """Statements as the superuser."""
        with self.connect(dbname=dbname) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def url(self, user: str, password: str, dbname: str, port: int = 0) -> str:
        """The address as a user would write it."""
        login = f"{user}:{urllib.parse.quote(password, safe='')}"
        return f"postgresql://{login}@{self.host}:{port or self.port}/{dbname}"


@contextlib.contextmanager
def place(owner: Account) -> Iterator[Path]:
    """A folder that ``owner`` can enter and nobody else can, as root too."""
    if owner.is_self:
        with tempfile.TemporaryDirectory(prefix="jx", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    shared = Path(tempfile.mkdtemp(prefix="external-", dir=layout.SYSTEM_FOLDER))
    account.shared_folder(shared, owner)
    try:
        yield shared
    finally:
        shutil.rmtree(shared, ignore_errors=True)


@dataclass(frozen=True)
class Authority:
    """Somebody who signs certificates; ``certificate`` is what others trust."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, name: str = "An authority") -> Authority:
        """Makes one in ``folder``."""
        folder.mkdir(exist_ok=True)
        made = cls(folder)
        _openssl(
            *("req", "-new", "-x509", "-days", "2", "-nodes", "-subj", f"/CN={name}"),
            *("-out", str(made.certificate), "-keyout", str(folder / "ca.key")),
        )
        return made

    @property
    def certificate(self) -> Path:
        """The file to trust."""
        return self.folder / "ca.crt"

    def sign(self, certificate: Path, key: Path, name: str) -> None:
        """Makes a key and a certificate of ``name``, a host or a role."""
        request, more = self.folder / "request", self.folder / "more"
        more.write_text(f"subjectAltName=DNS:{name}\n")
        _openssl(
            *("req", "-new", "-nodes", "-subj", f"/CN={name}"),
            *("-out", str(request), "-keyout", str(key)),
        )
        _openssl(
            *("x509", "-req", "-days", "2", "-in", str(request), "-out", str(certificate)),
            *("-CA", str(self.certificate), "-CAkey", str(self.folder / "ca.key")),
            *("-CAcreateserial", "-extfile", str(more)),
        )
        key.chmod(0o600)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@contextlib.contextmanager
def running(
    major: int, binaries: programs.Binaries | None = None, authority: Authority | None = None
) -> Iterator[ExternalServer]:
    """A server of that major version, with pgvector's files but without the extension.

    With an ``authority`` it is ``localhost``, takes encrypted connections only, and believes the
    role ``certified`` for its certificate.
    """
    owner = account.ensure(lambda _: None)
    binaries = binaries or programs.for_user(programs.find(major), owner.uid)
    with place(owner) as folder:
        cluster = Cluster(folder / "data", folder, folder / "log", binaries, owner)
        cluster.initialise()
        port = free_port()
        kind = "hostssl" if authority else "host"
        certified = "hostssl all certified 127.0.0.1/32 cert\n" if authority else ""
        (cluster.data / "pg_hba.conf").write_text(
            f"local all all trust\n{certified}{kind} all all 127.0.0.1/32 scram-sha-256\n"
        )
        if authority:
            authority.sign(cluster.data / "server.crt", cluster.data / "server.key", "localhost")
            shutil.copy(authority.certificate, cluster.data / "ca.crt")
            owner.own(cluster.data)
        settings = [
            *(["ssl=on", "ssl_ca_file=ca.crt"] if authority else ["ssl=off"]),
            "listen_addresses=127.0.0.1",
            f"port={port}",
            "fsync=off",
            "max_connections=40",
        ]
        process = subprocess.Popen(
            [
                *(str(binaries.bin / "postgres"), "-D", str(cluster.data), "-k", ""),
                *(word for setting in settings for word in ("-c", setting)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=cluster.data,
            env=programs.environment(),
            **owner.popen_arguments(),
        )
        try:
            server = ExternalServer(port, major)
            _set_password(cluster, port)
            yield server
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _set_password(cluster: Cluster, port: int) -> None:
    """Gives the superuser its password: trusted over TCP for this one moment."""
    hba = cluster.data / "pg_hba.conf"
    strict = hba.read_text()
    deadline = time.monotonic() + 60
    hba.write_text("host all all 127.0.0.1/32 trust\n")
    while True:
        try:
            with psycopg.connect(
                host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True
            ) as connection:
                password = ADMIN_PASSWORD.replace("'", "''")
                connection.execute(f"ALTER ROLE postgres PASSWORD '{password}'".encode())
                hba.write_text(strict)
                connection.execute("SELECT pg_reload_conf()")
                break
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
