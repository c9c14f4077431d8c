"""``jarvis doctor``: what works, and what to do about the rest.

Each check is one function that looks at one thing, changes nothing but starting the embedded
database (as every command does), and downloads nothing. A check that raises is a failure with
the error's own words, so that no check can hide another.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jarvis import __version__
from jarvis.errors import ExitCode, JarvisError

if TYPE_CHECKING:
    from jarvis.llm.provider import Kind
    from jarvis.services.app import App

Level = Literal["ok", "note", "failed"]

LOW_DISK_BYTES = 2 * 2**30
"""Below this much free space a model can no longer be downloaded."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``exit_code`` counts only for a failed one."""

    name: str
    level: Level
    detail: str
    hint: str = ""
    exit_code: ExitCode = ExitCode.OK


def run(app: App) -> Iterator[Check]:
    """Looks at everything, one thing after the other."""
    checks: tuple[tuple[str, Callable[[App], Iterator[Check]]], ...] = (
        ("python", _python),
        ("folders", _folders),
        ("disk", _disk),
        ("configuration", _configuration),
        ("database", _database),
        ("chat", lambda app: _provider(app, "chat")),
        ("embedding", lambda app: _provider(app, "embedding")),
        ("engine", _engine),
        ("worker", _worker),
    )
    for name, check in checks:
        try:
            yield from check(app)
        except JarvisError as error:
            yield Check(name, "failed", error.message, error.hint, error.exit_code)
        except Exception as error:  # noqa: BLE001 -- a broken check is a finding, not the end
            yield Check(
                name,
                "failed",
                f"{type(error).__name__}: {error}",
                "run it again with --debug",
                ExitCode.FAILED,
            )


def exit_code(checks: list[Check]) -> ExitCode:
    """The code of the first real failure; 0 without one."""
    return next((check.exit_code for check in checks if check.level == "failed"), ExitCode.OK)


def _python(_: App) -> Iterator[Check]:
    # An older Python than 3.11 cannot even read this file.
    version = platform.python_version()
    yield Check(
        "python",
        "ok",
        f"Jarvis {__version__}, Python {version} at {sys.executable}, "
        f"{platform.system()} {platform.machine()}",
    )


def _folders(app: App) -> Iterator[Check]:
    paths = app.paths
    named = {
        "configuration": paths.config,
        "data": paths.data,
        "state": paths.state,
        "cache": paths.cache,
        "models": paths.models,
        "sockets": paths.runtime,
    }
    for name, path in named.items():
        if not path.exists():
            above = next(folder for folder in path.parents if folder.exists())
            if os.access(above, os.W_OK | os.X_OK):
                yield Check(f"folder {name}", "ok", f"{path} (made when needed)")
            else:
                yield Check(
                    f"folder {name}",
                    "failed",
                    f"{path} cannot be made: {above} cannot be written",
                    "make it writable, or set JARVIS_HOME to a folder that is",
                    ExitCode.FAILED,
                )
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077 and name != "models":
            yield Check(
                f"folder {name}",
                "failed",
                f"{path} has mode {mode:04o}: others can look inside",
                f"chmod 700 {path}",
                ExitCode.FAILED,
            )
        else:
            yield Check(f"folder {name}", "ok", f"{path} ({mode:04o})")


def _disk(app: App) -> Iterator[Check]:
    place = app.paths.models
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / 2**30:.1f} GiB free at {place}"
    if free < LOW_DISK_BYTES:
        yield Check("disk", "note", detail, "make room: a model needs up to 1.2 GB")
    else:
        yield Check("disk", "ok", detail)


def _configuration(app: App) -> Iterator[Check]:
    path: Path = app.config_path
    if not path.exists():
        yield Check("configuration", "ok", f"defaults ({path} does not exist)")
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Check(
            "configuration",
            "failed",
            f"{path} has mode {mode:04o}: others can read it",
            f"chmod 600 {path}",
            ExitCode.USAGE,
        )
    else:
        yield Check("configuration", "ok", str(path))


def _database(app: App) -> Iterator[Check]:
    from jarvis.store import facts

    app.database.open()
    with app.database.connection() as connection:
        found = facts.server(connection)
    kind = "embedded" if app.database.embedded else "external"
    yield Check(
        "database",
        "ok",
        f"{kind} Postgres {found.version}, {app.database.describe()}, "
        f"{found.size_bytes / 2**20:.0f} MiB",
    )
    yield Check("pgvector", "ok", f"{found.pgvector} in schema {found.pgvector_schema}")
    yield Check("schema", "ok", f"version {found.schema_version}, up to date")


def _provider(app: App, kind: Kind) -> Iterator[Check]:
    choice = app.choose(kind)
    detail = f"{choice.model} at {choice.server.where}: {choice.reason}"
    if choice.note:
        yield Check(kind, "note", detail, choice.note)
        return
    if choice.server.kind == "embedded":
        from jarvis.engine import catalogue, store
        from jarvis.services.app import gone

        if store.find(app.paths, choice.model) is None:
            if catalogue.find(choice.model) is None:
                yield Check(kind, "failed", *gone(choice.model))
                return
            yield Check(
                kind,
                "note",
                f"{detail}; not downloaded yet",
                f"the first question downloads it, or: jarvis model pull {choice.model}",
            )
            return
    yield Check(kind, "ok", detail)


def _engine(app: App) -> Iterator[Check]:
    from jarvis.engine import launcher

    found = launcher.status(app.paths)
    if not found.running:
        yield Check("engine", "ok", "not running (started when needed)")
        return
    held = [
        f"{each.get('name', '')} {int(each.get('size') or 0) >> 20} MiB" for each in found.models
    ]
    models = ", ".join(held) or "no model loaded"
    own = found.memory >> 20
    yield Check("engine", "ok", f"running (pid {found.pid}), {own} MiB itself, {models}")


def _worker(app: App) -> Iterator[Check]:
    from jarvis.services import worker

    found = worker.status(app)
    left = sum(found.pending.values())
    if left and not found.running:
        yield Check(
            "worker", "note", f"not running, {left} pieces of work wait", "jarvis worker run"
        )
    else:
        state = f"running (pid {found.pid})" if found.running else "not running"
        yield Check("worker", "ok", f"{state}, {left} pieces of work wait")
