"""Backups: whole, checked, private; restored wholly or not at all, also from older versions."""

from __future__ import annotations

import json
import random
import stat
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jarvis.config import DatabaseSettings
from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.paths import Paths, private_folder
from jarvis.services import backup
from jarvis.store import archive, migrations, sessions, users
from jarvis.store.database import Database
from jarvis.types import User
from tests.conftest import Cli

pytestmark = pytest.mark.owner

NASTY = "tab\t newline\n backslash \\ \\N null-like 'quote' \"double\" Grüße 日本語 👩‍🌾 {1,2}"


@pytest.fixture
def filled(database: Database, user: User) -> Database:
    """A row in every table that a person's data can be in."""
    with database.transaction() as tx:
        sessions.create(tx, user.id, title=NASTY)
        tx.execute(
            "INSERT INTO memories (user_id, id, type, content, content_hash, importance,"
            " confidence, source) SELECT %s, next_id(%s, 'memory'), 'FACT', 'fact ' || n,"
            " sha256(n::text::bytea), 0.5, 0.5, 'manual' FROM generate_series(1, 200) n",
            (user.id, user.id),
        )
        tx.execute("INSERT INTO embedding_models (name, digest, dimensions) VALUES ('m', 'd', 3)")
        tx.execute(
            "INSERT INTO memory_vectors (user_id, memory_id, model_id, embedding)"
            " SELECT user_id, id, (SELECT id FROM embedding_models), '[0.1,-2e-7,3]' FROM memories"
        )
        tx.execute(
            "INSERT INTO memory_terms SELECT user_id, id, 'english', ARRAY[1,2], '{1:0.5}/9'"
            " FROM memories"
        )
    return database


def content(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    found = {}
    with database.connection() as connection:
        for name in archive.counts(connection):
            query = f"SELECT t::text FROM {name} t ORDER BY 1"  # noqa: S608 -- our own tables
            rows = connection.execute(query.encode())
            found[name] = rows.fetchall()
    return found


def test_a_restore_brings_back_every_row(filled: Database, paths: Paths, user: User) -> None:
    before = content(filled)
    made = backup.create(filled, paths)
    assert made.rows == sum(len(rows) for rows in before.values())
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    with filled.transaction() as tx:
        tx.execute("DELETE FROM users")
        users.ensure(tx, "somebody else")
    backup.restore(filled, made.path)
    assert content(filled) == before
    with filled.transaction() as tx:  # ids go on where they were
        assert sessions.create(tx, user.id).id == 2
        assert users.ensure(tx, "third").id > user.id
        row = tx.execute("SELECT next_id(%s, 'memory')", (user.id,)).fetchone()
        assert row == (201,)


def test_what_was_there_before_a_restore_is_kept(filled: Database, paths: Paths) -> None:
    before = content(filled)
    made = backup.create(filled, paths)
    with filled.transaction() as tx:
        tx.execute("UPDATE sessions SET title = 'changed later'")
    changed = content(filled)
    backup.restore(filled, made.path)
    kept = [found for found in backup.stored(paths) if "before-restore" in found.path.name]
    assert len(kept) == 1
    assert content(filled) == before
    backup.restore(filled, kept[0].path)
    assert content(filled) == changed


def test_a_rehearsal_changes_nothing(filled: Database, paths: Paths) -> None:
    made = backup.create(filled, paths)
    with filled.transaction() as tx:
        tx.execute("UPDATE sessions SET title = 'changed later'")
    before = content(filled)
    backup.restore(filled, made.path, rehearse=True)
    assert content(filled) == before
    with filled.connection() as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ 'rehearsal'")
        assert rows.fetchall() == []


def test_one_moment(filled: Database, database: Database, paths: Paths, user: User) -> None:
    """Rows written while a backup runs are in it together or not at all."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with filled.transaction() as tx:
                session = sessions.create(tx, user.id, title="pair")
                tx.execute(
                    "INSERT INTO messages (user_id, id, session_id, role, content)"
                    " VALUES (%s, next_id(%s, 'message'), %s, 'user', 'pair')",
                    (user.id, user.id, session.id),
                )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [backup.create(filled, paths) for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    for one in made:
        assert one.tables["messages"] == one.tables["sessions"] - 1


@pytest.mark.parametrize("damage", ["cut", "flip", "entry", "text", "empty"])
def test_a_damaged_backup_is_refused(filled: Database, paths: Paths, damage: str) -> None:
    made = backup.create(filled, paths)
    data = bytearray(made.path.read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "flip":
        data[random.Random(1).randrange(200, len(data) // 2)] ^= 0x40
    elif damage == "text":
        data = bytearray(b"no zip at all")
    elif damage == "empty":
        data = bytearray()
    made.path.write_bytes(data)
    if damage == "entry":
        _replace_entry(made.path, "data/memories", b"")
    before = content(filled)
    for action in (backup.verify, lambda path: backup.restore(filled, path)):
        with pytest.raises(JarvisError, match="damaged"):
            action(made.path)
    assert content(filled) == before


def _replace_entry(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path) as pack:
        entries = {info.filename: pack.read(info) for info in pack.infolist()}
    with zipfile.ZipFile(path, "w") as pack:
        for entry, content_ in entries.items():
            pack.writestr(entry, data if entry == name else content_)


def test_a_lie_in_the_manifest_undoes_the_restore(filled: Database, paths: Paths) -> None:
    """The check against the manifest is inside the transaction, too."""
    made = backup.create(filled, paths)
    before = content(filled)
    with filled.maintenance() as connection, pytest.raises(JarvisError, match="damaged"):
        archive.restore(
            connection,
            made.schema_version,
            [archive.Table("embedding_models", ("name", "digest", "dimensions"), 1, "0" * 64)],
            lambda _: iter([b"name\tdigest\t3\n"]),
            after=lambda _: None,
        )
    assert content(filled) == before


def test_of_a_newer_version_and_of_nothing(filled: Database, paths: Paths) -> None:
    made = backup.create(filled, paths)
    with zipfile.ZipFile(made.path) as pack:
        manifest = json.loads(pack.read("manifest.json"))
    manifest["schema_version"] = 999
    _replace_entry(made.path, "manifest.json", json.dumps(manifest).encode())
    before = content(filled)
    with pytest.raises(JarvisError, match="version 999"):
        backup.restore(filled, made.path)
    assert content(filled) == before
    with pytest.raises(NotFound):
        backup.restore(filled, paths.backups / "nothing.zip")
    with pytest.raises(UsageError):
        backup.create(filled, paths, made.path)


@pytest.fixture
def old(settings: DatabaseSettings, paths: Paths) -> Iterator[Database]:
    """The test's database, thrown back to the first schema version, with a user and sessions."""
    database = Database(settings, paths, before_migration=backup.before_migration)
    with database.connect_as_owner() as connection:
        with connection.transaction():
            archive.drop_all(connection)
        migrations.migrate(connection, database, up_to=1)
        person = users.ensure(connection, "ada")
        connection.execute(
            "INSERT INTO sessions (user_id, id, title) SELECT %s, n, 'title ' || n"
            " FROM generate_series(1, 50) n",
            (person.id,),
        )
    yield database
    database.close()


def test_a_backup_of_every_older_version_is_brought_up_to_date(old: Database, paths: Paths) -> None:
    made = []
    for step in migrations.available():
        with old.connect_as_owner() as connection:
            migrations.migrate(connection, old, up_to=step.version)
            assert migrations.current(connection) == step.version
            target = private_folder(paths.backups) / f"v{step.version}.zip"
            made.append(backup._create(connection, paths, target, ""))
    assert [one.schema_version for one in made] == [s.version for s in migrations.available()]
    for one in made:
        backup.restore(old, one.path, rehearse=True)
        backup.restore(old, one.path)
        with old.connection() as connection:
            assert migrations.current(connection) == migrations.latest()
            row = connection.execute("SELECT count(*), min(title) FROM sessions").fetchone()
        assert row == (50, "title 1")


def test_a_migration_backs_up_first_and_keeps_five(old: Database, paths: Paths) -> None:
    old.open()
    first = backup.stored(paths)
    assert [one.schema_version for one in first] == [1]
    assert "before-v1" in first[0].path.name
    for _ in range(7):
        backup.before_migration(old, 1)
    assert len(backup.stored(paths)) == backup.KEPT
    mine = backup.create(old, paths)
    for _ in range(7):
        backup.before_migration(old, 1)
    assert mine.path.exists(), "a backup that a person made was deleted"


def test_a_migration_that_fails_leaves_the_old_schema_and_a_backup(
    old: Database, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = migrations.Migration(migrations.latest() + 1, "V999__bad", "CREATE TABLE x (y nonsense)")
    good = migrations.available()
    monkeypatch.setattr(migrations, "available", lambda: [*good, bad])
    monkeypatch.setattr(migrations, "latest", lambda: bad.version)
    with pytest.raises(JarvisError, match="cannot be prepared"):
        old.open()
    with old.connect_as_owner() as connection:
        assert migrations.current(connection) == bad.version - 1
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (50,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM x")
    assert backup.stored(paths)


def test_the_commands(cli: Cli, filled: Database, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    done = cli("db", "backup", str(target), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["memories"] == 200
    assert cli("db", "backup", "--check", str(target)).returncode == 0
    assert cli("db", "restore", str(target)).returncode == 2, "nobody was asked"
    assert cli("db", "restore", str(target), "--rehearse").returncode == 0
    with filled.transaction() as tx:
        tx.execute("DELETE FROM memories")
    done = cli("db", "restore", str(target), "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    with filled.connection() as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (200,)
    assert cli("db", "restore", str(tmp_path / "none"), "--yes").returncode == 5
