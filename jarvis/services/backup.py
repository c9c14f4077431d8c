"""Backups: one private file with everything, checked when written and when read.

The file is a ZIP archive: ``data/<table>`` with the rows as ``COPY`` text, then ``manifest.json``
with the schema version, and for every table its columns, number of rows and SHA-256. It is
written under another name and renamed when it is whole and has been read back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis import __version__, log
from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.paths import Paths, private_file, private_folder

if TYPE_CHECKING:
    from jarvis.store.archive import Table
    from jarvis.store.database import Connection, Database

FORMAT = 1
KEPT = 5
"""Automatic backups that are kept, newest first. Those that a person made are never deleted."""
SUFFIX = ".jarvis.zip"

_MANIFEST = "manifest.json"
_BLOCK = 1 << 20
_AUTOMATIC = "before-"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup file and what it says about itself."""

    path: Path
    created_at: datetime.datetime
    schema_version: int
    jarvis_version: str
    postgres_version: str
    rows: int
    size_bytes: int
    tables: dict[str, int]


def create(database: Database, paths: Paths, target: Path | None = None, why: str = "") -> Backup:
    """Writes a backup of everything and reads it back.

    Args:
        target: the file; default: a new one in the backups folder. An existing one is refused.
        why: a part of the default name.

    Raises:
        DatabaseUnavailable: the database cannot be read, or not all of it by this role.
        JarvisError: the file cannot be written, or is not what was written.
    """
    from jarvis.store import roles

    database.open()
    with contextlib.closing(database.connect_as_owner()) as connection:
        roles.check_owner(connection)
        return _create(connection, paths, target, why)


def before_migration(database: Database, version: int) -> None:
    """The automatic backup: called by the migrator when there is something to lose.

    Raises:
        JarvisError: it could not be made; the migration must not go on.
    """
    from jarvis.store import archive

    with contextlib.closing(database.connect_as_owner()) as connection:
        if not archive.counts(connection).get("users"):
            return
        database.progress("backing up the database before it changes")
        made = _create(connection, database.paths, None, f"{_AUTOMATIC}v{version}")
    log.get("backup").info("backup before a migration from version %d: %s", version, made.path.name)
    _discard_old(database.paths)


def _create(connection: Connection, paths: Paths, target: Path | None, why: str) -> Backup:
    from jarvis.store import archive, migrations

    now = datetime.datetime.now(datetime.UTC)
    if target is None:
        name = f"jarvis-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z"
        target = private_folder(paths.backups) / (name + (f"-{why}" if why else "") + SUFFIX)
    if target.exists():
        raise UsageError(f"{target} exists already", "name another file")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        descriptor = private_file(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with (
            archive.translated("cannot back up the database", "jarvis doctor"),
            os.fdopen(descriptor, "r+b") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as pack,
        ):
            with contextlib.ExitStack() as entries:

                def write(table: str) -> Callable[[bytes], object]:
                    entries.pop_all().close()
                    entry = pack.open(_entry(table), "w", force_zip64=True)
                    return entries.enter_context(entry).write

                tables = archive.export(connection, write)
            manifest = {
                "format": FORMAT,
                "created_at": now.isoformat(),
                "jarvis_version": __version__,
                "postgres_version": _postgres_version(connection),
                "schema_version": migrations.current(connection),
                "tables": [dataclasses.asdict(table) for table in tables],
            }
            pack.writestr(_MANIFEST, json.dumps(manifest, indent=1))
            pack.close()
            file.flush()
            os.fsync(file.fileno())
        verify(unfinished)
        unfinished.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise JarvisError(
            f"cannot write the backup {target}: {error.strerror or error}",
            "make room, or name a file elsewhere; nothing was changed",
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return describe(target)


def _entry(table: str) -> str:
    return f"data/{table}"


def named(path: Path | None) -> Path:
    """``path``, where one was given.

    Raises:
        UsageError: none was.
    """
    if path is None:
        raise UsageError("which backup?", "jarvis db backup --check FILE")
    return path


def describe(path: Path) -> Backup:
    """What a backup says about itself; its rows are not read.

    Raises:
        NotFound: there is no such file.
        JarvisError: it is no backup of ours.
    """
    with _open(path) as (_, manifest, tables):
        return Backup(
            path=path,
            created_at=datetime.datetime.fromisoformat(manifest["created_at"]),
            schema_version=manifest["schema_version"],
            jarvis_version=manifest["jarvis_version"],
            postgres_version=manifest["postgres_version"],
            rows=sum(table.rows for table in tables),
            size_bytes=path.stat().st_size,
            tables={table.name: table.rows for table in tables},
        )


def verify(path: Path) -> Backup:
    """Reads a backup wholly and compares every table with what the manifest says.

    Raises:
        NotFound: there is no such file.
        JarvisError: it is no backup of ours, or damaged.
    """
    with _open(path) as (pack, _, tables):
        for table in tables:
            digest, rows = hashlib.sha256(), 0
            for block in _blocks(pack, table.name, path):
                digest.update(block)
                rows += block.count(b"\n")
            if (rows, digest.hexdigest()) != (table.rows, table.sha256):
                raise _damaged(path)
    return describe(path)


def restore(
    database: Database, path: Path, *, rehearse: bool = False, progress: Progress = lambda _: None
) -> Backup:
    """Replaces everything in the database by a backup, all of it or nothing.

    What is there now is backed up first. A backup of an older version is brought up to date.

    Args:
        rehearse: restore beside the present tables, check every row, and undo it.

    Raises:
        NotFound: there is no such file.
        JarvisError: it is no backup of ours, damaged, or of a newer version.
        DatabaseUnavailable: the database refused, or the role may not; it is as it was.
    """
    from jarvis.store import archive, migrations, roles

    found = verify(path)
    database.open()
    with contextlib.closing(database.connect_as_owner()) as connection:
        roles.check_owner(connection)
        if not rehearse and archive.counts(connection).get("users"):
            kept = _create(connection, database.paths, None, f"{_AUTOMATIC}restore")
            _discard_old(database.paths)
            progress(f"what was there is in {kept.path}")
        with archive.translated("the database refused the backup", "nothing was changed"):
            with _open(path) as (pack, _, tables):
                archive.restore(
                    connection,
                    found.schema_version,
                    tables,
                    lambda table: _blocks(pack, table, path),
                    after=lambda tx: migrations.give_rights(tx, database),
                    rehearse=rehearse,
                )
            if not rehearse:
                migrations.migrate(connection, database)
    database.close()
    return found


def stored(paths: Paths) -> list[Backup]:
    """The backups in the backups folder, newest first; what cannot be read is left out."""
    found = []
    for path in sorted(paths.backups.glob(f"*{SUFFIX}")):
        with contextlib.suppress(JarvisError):
            found.append(describe(path))
    return sorted(found, key=lambda backup: backup.created_at, reverse=True)


def _discard_old(paths: Paths) -> None:
    automatic = sorted(paths.backups.glob(f"jarvis-*Z-{_AUTOMATIC}*{SUFFIX}"), reverse=True)
    for path in automatic[KEPT:]:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any], list[Table]]]:
    with contextlib.ExitStack() as stack:
        with _readable(path):
            pack = stack.enter_context(zipfile.ZipFile(path))
            manifest, tables = _contents(pack)
        if manifest["format"] != FORMAT:
            raise JarvisError(
                f"{path} is a backup of a format that this Jarvis does not know",
                "use the newer Jarvis that made it",
            )
        yield pack, manifest, tables


def _contents(pack: zipfile.ZipFile) -> tuple[dict[str, Any], list[Table]]:
    from jarvis.store.archive import Table

    manifest = json.loads(pack.read(_MANIFEST))
    tables = [
        Table(
            str(entry["name"]),
            tuple(map(str, entry["columns"])),
            int(entry["rows"]),
            str(entry["sha256"]),
        )
        for entry in manifest["tables"]
    ]
    int(manifest["format"])  # a manifest without one is damaged
    return manifest, tables


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says in our words what ``zipfile`` finds wrong with a file.

    It has many: a damaged version is NotImplementedError, a damaged flag RuntimeError (as if it
    were encrypted), a damaged length EOFError or a seek to nowhere.
    """
    import struct
    import zlib

    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", "jarvis db backup --list") from None
    except OSError as error:
        if error.errno is None or error.errno == errno.EINVAL:
            raise _damaged(path) from error
        raise JarvisError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        OverflowError,
        EOFError,
        RuntimeError,
        struct.error,
        zlib.error,
        zipfile.BadZipFile,
    ) as error:
        raise _damaged(path) from error


def _blocks(pack: zipfile.ZipFile, table: str, path: Path) -> Iterator[bytes]:
    with _readable(path):
        entry = pack.open(_entry(table))
    with entry:
        while True:
            with _readable(path):
                block = entry.read(_BLOCK)
            if not block:
                return
            yield block


def _damaged(path: Path) -> JarvisError:
    return JarvisError(
        f"{path} is damaged, or no backup of Jarvis", "nothing was changed; use another backup"
    )


def _postgres_version(connection: Connection) -> str:
    number = connection.info.server_version
    return f"{number // 10_000}.{number % 10_000}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
