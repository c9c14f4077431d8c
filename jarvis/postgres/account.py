"""Who the server runs as: ourselves, or, for root, a system user of its own."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jarvis.errors import DatabaseUnavailable
from jarvis.postgres import layout

SYSTEM_USER = "jarvis-postgres"
"""In no group but its own, no password, no shell, no home."""

_NO_SYSTEM_USER = "run jarvis as a normal user, or set database.url to a server of your own"


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int

    @property
    def is_self(self) -> bool:
        """Whether this is the user that we are."""
        return self.uid == os.geteuid()

    def popen_arguments(self) -> dict[str, Any]:
        """For ``subprocess``: become this user, with no other groups."""
        if self.is_self:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Gives ``path`` (of ours) and all below it to this user."""
        if self.is_self:
            return
        os.lchown(path, self.uid, self.gid)
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.lchown(os.path.join(folder, name), self.uid, self.gid)  # noqa: PTH118


def current() -> Account | None:
    """Who the server runs as, without making anybody. None: the system user is still missing.

    Raises:
        DatabaseUnavailable: this user has no entry in the user database.
    """
    if layout.is_root():
        return _lookup()
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        raise DatabaseUnavailable(
            f"user id {os.geteuid()} has no name, and Postgres needs one",
            "add a line for it to /etc/passwd, or set database.url to a server of your own",
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def ensure(progress: Callable[[str], None]) -> Account:
    """Who the server runs as; makes the system user when we are root and it is missing."""
    found = current()
    if found is None:
        _create()
        found = _lookup()
        if found is None:
            raise DatabaseUnavailable(
                f"the system user {SYSTEM_USER} cannot be found after useradd", _NO_SYSTEM_USER
            )
        progress(f"made the system user {found.name}: Postgres does not run as root")
    if layout.is_root():
        _system_folder(found)
    return found


def remove() -> bool:
    """Deletes the system user, if it is ours and nothing of any Jarvis is left. True: deleted."""
    if not layout.is_root() or sys.platform == "darwin" or _lookup() is None:
        return False
    if layout.SYSTEM_FOLDER.exists():
        return False
    program = shutil.which("userdel") or shutil.which("deluser")
    if program is None:
        return False
    return subprocess.run([program, SYSTEM_USER], check=False, capture_output=True).returncode == 0


def _lookup() -> Account | None:
    # macOS has no useradd, but brings a user for just this purpose.
    name = "_postgres" if sys.platform == "darwin" else SYSTEM_USER
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    others = [group.gr_name for group in grp.getgrall() if name in group.gr_mem]
    if entry.pw_uid == 0 or (others and sys.platform != "darwin"):
        raise DatabaseUnavailable(
            f"the system user {name} has rights it must not have"
            + (f" (groups {', '.join(others)})" if others else " (user id 0)"),
            f"remove it ({name}), or set database.url to a server of your own",
        )
    return Account(name, entry.pw_uid, entry.pw_gid)


def _create() -> None:
    if sys.platform == "darwin":
        raise DatabaseUnavailable("this macOS has no user _postgres", _NO_SYSTEM_USER)
    shell = shutil.which("nologin", path="/usr/sbin:/sbin:/usr/bin") or "/bin/false"
    home = "/nonexistent"
    if program := shutil.which("useradd"):
        options = ["--system", "--user-group", "--no-create-home", "--home-dir", home]
        options += ["--shell", shell, "--comment", "Postgres of Jarvis"]
        commands = [[program, *options, SYSTEM_USER]]
    elif (adduser := shutil.which("adduser")) and (addgroup := shutil.which("addgroup")):
        # BusyBox: no useradd, other options.
        commands = [
            [addgroup, "-S", SYSTEM_USER],
            [adduser, "-S", "-D", "-H", "-h", home, "-s", shell, "-G", SYSTEM_USER, SYSTEM_USER],
        ]
    else:
        raise DatabaseUnavailable(
            "Postgres does not run as root, and there is no useradd to make a user for it",
            _NO_SYSTEM_USER,
        )
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode and _lookup() is None:  # else another process was first
            raise DatabaseUnavailable(
                f"cannot make the system user {SYSTEM_USER}: {done.stderr.strip()}",
                _NO_SYSTEM_USER,
            )


def _system_folder(account: Account) -> None:
    """Makes ``/var/lib/jarvis``: root's, and open to the server's user alone."""
    shared_folder(layout.SYSTEM_FOLDER, account)


def shared_folder(path: Path, account: Account) -> None:
    """Makes ``path`` a folder of root that ``account`` may pass through and nobody else may.

    Raises:
        DatabaseUnavailable: it cannot be made, or is somebody else's.
    """
    try:
        path.mkdir(mode=0o710, exist_ok=True)
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != 0:
            raise DatabaseUnavailable(
                f"{path} is not a folder of root", "move it out of the way, or set database.url"
            )
        if (info.st_gid, stat.S_IMODE(info.st_mode)) != (account.gid, 0o710):
            os.chown(path, 0, account.gid)
            path.chmod(0o710)
    except OSError as error:
        raise DatabaseUnavailable(
            f"cannot use {path}: {error.strerror}", _NO_SYSTEM_USER
        ) from error
