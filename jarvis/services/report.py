"""A bundle for a bug report: how things stand, and nothing that anybody said.

What goes in is chosen, not what is left out: the checks, versions, settings without addresses
and secrets, how many rows each table has, and the ends of the logs below the level ``debug``.
Names of people and folders are replaced.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.metadata
import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jarvis import __version__, config
from jarvis import log as logs
from jarvis.errors import JarvisError, UsageError
from jarvis.paths import expand, private_file
from jarvis.services.privacy import is_local

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.doctor import Check

LOG_BYTES = 200_000
"""At most so much of the end of each log."""

_TOLD_AS_IS = re.compile(
    r"(provider|port|sslmode|prepared_statements|timeout|idle_|num_ctx|temperature|think|"
    r"dimensions|threads|keep_alive|sources|extract|max_|hold_|facts|turns|chunks|min_|fallback|"
    r"weight|language|seconds|tokens|enabled|pure|reads|writes|network|editing|theme|stats|"
    r"history|level|ocr|overlap|chunk_)"
)


def write(app: App, target: Path, checks: Iterable[Check]) -> Path:
    """Writes the bundle and returns where it is.

    Raises:
        UsageError: the file exists already.
        JarvisError: it cannot be written.
    """
    if target.exists():
        raise UsageError(f"{target} exists already", "name another file")
    parts = {
        "doctor.txt": "\n".join(
            f"{check.level:6}  {check.name}: {check.detail} {check.hint}" for check in checks
        ),
        "versions.txt": "\n".join(_versions()),
        "settings.json": json.dumps(_settings(app), indent=1),
        "rows.json": json.dumps(_rows(app), indent=1),
        "jarvis.log": _log_end(app.paths.logs / logs.FILE_NAME),
        "postgres.log": _log_end(app.paths.logs / "postgres.log"),
    }
    try:
        with (
            os.fdopen(private_file(target, os.O_RDWR | os.O_CREAT | os.O_EXCL), "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack,
        ):
            for name, text in parts.items():
                pack.writestr(name, without_names(text, app))
    except OSError as error:
        raise JarvisError(
            f"cannot write {target}: {error.strerror}", "name another file"
        ) from error
    return target


def _versions() -> list[str]:
    found = [f"jarvis {__version__}", f"python {platform.python_version()}", platform.platform()]
    names = importlib.metadata.requires("jarvis-assistant") or [] if _installed() else []
    for requirement in names:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return found


def _installed() -> bool:
    try:
        importlib.metadata.version("jarvis-assistant")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _settings(app: App) -> dict[str, object]:
    """Every setting that differs from its default; its value only where it names nobody."""
    default = config.Config()
    changed: dict[str, object] = {}
    for key in sorted(config.keys()):
        value = config.value_of(app.config, key)
        if value == config.value_of(default, key):
            continue
        plain = _TOLD_AS_IS.match(key.rpartition(".")[2]) and not isinstance(value, dict)
        changed[key] = value if plain or isinstance(value, bool) else "(set)"
    return changed


def _rows(app: App) -> dict[str, int]:
    from jarvis.store import archive

    with contextlib.suppress(JarvisError), app.database.connection() as connection:
        return archive.counts(connection)
    return {}


def _log_end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    # With --debug the log holds what was said: those lines stay here.
    kept, skipping = [], False
    for line in lines:
        if not line.startswith(" "):
            skipping = " debug " in line[:40] or "STATEMENT:" in line or "DETAIL:" in line
        if not skipping:
            kept.append(line)
    return "\n".join(kept)


_PATH = re.compile(
    r"(?P<quote>[\"'])(?:~|(?=/))/[^\"'\n]+(?P=quote)|(?<![\w/.:~)])~?/[^\s\"':;,()]+"
)
_EVERYBODYS = re.compile(
    r"[\"']?/(?:usr|lib\w*|bin|sbin|etc|dev|proc|sys|api|var/lib/jarvis|var/run|run|home|Users)\b"
)


def without_names(text: str, app: App) -> str:
    """``text`` with folders, login and user names, and addresses replaced.

    Jarvis's own folders become ``(data)`` and the like; of other paths those stay that every
    machine has.
    """
    text = re.sub(r"(\w+://)(?:[^/\s@]*@)?(\[[^\]]*\]|[^/\s:]+)", _host, text)
    for folder, name in sorted(_folders(app), key=lambda one: len(one[0]), reverse=True):
        text = text.replace(folder, name)
    text = text.replace(str(expand("~")), "~")
    text = _PATH.sub(lambda path: path[0] if _EVERYBODYS.match(path[0]) else "(path)", text)
    for name in sorted({*_names(app)}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", "(name)", text)
    text = re.sub(r"/(home|Users)/[^/\s]+", r"/\1/(name)", text)
    return re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "(address)", text)


def _folders(app: App) -> Iterable[tuple[str, str]]:
    """Jarvis's own folders, and what a report calls them."""
    paths = app.paths
    for name in ("config", "data", "state", "cache", "models", "runtime"):
        yield str(getattr(paths, name)), f"({name})"
    yield sys.prefix, "(program)"


def _host(found: re.Match[str]) -> str:
    """An address, its host kept only where it is this machine or everybody's."""
    known = is_local(found[2]) or found[2].endswith(("huggingface.co", "ollama.com"))
    return found[1] + (found[2] if known else "(host)")


def _names(app: App) -> Iterable[str]:
    ordinary = {"root", "user", "jarvis", "postgres", "jarvis_owner", ""}
    names = {app.user_name, platform.node()}
    with contextlib.suppress(KeyError, OSError):
        names.add(getpass.getuser())
    with contextlib.suppress(JarvisError):
        info = app.database.conninfo()
        if not app.database.embedded:
            names |= {str(info.get(key, "")) for key in ("host", "user", "dbname")}
    with contextlib.suppress(JarvisError), app.database.connection() as connection:
        from jarvis.store import users

        names |= set(users.names(connection))
    return names - ordinary
