"""What is stored where, what can leave the machine, and how all of it is erased.

The lists here are made from the paths and the configuration in force, so that they are true of
this machine and not of some default.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import stat
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jarvis import postgres
from jarvis.errors import JarvisError

if TYPE_CHECKING:
    from jarvis.services.app import App

Kind = Literal["stored", "leaves", "asks", "never"]
"""``leaves``: without another word; ``asks``: after a yes, or with nothing of anybody's in it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line: something stored (``where`` is a path or an address), or something that can
    leave the machine (``where`` is the receiver). ``others`` says whether other users of the
    machine can read it."""

    kind: Kind
    what: str
    where: str
    size_bytes: int | None = None
    others: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Erased:
    """What ``erase`` did. ``left`` must be empty."""

    removed: tuple[str, ...]
    left: tuple[str, ...]
    kept: tuple[str, ...]


def items(app: App) -> Iterator[Item]:
    """Everything that is stored, then everything that can leave the machine."""
    yield from _stored(app)
    leaving = list(_leaving(app))
    yield from leaving
    if not leaving:
        yield Item("never", "nothing leaves this machine", "")
    elif all(item.kind == "asks" for item in leaving):
        yield Item("never", "nothing of yours leaves this machine unless you say yes", "")


def _stored(app: App) -> Iterator[Item]:
    paths = app.paths
    if app.database.embedded:
        status = postgres.status(paths)
        yield Item(
            "stored",
            "conversations, memories, documents, vectors",
            str(status.data),
            status.size_bytes,
            _readable(status.data),
            "plain files of Postgres: whoever can read this account's files can read them",
        )
    else:
        yield Item(
            "stored",
            "conversations, memories, documents, vectors",
            app.database.describe(),
            note="a server of your own: its administrators can read them",
        )
    places = (
        ("backups of all of it", paths.backups, ""),
        ("settings, tools of your own", paths.config, ""),
        ("what you typed into the chat", paths.history, "the arrow keys and Ctrl-R find it"),
        ("logs, without what was said", paths.logs, "with --debug they hold contents too"),
        ("ids and titles for shell completion", paths.completions, ""),
        ("models", paths.models, "nothing of yours"),
        ("sockets", paths.runtime, ""),
    )
    for what, path, note in places:
        if path.exists():
            yield Item("stored", what, str(path), _size(path), _readable(path), note)


def _leaving(app: App) -> Iterator[Item]:
    config = app.config
    info = app.database.conninfo()
    host = str(info.get("host", "") or "localhost")
    if not app.database.embedded and not is_local(host):
        yield Item("leaves", "everything that is stored", host, note="database.url or .host")
    for kind, what in (
        ("chat", "your questions, and the facts, past turns and passages put beside them"),
        ("embedding", "the texts that are searched or remembered"),
    ):
        address = _provider(app, kind)
        if address and not is_local(_host_of(address)):
            yield Item("leaves", what, address, note=f"{kind}.host, or OLLAMA_HOST")
    if config.tools.enabled and config.tools.network != "deny":
        asks = config.tools.network == "ask"
        yield Item(
            "asks" if asks else "leaves",
            "what a network tool is given by the model",
            "its server",
            note="after asking you" if asks else "without asking",
        )
    if "huggingface" in config.engine.sources or "mirror" in config.engine.sources:
        yield Item(
            "asks",
            "the names of models, when one is downloaded",
            "huggingface.co, or a package index",
            note="nothing of yours is sent; engine.sources = local ends it",
        )


def _provider(app: App, kind: str) -> str:
    """The address of the model server that would be used, without asking it anything."""
    import os

    settings = app.config.chat if kind == "chat" else app.config.embedding
    if settings.provider == "embedded":
        return ""
    host = settings.host or (app.config.chat.host if kind == "embedding" else "")
    return host or os.environ.get("OLLAMA_HOST", "")


def _host_of(address: str) -> str:
    parsed = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
    try:
        return parsed.hostname or ""
    except ValueError:
        return address


def is_local(host: str) -> bool:
    """Whether ``host`` is this machine: a socket's folder, a loopback address, localhost."""
    if not host or host.startswith(("/", "@")) or host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def plan(app: App) -> list[str]:
    """What ``erase`` would remove, for the question before it."""
    places = [str(path) for path in _folders(app) if path.exists()]
    if not app.database.embedded:
        places.insert(0, f"Jarvis's tables in {app.database.describe()}")
    status = postgres.status(app.paths)
    if status.initialised and not _inside(status.data, app.paths.data):
        places.insert(0, str(status.data))
    return places


def erase(app: App, *, progress: Callable[[str], None] = lambda _: None) -> Erased:
    """Removes everything of Jarvis from this machine (not the program), and looks whether it did.

    Models that lie outside Jarvis's own folders stay: they hold nothing of anybody.

    Raises:
        JarvisError: something that runs cannot be stopped.
    """
    removed: list[str] = []
    paths = app.paths
    progress("stopping what runs")
    _stop_all(app)
    if not app.database.embedded:
        what = _erase_external(app)
        if what:
            removed.append(what)
    app.close()
    removed += map(str, postgres.remove(paths, progress=progress))
    for folder in _folders(app):
        if folder.is_symlink():
            folder.unlink()
            removed.append(str(folder))
        elif folder.exists():
            progress(f"removing {folder}")
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(str(folder))
    home = paths.data.parent
    with contextlib.suppress(OSError):
        if home == paths.config.parent == paths.state.parent:
            home.rmdir()  # JARVIS_HOME, if nothing of somebody else's is in it
    left = [str(folder) for folder in _folders(app) if folder.exists()]
    if app.database.embedded:
        status = postgres.status(paths)
        left += [str(status.data)] if status.initialised or status.running else []
    kept = [] if _inside(paths.models, paths.data) else [str(paths.models)]
    return Erased(
        tuple(dict.fromkeys(removed)), tuple(left), tuple(p for p in kept if Path(p).exists())
    )


def _stop_all(app: App) -> None:
    from jarvis.engine import launcher
    from jarvis.services import worker

    with contextlib.suppress(JarvisError):  # a database that is down has no worker
        worker.stop(app)
    launcher.stop(app.paths)


def _erase_external(app: App) -> str:
    from jarvis.store import archive

    with (
        contextlib.closing(app.database.connect_as_owner()) as connection,
        archive.translated("the database refused to erase", "its administrator can do it"),
    ):
        return archive.erase(connection)


def _folders(app: App) -> list[Path]:
    paths = app.paths
    folders = [paths.data, paths.state, paths.cache, paths.config]
    if not _inside(paths.runtime, paths.state):
        folders.append(paths.runtime)
    return folders


def _inside(path: Path, folder: Path) -> bool:
    return folder == path or folder in path.parents


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for entry in path.rglob("*"):
        with contextlib.suppress(OSError):
            total += entry.lstat().st_size
    return total


def _readable(path: Path) -> bool:
    """Whether other users of the machine can read it, by the modes of it and of what is above."""
    open_ = stat.S_IROTH | stat.S_IXOTH if path.is_dir() else stat.S_IROTH
    try:
        if not path.stat().st_mode & open_:
            return False
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)
    except OSError:
        return False
