"""Reads the store of an Ollama on this machine, in place. Nothing in it is ever written.

Layout (as Ollama writes it): ``manifests/<host>/<namespace>/<model>/<tag>`` is a JSON manifest
whose layers, by media type, are the GGUF (``…image.model``), the template, the system prompt,
messages that begin every chat, the licence and the parameters; each lies in ``blobs/sha256-<hex>``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jarvis.paths import expand

_MEDIA = "application/vnd.ollama.image."
_SMALL = 1 << 20
_DEFAULT_HOST, _DEFAULT_NAMESPACE = "registry.ollama.ai", "library"


@dataclass(frozen=True, slots=True)
class TheirModel:
    """A model in Ollama's store. ``template`` is a Go template, kept for ``/api/show`` only."""

    name: str
    path: Path
    digest: str
    size: int
    modified_at: datetime
    store: Path
    licence: str = ""
    template: str = ""
    system: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)


def folder() -> Path:
    """Where Ollama keeps its models: ``OLLAMA_MODELS``, else ``~/.ollama/models``."""
    named = os.environ.get("OLLAMA_MODELS", "")
    return expand(named or "~/.ollama/models")


def models(store: Path | None = None) -> Iterator[TheirModel]:
    """Every complete model in the store that is one GGUF file. A broken manifest is skipped."""
    store = folder() if store is None else store
    manifests = store / "manifests"
    try:
        candidates = sorted(path for path in manifests.glob("*/*/*/*") if path.is_file())
    except OSError:
        return
    for manifest in candidates:
        try:
            model = _read(store, manifest)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if model is not None:
            yield model


def _read(store: Path, manifest: Path) -> TheirModel | None:
    if manifest.stat().st_size > _SMALL:
        return None
    layers: dict[str, list[dict[str, Any]]] = {}
    for layer in json.loads(manifest.read_text(encoding="utf-8"))["layers"]:
        kind = str(layer["mediaType"]).removeprefix(_MEDIA)
        layers.setdefault(kind, []).append(layer)
    if len(layers.get("model", [])) != 1 or "adapter" in layers or "projector" in layers:
        return None
    weights = layers["model"][0]
    path = _blob(store, weights["digest"])
    if path.stat().st_size != weights["size"]:
        return None
    host, namespace, name, tag = manifest.relative_to(store / "manifests").parts
    prefix = "" if namespace == _DEFAULT_NAMESPACE else f"{namespace}/"
    if host != _DEFAULT_HOST:
        prefix = f"{host}/{namespace}/"
    parameters, talk = _text(store, layers, "params"), _text(store, layers, "messages")
    return TheirModel(
        name=f"{prefix}{name}:{tag}",
        path=path,
        digest=str(weights["digest"]).removeprefix("sha256:"),
        size=weights["size"],
        modified_at=datetime.fromtimestamp(manifest.stat().st_mtime, UTC),
        store=store,
        licence=_text(store, layers, "license"),
        template=_text(store, layers, "template"),
        system=_text(store, layers, "system"),
        messages=tuple(json.loads(talk)) if talk else (),
        parameters=json.loads(parameters) if parameters else {},
    )


def _blob(store: Path, digest: str) -> Path:
    hexadecimal = digest.removeprefix("sha256:")
    if len(hexadecimal) != 64 or not all(char in "0123456789abcdef" for char in hexadecimal):
        raise ValueError(digest)
    return store / "blobs" / f"sha256-{hexadecimal}"


def _text(store: Path, layers: Mapping[str, list[dict[str, Any]]], kind: str) -> str:
    for layer in layers.get(kind, []):
        path = _blob(store, layer["digest"])
        if path.stat().st_size <= _SMALL:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""
