"""Where model files lie: content-addressed blobs and one small manifest a name.

::

    models/
      blobs/sha256-<hex>          a GGUF file, complete and checked
      manifests/<quoted name>.json
      partial/                    downloads on their way; never loaded from

A blob is moved into place only when its hash is right, and the manifest is written after the
blob, so a model that is listed is whole. The store of an Ollama on the same machine is read in
place (``ollama_store``) and never written. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jarvis.engine import catalogue, ollama_store
from jarvis.errors import JarvisError, ModelNotInstalled, UsageError
from jarvis.paths import Paths, private_file, private_folder

BLOCK = 1 << 20
"""Bytes hashed or copied at a time."""


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model whose file is on this disk.

    ``name`` is always with its tag, ``digest`` the SHA-256 of the GGUF in hexadecimal,
    ``source`` where it came from. ``messages`` begin every chat with it. ``readonly``
    models belong to somebody else (Ollama's store).
    """

    name: str
    path: Path
    digest: str
    size: int
    modified_at: datetime
    source: str
    licence: str = ""
    template: str = ""
    system: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    readonly: bool = False


def full_name(name: str) -> str:
    """``name`` with its tag: ``all-minilm`` means ``all-minilm:latest``, as with Ollama.

    Raises:
        UsageError: the name is empty or has characters that no model name has.
    """
    text = name.strip()
    tail = text.rpartition("/")[2]
    allowed = all(char.isalnum() or char in "._-/:" for char in text)
    if not tail or not allowed or len(text) > 200 or ".." in text or tail.startswith(":"):
        raise UsageError(f"{name!r} is not a model name", "write it like qwen2.5-coder:0.5b")
    return text if ":" in tail else f"{text}:latest"


def installed(paths: Paths, *, ollama: bool = True) -> list[InstalledModel]:
    """Every model that can be loaded now, by name. ``ollama``: those of its store too."""
    found: dict[str, InstalledModel] = {}
    if ollama:
        for theirs in ollama_store.models():
            found[theirs.name.lower()] = InstalledModel(
                name=theirs.name,
                path=theirs.path,
                digest=theirs.digest,
                size=theirs.size,
                modified_at=theirs.modified_at,
                source=f"Ollama's store, {theirs.store}",
                licence=theirs.licence,
                template=theirs.template,
                system=theirs.system,
                messages=theirs.messages,
                parameters=theirs.parameters,
                readonly=True,
            )
    for manifest in sorted(_manifests(paths).glob("*.json")):
        model = _read(paths, manifest)
        if model is not None:
            found[model.name.lower()] = model
    return sorted(found.values(), key=lambda model: model.name.lower())


def find(paths: Paths, name: str) -> InstalledModel | None:
    """The model of that name, with or without its tag, in any case; None when it is not here."""
    wanted = full_name(name)
    own = _read(paths, _manifest(paths, wanted))
    if own is not None:
        return own
    models = {model.name.lower(): model for model in installed(paths)}
    return models.get(wanted.lower())


def get(paths: Paths, name: str) -> InstalledModel:
    """Like ``find``.

    Raises:
        ModelNotInstalled: it is not here; the hint has the command that installs it, or names
            that look like it.
    """
    model = find(paths, name)
    if model is not None:
        return model
    entry = catalogue.find(name)
    if entry is not None:
        raise ModelNotInstalled(
            f'model "{name}" is not installed', f"run: jarvis model pull {entry.name}"
        )
    known = [*catalogue.CATALOGUE, *(each.name for each in installed(paths))]
    close = catalogue.near(name, known)
    hint = f"did you mean {' or '.join(close)}?" if close else "run: jarvis model list"
    raise ModelNotInstalled(f'model "{name}" is not installed', hint)


def add(
    paths: Paths,
    name: str,
    file: Path,
    digest: str,
    source: str,
    *,
    licence: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> InstalledModel:
    """Takes over ``file`` (it is moved) as the model ``name``. Both steps are atomic.

    Args:
        file: a complete GGUF on the same file system as the store (``partial_folder``).
        digest: its SHA-256, already checked.
    """
    blobs = private_folder(private_folder(paths.models) / "blobs")
    blob = blobs / f"sha256-{digest}"
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
    file.chmod(0o600)
    file.replace(blob)
    return _write(paths, full_name(name), digest, source, licence=licence, parameters=parameters)


def _write(
    paths: Paths,
    name: str,
    digest: str,
    source: str,
    *,
    licence: str,
    parameters: Mapping[str, Any] | None,
) -> InstalledModel:
    """Writes the manifest of a file that is in place."""
    blob = paths.models / "blobs" / f"sha256-{digest}"
    record = {
        "name": name,
        "digest": digest,
        "size": blob.stat().st_size,
        "source": source,
        "licence": licence,
        "parameters": dict(parameters or {}),
        "modified_at": datetime.now(UTC).isoformat(),
    }
    manifest = private_folder(paths.models / "manifests") / _file_name(name)
    write_json(manifest, record)
    model = _read(paths, manifest)
    if model is None:
        raise JarvisError(f"{blob} was changed while it was installed", "try again")
    return model


def copy(paths: Paths, model: InstalledModel, name: str) -> InstalledModel:
    """Gives a model of this store another name; the file is shared.

    Raises:
        UsageError: it lies in Ollama's store, the name is none, or is another file's.
    """
    full = full_name(name)
    if model.readonly:
        raise UsageError(f"{model.name} lies in {model.source} and is only read")
    there = find(paths, full)
    if there is not None and there.digest != model.digest:
        raise UsageError(f"there is a model {full} already", f"run: jarvis model rm {full}")
    return _write(
        paths, full, model.digest, model.source, licence=model.licence, parameters=model.parameters
    )


def remove(paths: Paths, name: str) -> int:
    """Forgets a model and deletes its file unless another name uses it. Returns bytes freed.

    Raises:
        ModelNotInstalled: there is no such model.
        UsageError: it lies in Ollama's store, which is not ours.
    """
    model = get(paths, name)
    if model.readonly:
        raise UsageError(
            f"{model.name} lies in {model.source} and is only read", f"run: ollama rm {model.name}"
        )
    _manifest(paths, model.name).unlink(missing_ok=True)
    if any(other.path == model.path for other in installed(paths, ollama=False)):
        return 0
    model.path.unlink(missing_ok=True)
    return model.size


def partial_folder(paths: Paths) -> Path:
    """The folder for downloads on their way; made when missing."""
    return private_folder(private_folder(paths.models) / "partial")


def disk_use(paths: Paths) -> int:
    """Bytes that our store takes, unfinished downloads included."""
    total = 0
    for folder, _, files in os.walk(paths.models):
        for file in files:
            try:
                total += (Path(folder) / file).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, value: object) -> None:
    """Replaces ``path`` by ``value`` as JSON, mode 0600, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(private_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
        json.dump(value, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def to_dict(model: InstalledModel) -> dict[str, Any]:
    """The model as JSON values."""
    return asdict(model) | {
        "path": str(model.path),
        "modified_at": model.modified_at.isoformat(),
        "parameters": dict(model.parameters),
    }


def _manifests(paths: Paths) -> Path:
    return paths.models / "manifests"


def _file_name(name: str) -> str:
    return urllib.parse.quote(name.lower(), safe="") + ".json"


def _manifest(paths: Paths, name: str) -> Path:
    return _manifests(paths) / _file_name(full_name(name))


def _read(paths: Paths, manifest: Path) -> InstalledModel | None:
    """The manifest's model; None when it or its blob is missing, cut or damaged."""
    try:
        record = json.loads(manifest.read_text(encoding="utf-8"))
        blob = paths.models / "blobs" / f"sha256-{record['digest']}"
        if blob.stat().st_size != record["size"]:
            return None
        return InstalledModel(
            name=record["name"],
            path=blob,
            digest=record["digest"],
            size=record["size"],
            modified_at=datetime.fromisoformat(record["modified_at"]),
            source=record["source"],
            licence=record.get("licence", ""),
            parameters=record.get("parameters", {}),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
