"""Chat and embedding models: which there are, which are used, fetched, chosen, removed.

A model lies with the server that is in use: Ollama's are asked of Ollama, the embedded engine's
are files in the models folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.engine import catalogue, launcher, store
from jarvis.errors import JarvisError, ModelNotInstalled, ModelUnavailable, UsageError
from jarvis.llm.profiles import is_embedding_name, same_model
from jarvis.services.settings import set_value

if TYPE_CHECKING:
    from jarvis.config import Config
    from jarvis.llm.provider import Choice, Kind
    from jarvis.llm.server import Server
    from jarvis.paths import Paths
    from jarvis.services.app import App

Report = Callable[[str, int, int], None]
"""Told what is being done, and how many bytes of how many are there (0 of 0: not countable)."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is here, or that the catalogue offers.

    ``used_for`` says what it is used for now: chat, embedding, or nothing.
    """

    name: str
    kind: str
    provider: str
    installed: bool
    used_for: str = ""
    size_bytes: int = 0
    licence: str = ""
    source: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class InUse:
    """What one kind of work uses now, and why; ``problem`` when nothing can be used."""

    kind: str
    model: str = ""
    provider: str = ""
    where: str = ""
    reason: str = ""
    installed: bool = False
    loaded: bool = False
    memory_bytes: int = 0
    prompt_tokens_per_second: float | None = None
    answer_tokens_per_second: float | None = None
    batch_tokens: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """What ``use`` changed: the settings written, in order."""

    kind: str
    model: str
    settings: dict[str, str] = field(default_factory=dict)


def models(app: App) -> list[Model]:
    """The models of every server in use, then what the catalogue still offers."""
    used = {kind: choice for kind in _KINDS if (choice := _choice(app, kind)) is not None}
    found = list(_embedded_models(app, used))
    servers: dict[str, Server] = {}
    for kind in _KINDS:
        try:
            server = app.providers.server(kind)
        except ModelUnavailable:
            continue
        if server.kind == "ollama":
            servers[server.where] = server
    for server in servers.values():
        found += _ollama_models(server, used)
    have = [model.name for model in found]
    for entry in catalogue.CATALOGUE.values():
        if not any(same_model(name, entry.name) for name in have):
            found.append(
                Model(
                    entry.name,
                    entry.kind,
                    "embedded",
                    installed=False,
                    used_for=_used_for(used, "embedded", entry.name),
                    size_bytes=entry.stored or entry.size,
                    licence=entry.licence,
                    summary=entry.summary,
                )
            )
    return found


def in_use(app: App) -> list[InUse]:
    """What chat and embeddings use now. Starts and downloads nothing."""
    return [_in_use(app, kind) for kind in _KINDS]


def disk_use(app: App) -> dict[str, Any]:
    """The models folder, its bytes, and the free bytes of its disk."""
    folder = app.paths.models
    while not folder.exists():
        folder = folder.parent
    disk = os.statvfs(folder)
    return {
        "models_folder": str(app.paths.models),
        "models_bytes": store.disk_use(app.paths),
        "free_bytes": disk.f_bavail * disk.f_frsize,
    }


def pull(app: App, name: str, report: Report) -> str:
    """Installs a model where it belongs: in the catalogue's store, or with Ollama.

    Returns:
        Where it is now, in words.

    Raises:
        ModelNotInstalled: nobody has a model of that name.
        ModelUnavailable: it cannot be fetched.
    """
    kind: Kind = "embedding" if is_embedding_name(name) else "chat"
    server = app.providers.server(kind)
    if server.kind == "ollama":
        _pull_with_ollama(server, name, report)
        return server.where
    download(app.paths, app.config, name, report)
    return "the embedded engine"


def download(paths: Paths, config: Config, name: str, report: Report) -> None:
    """Installs a model of the catalogue for the embedded engine.

    Raises:
        ModelNotInstalled, ModelUnavailable: as ``engine.pull.pull``.
    """
    from jarvis.engine import pull as engine_pull

    def tell(progress: engine_pull.PullProgress) -> None:
        report(progress.status, progress.completed, progress.total)

    engine_pull.pull(paths, config, name, tell)


def use(app: App, name: str, report: Report) -> Used:
    """Makes ``name`` the model for chat or for embeddings, whichever it is for.

    A model that only the embedded engine can have is fetched, and the engine chosen for it.

    Raises:
        ModelNotInstalled: no server has it and the catalogue does not offer it.
    """
    kind: Kind = "embedding" if is_embedding_name(name) else "chat"
    server = app.providers.server(kind)
    settings: dict[str, str] = {}
    if server.kind == "ollama":
        on_server = next((each for each in server.models() if same_model(each, name)), None)
        if on_server is not None:
            settings[f"{kind}.model"] = on_server
            return _record(app, kind, settings)
        if store.find(app.paths, name) is None and catalogue.find(name) is None:
            raise server.not_installed(name)
        settings[f"{kind}.provider"] = "embedded"
    installed = store.find(app.paths, name)
    if installed is None:
        download(app.paths, app.config, name, report)
        installed = store.get(app.paths, name)
    kind = "embedding" if _is_embedding(installed) else "chat"
    short = installed.name.removesuffix(":latest")
    return _record(app, kind, {f"{kind}.model": short, **settings})


def import_file(app: App, file: Path, name: str, report: Report) -> str:
    """Copies a GGUF file into the store as the model ``name``; returns the full name.

    Raises:
        ModelUnavailable: the file is no usable GGUF; nothing is kept.
        UsageError: the name is none, or is taken.
    """
    from jarvis.engine import gguf_header

    full = store.full_name(name)
    if store.find(app.paths, full) is not None:
        raise UsageError(f"there is a model {full} already", f"run: jarvis model rm {full}")
    if not file.is_file():
        raise UsageError(f"there is no file {file}", "give the path of a GGUF file")
    header = gguf_header.read(file)
    target = store.partial_folder(app.paths) / f"import-{os.getpid()}.gguf"
    try:
        digest = _copy(file, target, report)
        # What was copied is what will be loaded: the source may have changed meanwhile.
        gguf_header.read(target)
        licence = str(header.metadata.get("general.license", ""))
        store.add(app.paths, full, target, digest, f"file {file}", licence=licence)
    finally:
        target.unlink(missing_ok=True)
    return full


def remove(app: App, name: str) -> int:
    """Deletes a model from the embedded engine's store, or from Ollama. Returns bytes freed.

    Raises:
        ModelNotInstalled: there is no such model.
        UsageError: it lies in Ollama's own folder while no Ollama answers.
    """
    from jarvis.services import completions

    completions.purge(app.paths)
    found = store.find(app.paths, name)
    if found is not None and not found.readonly:
        freed = store.remove(app.paths, name)
        if launcher.answers(launcher.socket_path(app.paths)):
            launcher.unload(app.paths, found.name)
        return freed
    kind: Kind = "embedding" if is_embedding_name(name) else "chat"
    server = app.providers.server(kind)
    if server.kind == "ollama":
        with server.errors(name):
            sizes = {item.model: item.size for item in server.client.list().models if item.model}
            theirs = next((each for each in sizes if same_model(each, name)), None)
            if theirs is None:
                raise server.not_installed(name)
            server.client.delete(theirs)
            return int(sizes[theirs] or 0)
    return store.remove(app.paths, name)


def settings_naming(app: App, name: str) -> list[str]:
    """The settings that ask for the model ``name``: ``chat.model``, ``embedding.model``."""
    kinds = {"chat.model": app.config.chat.model, "embedding.model": app.config.embedding.model}
    return [key for key, value in kinds.items() if value and same_model(value, name)]


def calibrate(app: App, report: Report) -> list[InUse]:
    """Measures again how fast the chat model is, and where the embedding model's gate stands.

    Raises:
        ModelUnavailable: a model cannot be used.
    """
    choice = app.choose("chat")
    if choice.server.kind == "embedded":
        from jarvis.engine import speeds

        model = store.get(app.paths, choice.model)
        speeds.forget(app.paths, model.digest)
        launcher.ensure_running(app.paths, app.config)
        launcher.unload(app.paths, model.name)
        report(f"measuring {model.name}", 0, 0)
        app.chat_model().preload()
    report("calibrating the embedding model", 0, 0)
    from jarvis.retrieval import index

    row = app.embedding_model()
    with app.database.transaction() as tx:
        index.calibrate(tx, app.embedder(), row)
    return in_use(app)


_KINDS: tuple[Kind, Kind] = ("chat", "embedding")


def _choice(app: App, kind: Kind) -> Choice | None:
    try:
        return app.choose(kind)
    except ModelUnavailable:
        return None


def _in_use(app: App, kind: Kind) -> InUse:
    try:
        choice = app.choose(kind)
    except ModelUnavailable as error:
        return InUse(kind, problem=f"{error.message} ({error.hint})")
    if choice.server.kind == "ollama":
        return InUse(kind, choice.model, "ollama", choice.server.where, choice.reason, True)
    from jarvis.engine import speeds

    measured = speeds.read(app.paths, choice.model, app.config.engine.threads)
    running = next(
        (
            each
            for each in launcher.status(app.paths).models
            if same_model(str(each.get("name")), choice.model)
        ),
        None,
    )
    return InUse(
        kind=kind,
        model=choice.model,
        provider="embedded",
        where=choice.server.where,
        reason=choice.reason,
        installed=store.find(app.paths, choice.model) is not None,
        loaded=running is not None,
        memory_bytes=int(running["size"]) if running else 0,
        prompt_tokens_per_second=measured.prompt_per_second if measured else None,
        answer_tokens_per_second=measured.generate_per_second if measured else None,
        batch_tokens=measured.batch if measured else None,
    )


def _embedded_models(app: App, used: dict[Kind, Choice]) -> Iterator[Model]:
    for each in store.installed(app.paths):
        entry = catalogue.find(each.name)
        name = each.name.removesuffix(":latest")
        yield Model(
            name=name,
            kind="embedding" if _is_embedding(each) else "chat",
            provider="embedded",
            installed=True,
            used_for=_used_for(used, "embedded", name),
            size_bytes=each.size,
            licence=each.licence.strip().splitlines()[0][:60] if each.licence.strip() else "",
            source=each.source,
            summary=entry.summary if entry else "",
        )


def _ollama_models(server: Server, used: dict[Kind, Choice]) -> Iterator[Model]:
    with server.errors(""):
        listed = server.client.list().models
    for item in listed:
        if item.model:
            yield Model(
                name=item.model,
                kind="embedding" if is_embedding_name(item.model) else "chat",
                provider="ollama",
                installed=True,
                used_for=_used_for(used, "ollama", item.model),
                size_bytes=int(item.size or 0),
                source=server.where,
            )


def _used_for(used: dict[Kind, Choice], provider: str, name: str) -> str:
    return ", ".join(
        kind
        for kind, choice in used.items()
        if choice.server.kind == provider and same_model(choice.model, name)
    )


def _is_embedding(model: store.InstalledModel) -> bool:
    from jarvis.engine import gguf_header

    try:
        return gguf_header.read(model.path).is_embedding
    except ModelUnavailable:
        return is_embedding_name(model.name)


def _record(app: App, kind: Kind, settings: dict[str, str]) -> Used:
    for key, value in settings.items():
        set_value(app.config_path, key, value)
    app.providers.forget(kind)
    app.forget_models()
    return Used(kind, settings[f"{kind}.model"], settings)


def _pull_with_ollama(server: Server, name: str, report: Report) -> None:
    with server.errors(name):
        for line in server.client.pull(name, stream=True):
            report(line.status or "", int(line.completed or 0), int(line.total or 0))


def _copy(source: Path, target: Path, report: Report) -> str:
    """Copies and returns the SHA-256."""
    import hashlib

    from jarvis.paths import private_file

    digest, done, total = hashlib.sha256(), 0, source.stat().st_size
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    shown = 0.0
    try:
        with source.open("rb") as reading, os.fdopen(private_file(target, flags), "wb") as writing:
            while piece := reading.read(store.BLOCK):
                digest.update(piece)
                writing.write(piece)
                done += len(piece)
                if time.monotonic() - shown > 0.2:
                    shown = time.monotonic()
                    report("copying", done, total)
    except OSError as error:
        raise JarvisError(
            f"cannot copy {source}: {error.strerror}", "make room, or check the file"
        ) from error
    return digest.hexdigest()


__all__ = [
    "InUse",
    "Model",
    "ModelNotInstalled",
    "Used",
    "calibrate",
    "disk_use",
    "download",
    "import_file",
    "in_use",
    "models",
    "pull",
    "remove",
    "use",
]
