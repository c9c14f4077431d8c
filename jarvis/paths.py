"""Where everything lies. Nothing is created at import; ``private_folder`` creates.

``JARVIS_HOME`` puts everything in one folder; without it the platform's own folders are used
(``platformdirs``). ``JARVIS_MODELS`` moves the model files alone. Every folder of ours is 0700
and every file 0600; folders above ours are never touched.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jarvis.errors import ConfigError, JarvisError

MAX_SOCKET_PATH = 100
"""Bytes in the longest socket path that is safe everywhere (``sun_path`` holds 104 on macOS)."""

_LONGEST_SOCKET_NAME = len("/postgres/.s.PGSQL.5432")


@dataclass(frozen=True, slots=True)
class Paths:
    """Every place that Jarvis reads or writes.

    ``runtime`` holds sockets, so it is short: the state folder's ``run`` where that fits,
    otherwise a folder of ours under the system's runtime folder, named by uid and a hash.
    """

    config: Path
    data: Path
    state: Path
    cache: Path
    models: Path
    runtime: Path

    @classmethod
    def from_environment(cls, env: Mapping[str, str] | None = None) -> Paths:
        """Works out the paths. Reads ``env`` (default: ``os.environ``); touches no file.

        Raises:
            ConfigError: ``JARVIS_HOME`` or ``JARVIS_MODELS`` is not an absolute path, or there is
                neither of ``JARVIS_HOME`` and a home folder.
        """
        env = os.environ if env is None else env
        home = _absolute(env, "JARVIS_HOME")
        if home is not None:
            config, data, state, cache = (
                home / name for name in ("config", "data", "state", "cache")
            )
        else:
            import platformdirs

            try:
                config = Path(platformdirs.user_config_dir("jarvis", appauthor=False))
                data = Path(platformdirs.user_data_dir("jarvis", appauthor=False))
                state = Path(platformdirs.user_state_dir("jarvis", appauthor=False))
                cache = Path(platformdirs.user_cache_dir("jarvis", appauthor=False))
            except RuntimeError:  # neither HOME nor a line in passwd
                raise ConfigError(
                    "this user has no home folder", "set HOME or JARVIS_HOME to a folder"
                ) from None
            if sys.platform == "darwin":
                # There config, data and state are one folder: keep them apart inside it.
                data, state = data / "data", state / "state"
        models = _absolute(env, "JARVIS_MODELS") or data / "models"
        return cls(config, data, state, cache, models, _runtime_folder(state, env))

    @property
    def config_file(self) -> Path:
        """The configuration."""
        return self.config / "config.toml"

    @property
    def user_tools(self) -> Path:
        """Python files with tools of the user's own."""
        return self.config / "tools"

    @property
    def postgres(self) -> Path:
        """The embedded server's folder (data, log, record); may lie elsewhere when root."""
        return self.data / "postgres"

    @property
    def postgres_runtime(self) -> Path:
        """Where the embedded server's socket is."""
        return self.runtime / "postgres"

    @property
    def engine_runtime(self) -> Path:
        """Where the engine's sockets and lock are."""
        return self.runtime / "engine"

    @property
    def backups(self) -> Path:
        """Dumps made by ``jarvis db backup`` and before a migration."""
        return self.data / "backups"

    @property
    def logs(self) -> Path:
        """Log files of every process."""
        return self.state / "logs"

    @property
    def history(self) -> Path:
        """What was typed into the chat."""
        return self.state / "history"

    @property
    def completions(self) -> Path:
        """Ids, titles and model names for shell completion."""
        return self.cache / "completions.tsv"


def expand(name: str | Path) -> Path:
    """A path as a person writes it: ``~`` and ``~user`` replaced where there is such a home.

    ``Path.expanduser`` and ``Path.home`` raise ``RuntimeError`` there.
    """
    return Path(os.path.expanduser(name))  # noqa: PTH111 -- for the reason above


def _absolute(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name, "")
    if not value:
        return None
    path = expand(value)
    if not path.is_absolute():
        raise ConfigError(f"{name} is not an absolute path: {value}", f"give {name} in full")
    return path


def _runtime_folder(state: Path, env: Mapping[str, str]) -> Path:
    run = state / "run"
    if len(os.fsencode(run)) + _LONGEST_SOCKET_NAME <= MAX_SOCKET_PATH:
        return run
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
    base = env.get("XDG_RUNTIME_DIR") or env.get("TMPDIR") or "/tmp"  # noqa: S108 -- as below
    if len(os.fsencode(base)) > 40:
        base = "/tmp"  # noqa: S108 -- the folder inside is 0700 and its owner is checked
    return Path(base) / f"jarvis-{os.getuid()}-{digest}"


def private_folder(path: Path) -> Path:
    """Makes ``path`` a 0700 folder of ours (and missing folders above it), and returns it.

    An existing folder that others can enter is closed; one that belongs to another user, or is
    a link, is refused. Folders that already stood above it are left as they are.

    Raises:
        JarvisError: it cannot be created, or belongs to somebody else.
    """
    try:
        missing = [folder for folder in path.parents if not folder.exists()]
        for folder in [*reversed(missing), path]:
            folder.mkdir(mode=0o700, exist_ok=True)
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) and not (path.is_symlink() and path.is_dir()):
            raise JarvisError(f"{path} is not a folder", "move it out of the way")
        info = path.stat()
        if info.st_uid != os.getuid() and os.getuid() != 0:
            raise JarvisError(f"{path} belongs to another user", "remove it or set JARVIS_HOME")
        if info.st_uid == os.getuid() and stat.S_IMODE(info.st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise JarvisError(
            f"cannot use the folder {path}: {error.strerror}",
            "make it writable, or set JARVIS_HOME to a folder that is",
        ) from error
    return path


def private_file(path: Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND) -> int:
    """Opens ``path`` as a 0600 file and returns the descriptor; never follows a last link.

    Raises:
        OSError: as ``os.open``.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor
