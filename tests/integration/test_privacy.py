"""What is stored where is said truly, erasing leaves nothing, a report holds nothing personal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jarvis import log, postgres
from jarvis.config import ChatSettings, Config, DatabaseSettings, EngineSettings, ToolSettings
from jarvis.errors import NotFound
from jarvis.paths import Paths
from jarvis.postgres import layout
from jarvis.services import doctor, privacy, report
from jarvis.services.app import App
from jarvis.store import sessions, users
from tests.conftest import Cli
from tests.faults.home import home


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", True),
        ("/run/postgresql", True),
        ("192.168.1.4", False),
        ("ollama.example", False),
        ("localhost.example", False),
        ("8.8.8.8", False),
    ],
)
def test_what_counts_as_this_machine(host: str, local: bool) -> None:
    assert privacy.is_local(host) is local


def _leaving(app: App) -> list[str]:
    return [item.where for item in privacy.items(app) if item.kind == "leaves"]


def test_nothing_of_ones_own_leaves_by_default(
    settings: DatabaseSettings, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    items = list(privacy.items(App(Config(database=settings), paths)))
    assert [item.kind for item in items if item.kind != "stored"] == ["asks", "asks", "never"]
    assert "unless you say yes" in items[-1].what
    told = ToolSettings(network="allow")
    items = list(privacy.items(App(Config(database=settings, tools=told), paths)))
    assert [item.kind for item in items if item.kind != "stored"] == ["leaves", "asks"]


def test_nothing_leaves_when_nothing_can(
    settings: DatabaseSettings, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    quiet = Config(
        database=settings,
        engine=EngineSettings(sources=["local"]),
        tools=ToolSettings(network="deny"),
    )
    app = App(quiet, paths)
    assert _leaving(app) == []
    assert [item.kind for item in privacy.items(app)][-1] == "never"
    far = replace(quiet, chat=ChatSettings(host="http://gpu.example:11434"))
    assert _leaving(App(far, paths)) == ["http://gpu.example:11434"] * 2
    monkeypatch.setenv("OLLAMA_HOST", "gpu.example")
    assert _leaving(App(quiet, paths)) == ["gpu.example"] * 2
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:11434")
    assert _leaving(App(quiet, paths)) == []
    database = DatabaseSettings(url="postgresql://me:geheim@db.example/mine")
    items = list(privacy.items(App(replace(quiet, database=database), paths)))
    assert "db.example" in [item.where for item in items if item.kind == "leaves"]
    assert "geheim" not in repr(items)


def test_erase_leaves_nothing(tmp_path: Path) -> None:
    with home(tmp_path / "models") as place:
        done = place.run("memory", "add", "The safe is behind the picture")
        assert done.returncode == 0, done.stderr
        assert place.run("db", "backup").returncode == 0
        shown = place.run("privacy", "--json")
        places = [json.loads(line) for line in shown.stdout.splitlines()]
        assert {"conversations, memories, documents, vectors", "backups of all of it"} <= {
            item["what"] for item in places
        }
        assert not any(item["others"] for item in places)
        assert place.run("erase").returncode == 2
        assert place.run("erase", "--everything").returncode == 2, "nobody was asked"
        data = postgres.status(place.paths).data
        (place.paths.data.parent / "mine.txt").write_text("not Jarvis's")
        done = place.run("erase", "--everything", "--yes")
        assert done.returncode == 0, done.stderr
        assert not data.exists()
        left = list(place.paths.data.parent.rglob("*"))
        assert left == [place.paths.data.parent / "mine.txt"]
        assert not layout.anchor_folder(place.paths).exists()
        listing = subprocess.run(
            ["ps", "-ww", "-A", "-o", "command="], capture_output=True, text=True, check=True
        )
        assert str(place.paths.data.parent) not in listing.stdout
        # And it can begin again.
        assert place.run("memory", "list").stdout == ""


@pytest.mark.owner
def test_erase_on_a_server_of_ones_own_takes_jarvis_only(cli: Cli, database: object) -> None:
    from jarvis.store.database import Database

    assert isinstance(database, Database)
    with database.maintenance() as connection:
        connection.execute("CREATE TABLE somebody_elses (x int)")
    assert cli("memory", "add", "The safe is behind the picture").returncode == 0
    environment = {"JARVIS_HOME": str(Path(cli.environment["JARVIS_CONFIG"]).parent / "own")}
    done = cli("erase", "--everything", "--yes", env=environment)
    assert done.returncode == 0, done.stderr
    with database.connect_as_owner() as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
    assert rows == [("somebody_elses",)]


def test_a_report_holds_nothing_personal(
    settings: DatabaseSettings, paths: Paths, tmp_path: Path
) -> None:
    config = Config(
        user="zaphod",
        database=settings,
        chat=ChatSettings(
            provider="ollama", host="http://gpu.zaphod.example:1", system="I am Ford"
        ),
    )
    app = App(config, paths)
    with app.database.transaction() as tx:
        person = users.ensure(tx, "zaphod")
        sessions.create(tx, person.id, title="a trip to Magrathea")
    log.set_up(paths.logs, debug=True)
    log.get("test").content("question", "where is Magrathea")
    log.get("test").info("path %s", Path.home() / "papers")
    log.get("test").warning("cannot read /srv/betelgeuse/plan.pdf and '/srv/my betelgeuse/a b'")
    log.get("test").warning("%s is full; POST /api/chat; see /usr/bin/psql", paths.data / "x")
    log.set_up(paths.logs)
    target = report.write(app, tmp_path / "r.zip", list(doctor.run(app)))
    app.close()
    assert oct(target.stat().st_mode & 0o777) == "0o600"
    with zipfile.ZipFile(target) as pack:
        texts = {name: pack.read(name).decode() for name in pack.namelist()}
    whole = "\n".join(texts.values())
    for word in ("zaphod", "Magrathea", "Ford", "gpu.", "papers", "betelgeuse", str(tmp_path)):
        assert word not in whole
    assert "(data)/x is full; POST /api/chat; see /usr/bin/psql" in texts["jarvis.log"]
    assert json.loads(texts["rows.json"])["sessions"] == 1
    assert "database" in texts["doctor.txt"]
    assert f"python {sys.version.split()[0]}" in texts["versions.txt"]


def test_no_secret_in_the_list_of_processes(cli: Cli, settings: DatabaseSettings) -> None:
    """psql gets a password in its environment, which only this user can see."""
    from jarvis.services import server
    from jarvis.store.database import Database

    seen: list[tuple[list[str], dict[str, str]]] = []
    database = Database(replace(settings, password="geheim"), Paths.from_environment(os.environ))
    server.psql(database, ["-c", "x"], execute=lambda _p, argv, env: seen.append((argv, env)))
    database.close()
    ((argv, environment),) = seen
    assert "geheim" not in " ".join(argv)
    assert environment["PGPASSWORD"] == "geheim"


def test_psql_through_a_pooler_or_encrypted(
    settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jarvis.services import server
    from jarvis.store.database import Database

    def environment(**changes: Any) -> dict[str, str]:
        seen: list[dict[str, str]] = []
        changed = replace(settings, **changes)
        database = Database(changed, Paths.from_environment(os.environ))
        monkeypatch.setattr(database, "open", lambda: None)
        server.psql(database, execute=lambda _p, _argv, env: seen.append(env))
        return seen[0]

    options = "?options=-csearch_path%3Dmine,tools"
    assert environment(schema="mine")["PGOPTIONS"] == "-c search_path=mine,public,extensions"
    assert environment(schema="mine", url="postgresql://x@h/d" + options)["PGOPTIONS"].endswith(
        "extensions -csearch_path=mine,tools"
    )
    assert "PGOPTIONS" not in environment(schema="mine", prepared_statements=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert environment(sslmode="prefer")
    with pytest.raises(NotFound, match="cannot encrypt"):
        environment(sslmode="verify-full")
