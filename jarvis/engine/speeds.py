"""How fast each model reads and writes on this machine, measured once and kept.

The prompt speed sets the batch size (a request can be cancelled only between batches) and, in
the assistant, how long a prompt may be. Kept in the state folder, keyed by the model's digest
and the number of threads. Standard library only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from jarvis.engine import machine, store
from jarvis.paths import Paths, private_folder

BATCH_SECONDS = 0.5
"""How long one batch of a prompt may take: the longest wait before a cancel takes effect."""

SMALLEST_BATCH, LARGEST_BATCH = 8, 512


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens a second while reading a prompt and while writing, and the batch size they give."""

    prompt_per_second: float
    generate_per_second: float
    batch: int


def batch_size(prompt_per_second: float) -> int:
    """The largest power of two that is read within ``BATCH_SECONDS``, in tokens."""
    size = SMALLEST_BATCH
    while size < LARGEST_BATCH and size * 2 <= prompt_per_second * BATCH_SECONDS:
        size *= 2
    return size


def read(paths: Paths, model: str, threads: int = 0) -> Speeds | None:
    """The measured speeds of a model by name; None before it was loaded here once.

    Args:
        threads: as configured in ``engine.threads``; 0 means all cores.
    """
    found = store.find(paths, model)
    return None if found is None else read_digest(paths, found.digest, threads)


def read_digest(paths: Paths, digest: str, threads: int = 0) -> Speeds | None:
    """Like ``read``, by the digest of the model's file."""
    entry = _load(_file(paths)).get(_key(digest, threads), {})
    try:
        return Speeds(
            float(entry["prompt_per_second"]),
            float(entry["generate_per_second"]),
            int(entry["batch"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def write(paths: Paths, digest: str, threads: int, speeds: Speeds) -> None:
    """Keeps what was measured."""
    private_folder(paths.state)
    known = _load(_file(paths))
    known[_key(digest, threads)] = asdict(speeds)
    store.write_json(_file(paths), known)


def forget(paths: Paths, digest: str) -> None:
    """Removes what was measured for a file, so that the next load measures again."""
    known = _load(_file(paths))
    kept = {key: value for key, value in known.items() if not key.startswith(digest)}
    if kept != known:
        store.write_json(_file(paths), kept)


def _key(digest: str, threads: int) -> str:
    return f"{digest}/{threads or machine.cores()}"


def _file(paths: Paths) -> Path:
    return paths.state / "speeds.json"


def _load(path: Path) -> dict[str, dict[str, float]]:
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
