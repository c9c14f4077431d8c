"""What the tests share: a home of their own, a real database, the real engine.

One embedded Postgres serves the whole run; every test gets a database of its own inside it,
copied from a migrated template. Models come from the catalogue and are kept where the program
keeps them (``JARVIS_MODELS`` or the user's models folder), so that they are fetched once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import hypothesis
import psycopg
import pytest

from jarvis import postgres
from jarvis.config import Config, DatabaseSettings, EngineSettings
from jarvis.paths import Paths
from jarvis.services.app import App
from jarvis.store import users
from jarvis.store.database import Database
from jarvis.types import User

REAL_PATHS = Paths.from_environment()
"""The user's own folders: read for their models only."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and every process of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("shared", deadline=None)
hypothesis.settings.load_profile("shared")  # these machines are shared: no test is timed

for _name in [name for name in os.environ if name.startswith(("JARVIS_", "OLLAMA_"))]:
    if _name != "JARVIS_MODELS":
        del os.environ[_name]


@pytest.fixture(scope="session")
def run_home() -> Iterator[Path]:
    """A home for the whole run. Short, so that sockets fit."""
    with tempfile.TemporaryDirectory(prefix="jt", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def run_environment(run_home: Path) -> dict[str, str]:
    """The environment of processes that share the run's servers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JARVIS_")}
    return {**kept, "JARVIS_HOME": str(run_home), "JARVIS_MODELS": str(REAL_PATHS.models)}


@pytest.fixture(scope="session")
def run_paths(run_environment: Mapping[str, str]) -> Iterator[Paths]:
    """The paths of the shared servers; both are stopped at the end."""
    paths = Paths.from_environment(run_environment)
    yield paths
    from jarvis.engine import launcher

    launcher.stop(paths)
    postgres.remove(paths)


@pytest.fixture(scope="session")
def template(run_paths: Paths) -> str:
    """The name of a migrated, empty database."""
    database = Database(DatabaseSettings(), run_paths)
    database.open()
    database.close()
    return postgres.DATABASE


@pytest.fixture
def database_name(run_paths: Paths, template: str) -> Iterator[str]:
    """A database of the test's own: migrated and empty."""
    address = postgres.address(run_paths)
    name = f"test_{uuid.uuid4().hex[:12]}"

    def run(statement: str) -> None:
        with psycopg.connect(
            host=address.host,
            port=address.port,
            user=postgres.ADMIN_ROLE,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            connection.execute(statement.encode())

    run(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {postgres.OWNER_ROLE}")
    yield name
    run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def settings(
    run_paths: Paths, database_name: str, request: pytest.FixtureRequest
) -> DatabaseSettings:
    """Settings that reach the test's own database, as an ordinary server.

    The role is that of daily work, so that every test shows that its rights suffice; tests with
    the mark ``owner`` do what only the owner of the tables can.
    """
    address = postgres.address(run_paths)
    owner = request.node.get_closest_marker("owner")
    role = postgres.OWNER_ROLE if owner else postgres.RUNTIME_ROLE
    return DatabaseSettings(host=address.host, port=address.port, user=role, dbname=database_name)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Folders of the test's own, with the shared models."""
    environment = {"JARVIS_HOME": str(tmp_path / "home"), "JARVIS_MODELS": str(REAL_PATHS.models)}
    return Paths.from_environment(environment)


@pytest.fixture
def database(settings: DatabaseSettings, paths: Paths) -> Iterator[Database]:
    """A migrated, empty database."""
    opened = Database(settings, paths)
    yield opened
    opened.close()


@pytest.fixture
def user(database: Database) -> User:
    """A user in it."""
    with database.transaction() as tx:
        return users.ensure(tx, "tester")


@pytest.fixture(scope="session")
def engine(run_paths: Paths) -> Path:
    """The socket of the shared engine, running, with the embedding model installed."""
    from jarvis.engine import launcher, pull

    config = Config(engine=EngineSettings(idle_minutes=60))
    pull.pull(run_paths, config, "all-minilm", lambda _: None)
    return launcher.ensure_running(run_paths, config, progress=lambda _: None)


@pytest.fixture
def app(
    settings: DatabaseSettings, run_paths: Paths, engine: Path, tmp_path: Path
) -> Iterator[App]:
    """The services, on the test's own database and the shared engine; state of its own."""
    config = Config(
        user="tester",
        database=settings,
        chat=replace(Config().chat, provider="embedded", model="qwen2.5-coder:0.5b"),
        embedding=replace(Config().embedding, provider="embedded"),
    )
    own = replace(
        run_paths,
        config=tmp_path / "config",
        data=tmp_path / "data",
        state=tmp_path / "state",
        cache=tmp_path / "cache",
    )
    made = App(config, own)
    yield made
    made.close()


@dataclass
class Cli:
    """Runs the program as a process, in an environment of the test's own."""

    environment: dict[str, str] = field(default_factory=dict)

    def __call__(
        self,
        *arguments: str,
        stdin: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """``jarvis ARGUMENTS``; without ``stdin`` it is ``/dev/null``."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "jarvis", *arguments],
            input=data if data is not None else b"",
            capture_output=True,
            env={**self.environment, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args,
            done.returncode,
            done.stdout.decode("utf-8", "backslashreplace"),
            done.stderr.decode("utf-8", "backslashreplace"),
        )


@pytest.fixture
def cli(settings: DatabaseSettings, run_environment: Mapping[str, str], tmp_path: Path) -> Cli:
    """The program on the test's own database, sharing the run's servers."""
    config = tmp_path / "config.toml"
    config.write_text("")
    config.chmod(0o600)
    return Cli(
        {
            **run_environment,
            "JARVIS_CONFIG": str(config),
            "JARVIS_USER": "tester",
            "JARVIS_DATABASE_HOST": settings.host,
            "JARVIS_DATABASE_USER": settings.user,
            "JARVIS_DATABASE_DBNAME": settings.dbname,
            "JARVIS_CHAT_MODEL": "qwen2.5-coder:0.5b",
        }
    )


Jarvis = Callable[..., "subprocess.CompletedProcess[str]"]
"""The type of the ``cli`` fixture in tests."""
