"""What the API says of a model: in lists, in full, and while it is loaded."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jarvis.config import Config
from jarvis.engine import capabilities, gguf_header, speeds
from jarvis.engine.gguf_header import Header
from jarvis.engine.pool import FOREVER, Loaded
from jarvis.engine.store import InstalledModel
from jarvis.paths import Paths


def header(model: InstalledModel) -> Header:
    """The header of the model's file, read once.

    Raises:
        ModelUnavailable: the file is damaged.
    """
    return _header(model.path, model.digest)


@functools.lru_cache(maxsize=64)
def _header(path: Path, _digest: str) -> Header:
    return gguf_header.read(path)


def listed(model: InstalledModel) -> dict[str, Any]:
    """An entry of ``/api/tags``."""
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": model.modified_at.isoformat(),
        "size": model.size,
        "digest": model.digest,
        "details": _details(model),
    }


def running(loaded: Loaded) -> dict[str, Any]:
    """An entry of ``/api/ps``. ``size`` is the memory that the model's process holds."""
    left = loaded.expires - time.monotonic()
    if loaded.expires == FOREVER:
        left = loaded.keep_alive if loaded.leases else FOREVER
    at = datetime.fromtimestamp(time.time() + min(left, 100 * 365 * 86_400), UTC)
    return {
        "name": loaded.model.name,
        "model": loaded.model.name,
        "size": loaded.memory,
        "digest": loaded.model.digest,
        "details": _details(loaded.model),
        "expires_at": at.isoformat(),
        "size_vram": 0,
        "context_length": loaded.num_ctx,
        "requests": loaded.leases,
    }


def details(
    paths: Paths, config: Config, model: InstalledModel, *, verbose: bool
) -> dict[str, Any]:
    """The answer of ``/api/show``; ``verbose`` adds the tensors and long lists."""
    found = header(model)
    answer: dict[str, Any] = {
        "license": model.licence,
        "modelfile": _modelfile(model, found),
        "parameters": "\n".join(_parameter_lines(model.parameters)),
        "template": model.template or found.chat_template,
        "system": model.system,
        "details": _details(model),
        "messages": [dict(each) for each in model.messages],
        "model_info": _model_info(gguf_header.read(model.path, lists=True) if verbose else found),
        "capabilities": capabilities.of(found),
        "modified_at": model.modified_at.isoformat(),
    }
    measured = speeds.read_digest(paths, model.digest, config.engine.threads)
    if measured is not None:
        answer["speeds"] = {
            "prompt_per_second": measured.prompt_per_second,
            "generate_per_second": measured.generate_per_second,
            "batch": measured.batch,
        }
    if verbose:
        answer["tensors"] = [
            {"name": name, "type": kind, "shape": list(shape)}
            for name, shape, kind in found.tensors
        ]
    return {key: value for key, value in answer.items() if value not in ("", [])}


def _details(model: InstalledModel) -> dict[str, Any]:
    try:
        found = header(model)
    except Exception:  # noqa: BLE001 -- a damaged file is listed too, so that it can be removed
        return {
            "parent_model": "", "format": "gguf", "family": "unknown", "families": [],
            "parameter_size": "unknown", "quantization_level": "unknown",
        }  # fmt: skip
    return {
        "parent_model": "",
        "format": "gguf",
        "family": found.architecture,
        "families": [found.architecture],
        "parameter_size": found.parameter_size,
        "quantization_level": found.quantisation,
    }


def _model_info(found: Header) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for key, value in sorted(found.metadata.items()):
        if key == "tokenizer.chat_template":
            continue
        # A long list is empty, as with Ollama when it is not asked for in full.
        info[key] = [] if isinstance(value, dict) else value
    info["general.parameter_count"] = found.parameters
    return info


def _modelfile(model: InstalledModel, found: Header) -> str:
    lines = ["# Modelfile of what the engine has loaded", f"FROM {model.path}"]
    if template := model.template or found.chat_template:
        lines.append(f'TEMPLATE """{template}"""')
    if model.system:
        lines.append(f'SYSTEM """{model.system}"""')
    lines += [f"PARAMETER {line}" for line in _parameter_lines(model.parameters)]
    return "\n".join(lines) + "\n"


def _parameter_lines(parameters: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in sorted(parameters.items()):
        for each in value if isinstance(value, list) else [value]:
            text = f'"{each}"' if isinstance(each, str) else str(each)
            lines.append(f"{key:<30} {text}")
    return lines
