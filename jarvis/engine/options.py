"""Ollama's request fields in llama.cpp's terms: options, keep_alive, format.

Defaults and types are those of Ollama's ``api.Options``; an option with a wrong type is an
error that names it, an unknown one is ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from jarvis.engine.pool import FOREVER
from jarvis.engine.request import HTTPError

_DEFAULTS: Mapping[str, object] = {
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.9,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.1,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "seed": -1,
}
_FLOATS = {
    "temperature", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty",
    "frequency_penalty", "mirostat_tau", "mirostat_eta",
}  # fmt: skip
_INTEGERS = {"top_k", "repeat_last_n", "seed", "mirostat"}
_OURS = {"num_ctx", "num_predict", "num_keep"}
# The engine's own business; only their types are looked at.
_IGNORED_INTEGERS = {"num_batch", "num_gpu", "main_gpu", "num_thread"}
_IGNORED_FLAGS = {"numa", "low_vram", "use_mmap", "use_mlock", "vocab_only", "penalize_newline"}
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAX_CTX = 1 << 24


def merged(parameters: Mapping[str, Any], given: object) -> dict[str, Any]:
    """The model's own parameters, overridden by the request's ``options``.

    Raises:
        HTTPError: 400; ``options`` is no object, or an option has a wrong type.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise HTTPError(400, "options must be an object")
    options = {**parameters, **{key: value for key, value in given.items() if value is not None}}
    for key, value in options.items():
        if key in _FLOATS:
            options[key] = _number(key, value, "float32")
        elif key in _INTEGERS or key in _OURS or key in _IGNORED_INTEGERS:
            number = _number(key, value, "integer")
            if number != int(number):
                raise HTTPError(400, f'option "{key}" must be of type integer')
            options[key] = int(number)
        elif key in _IGNORED_FLAGS and not isinstance(value, bool):
            raise HTTPError(400, f'option "{key}" must be of type boolean')
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    stop = options.get("stop")
    if stop is not None and not (
        isinstance(stop, list) and all(isinstance(each, str) for each in stop)
    ):
        raise HTTPError(400, 'option "stop" must be of type array')
    return options


def num_ctx(options: Mapping[str, Any]) -> int | None:
    """The window that was asked for; None when none was."""
    value = options.get("num_ctx")
    return None if value is None or value <= 0 else min(int(value), _MAX_CTX)


def sampling(options: Mapping[str, Any], window: int) -> dict[str, Any]:
    """The options as fields of llama.cpp's requests.

    Args:
        window: tokens of the context; without ``num_predict`` an answer ends after ten
            windows at the latest, as with Ollama.
    """
    fields = {**_DEFAULTS}
    for key in (*_FLOATS, *_INTEGERS):
        if key in options:
            fields[key] = options[key]
    predict = options.get("num_predict", -1)
    fields["n_predict"] = predict if predict > 0 else 10 * window
    fields["n_keep"] = options.get("num_keep", 4)
    if stop := [each for each in options.get("stop") or [] if each]:
        fields["stop"] = stop
    return fields


def flag(body: Mapping[str, Any], key: str, *, default: bool) -> bool:
    """A field that is true or false; ``default`` where it is missing.

    Raises:
        HTTPError: 400; it is something else.
    """
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise HTTPError(400, f"{key} must be true or false")
    return value


def top_logprobs(body: Mapping[str, Any]) -> int | None:
    """How many alternatives to each token are wanted beside it; None: no log probabilities.

    Raises:
        HTTPError: 400; the number is none, or not between 0 and 20.
    """
    count = body.get("top_logprobs") or 0
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 20:
        raise HTTPError(400, "top_logprobs must be between 0 and 20")
    return count if flag(body, "logprobs", default=False) else None


def keep_alive(value: object) -> float | None:
    """Seconds that a model stays loaded: numbers are seconds, texts Go durations; None: default.

    Negative means for ever.

    Raises:
        HTTPError: 400; it is neither.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise HTTPError(400, f"invalid keep_alive: {json.dumps(value)[:100]}")
    if isinstance(value, str):
        seconds = duration(value)
        if seconds is None:
            raise HTTPError(400, f'time: invalid duration "{value[:100]}"')
    else:
        seconds = float(value)
    return FOREVER if seconds < 0 or math.isinf(seconds) else seconds


def duration(text: str) -> float | None:
    """Seconds of a Go duration such as ``5m``, ``1h30m``, ``-1``; None when it is none."""
    text = text.strip()
    sign = -1.0 if text.startswith("-") else 1.0
    bare = text.lstrip("+-")
    if re.fullmatch(r"\d+(\.\d*)?", bare):
        return sign * float(bare)
    if not re.fullmatch(r"((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))+", bare):
        return None
    parts = re.findall(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)", bare)
    return sign * sum(float(number) * _UNITS[unit] for number, unit in parts)


def constraint(value: object) -> dict[str, Any] | None:
    """What ``format`` asks for: a JSON schema, or None for free text.

    Raises:
        HTTPError: 400; it is neither ``json`` nor a schema.
    """
    if value is None or value == "":
        return None
    if value == "json":
        # Ollama's JSON mode gives an object, as every prompt that asks for it expects.
        return {"type": "object"}
    if isinstance(value, Mapping):
        return dict(value)
    raise HTTPError(
        400,
        f'invalid format: {json.dumps(value)[:100]}; expected "json" or a valid JSON Schema object',
    )


def _number(key: str, value: object, kind: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise HTTPError(400, f'option "{key}" must be of type {kind}')
    return value
