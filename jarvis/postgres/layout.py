"""Where the embedded server's files lie.

As a normal user: all in ``paths.postgres``, the socket in ``paths.postgres_runtime``.

As root the server runs as a system user of its own (Postgres refuses to run as root), which
cannot enter root's folders. So there is an *anchor*, ``/var/lib/jarvis/<hash of the data
folder>``, with the lock, the record and the socket; the cluster lies in the given home when the
system user can reach it (a container with ``JARVIS_HOME`` on a volume), otherwise in the anchor.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from jarvis.paths import Paths

SYSTEM_FOLDER = Path("/var/lib/jarvis")
"""Ours alone; exists only where Jarvis has run as root."""

_CLUSTER_PREFIX = "data-"


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of one embedded server.

    ``anchor`` holds lock and record, ``home`` the clusters (``data-18``), ``run`` the socket.
    """

    anchor: Path
    home: Path
    run: Path
    log: Path

    @property
    def lock(self) -> Path:
        """Held while the server is made, started, stopped or upgraded."""
        return self.anchor / "lock"

    @property
    def record(self) -> Path:
        """What was started: binaries, version, process."""
        return self.anchor / "record.json"

    def cluster(self, major: int) -> Path:
        """The data folder of a major version."""
        return self.home / f"{_CLUSTER_PREFIX}{major}"

    def clusters(self) -> dict[int, Path]:
        """The finished data folders by major version."""
        return _clusters(self.home)


def is_root() -> bool:
    """Whether Postgres would refuse to run as this user."""
    return os.geteuid() == 0


def anchor_folder(paths: Paths) -> Path:
    """Where lock and record are."""
    if not is_root():
        return paths.postgres
    digest = hashlib.sha256(os.fsencode(os.path.realpath(paths.data))).hexdigest()
    return SYSTEM_FOLDER / digest[:16]


def socket_folder(paths: Paths) -> Path:
    """Where the socket is."""
    return anchor_folder(paths) / "run" if is_root() else paths.postgres_runtime


def find(paths: Paths, uid: int | None = None) -> Layout:
    """The layout as it is, or as it will be made.

    Args:
        uid: the user that the server runs as; None: not known (yet), which counts as a stranger.
    """
    anchor = anchor_folder(paths)
    home = anchor
    if is_root():
        given = _given_home(paths)
        inside = given / "postgres" if given else None
        if inside is not None and (
            _clusters(inside) or (not _clusters(anchor) and reachable(inside, uid) is None)
        ):
            home = inside
    return Layout(anchor, home, socket_folder(paths), paths.logs / "postgres.log")


def reachable(path: Path, uid: int | None) -> Path | None:
    """The first existing folder at or above ``path`` that ``uid`` may not enter; None: none.

    ``uid`` None asks for a user who owns nothing and is in no group.
    """
    for folder in [*reversed(path.parents), path]:
        try:
            info = folder.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return folder
        mine = uid is not None and info.st_uid == uid
        if not info.st_mode & (stat.S_IXUSR if mine else stat.S_IXOTH):
            # A folder of our own lets the system user's group in.
            if uid is not None and info.st_mode & stat.S_IXGRP and _group_of(uid) == info.st_gid:
                continue
            return folder
    return None


def _group_of(uid: int) -> int | None:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return None


def _given_home(paths: Paths) -> Path | None:
    """The folder of ``JARVIS_HOME``, told by the shape of the paths."""
    home = paths.data.parent
    shaped = (home / "config", home / "data", home / "state")
    return home if (paths.config, paths.data, paths.state) == shaped else None


def _clusters(folder: Path) -> dict[int, Path]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return {}
    found = {}
    for path in entries:
        major = path.name.removeprefix(_CLUSTER_PREFIX)
        named = path.name.startswith(_CLUSTER_PREFIX) and major.isdigit()
        if named and (path / "PG_VERSION").exists():
            found[int(major)] = path
    return found
