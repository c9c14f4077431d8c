"""Reads and checks the header of a GGUF file, in plain Python, before llama.cpp sees it.

A file comes from anywhere. What is checked: magic and version, that every count and length fits
in the file, that no tensor reaches past its end, that the architecture is named. The layout is
that of ggml's ``docs/gguf.md`` (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jarvis.errors import ModelUnavailable

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_MAX_ENTRIES, _MAX_TENSORS, _MAX_KEY = 100_000, 100_000, 65_535
_KEPT_ARRAY = 64

# Block length and bytes a block of each tensor type (ggml.h, ggml-common.h).
_TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip

# general.file_type to the names that Ollama shows (llama.h, enum llama_ftype).
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says. ``metadata`` has ``{"length": n}`` in the place of a long list.

    ``tensors`` are (name, shape, type name) in file order; ``parameters`` counts their numbers.
    """

    metadata: Mapping[str, Any]
    tensors: tuple[tuple[str, tuple[int, ...], str], ...]
    parameters: int

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the architecture, such as ``qwen2`` or ``bert``."""
        return str(self.metadata["general.architecture"])

    def number(self, key: str, default: int = 0) -> int:
        """The whole number at ``<architecture>.<key>``."""
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(value, list):
            value = max((each for each in value if isinstance(each, int)), default=default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    @property
    def context_length(self) -> int:
        """The trained window, in tokens."""
        return self.number("context_length", 2048)

    @property
    def embedding_length(self) -> int:
        """The width of the model; for an embedding model the length of its vectors."""
        return self.number("embedding_length")

    @property
    def is_embedding(self) -> bool:
        """Whether the model makes one vector of a text and no text."""
        return self.metadata.get(f"{self.architecture}.pooling_type", 0) in {1, 2, 3} or (
            self.architecture.endswith("bert")
        )

    @property
    def chat_template(self) -> str:
        """The Jinja template of a chat; empty when the file has none."""
        return str(self.metadata.get("tokenizer.chat_template", ""))

    @property
    def quantisation(self) -> str:
        """The name of the file's main number format, such as ``Q4_K_M``."""
        kind = self.metadata.get("general.file_type")
        return _FILE_TYPES.get(kind, "unknown") if isinstance(kind, int) else "unknown"

    @property
    def parameter_size(self) -> str:
        """The number of parameters as Ollama writes it, such as ``494.03M``."""
        for unit, name in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
            if self.parameters >= unit:
                return f"{self.parameters / unit:.4g}{name}"
        return str(self.parameters)

    def cache_bytes(self, tokens: int) -> int:
        """Memory for the keys and values of ``tokens`` tokens at 16 bits, in bytes."""
        heads = self.number("attention.head_count", 1)
        width = self.embedding_length // max(heads, 1)
        kv_heads = self.number("attention.head_count_kv", heads)
        key = self.number("attention.key_length", width)
        value = self.number("attention.value_length", width)
        return self.number("block_count", 1) * kv_heads * (key + value) * 2 * tokens


def read(path: Path, *, lists: bool = False) -> Header:
    """Reads the header of ``path``; with ``lists`` the long ones too (a vocabulary).

    Raises:
        ModelUnavailable: the file is no GGUF, is cut or is malformed; the message says where.
    """
    try:
        with path.open("rb") as stream:
            if path.stat().st_size < 24:
                raise _Malformed("it is too short")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data, lists).header()
    except OSError as error:
        raise ModelUnavailable(f"cannot read {path}: {error.strerror}") from error
    except (_Malformed, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise ModelUnavailable(
            f"{path} is not a usable GGUF file: {error}", "download it again"
        ) from error


class _Malformed(Exception):
    pass


def _cut(what: str) -> _Malformed:
    return _Malformed(f"a {what} reaches past its end: the file is cut")


class _Reader:
    """A cursor over the mapped file."""

    def __init__(self, data: mmap.mmap, lists: bool) -> None:
        self.data, self.size, self.at = data, len(data), 0
        self.kept_length = len(data) if lists else _KEPT_ARRAY

    def header(self) -> Header:
        if self.data[:4] != b"GGUF":
            raise _Malformed("it does not begin with GGUF")
        self.at = 4
        version = self.scalar(4)
        if version not in {2, 3}:
            raise _Malformed(f"its version is {version}, not 2 or 3")
        tensors, entries = self.scalar(10), self.scalar(10)
        if tensors > _MAX_TENSORS or entries > _MAX_ENTRIES:
            raise _Malformed(f"it claims {tensors} tensors and {entries} entries")
        metadata: dict[str, Any] = {}
        for _ in range(entries):
            key = self.string(_MAX_KEY)
            if key in metadata:
                raise _Malformed(f"the key {key} stands twice")
            metadata[key] = self.value(self.scalar(4))
        if not isinstance(metadata.get("general.architecture"), str):
            raise _Malformed("it names no architecture")
        return self._tensors(metadata, tensors)

    def _tensors(self, metadata: Mapping[str, Any], count: int) -> Header:
        found: list[tuple[str, tuple[int, ...], str]] = []
        ends: list[tuple[str, int]] = []
        parameters = 0
        for _ in range(count):
            name = self.string(_MAX_KEY)
            dimensions = self.scalar(4)
            if not 0 < dimensions <= 4:
                raise _Malformed(f"tensor {name} has {dimensions} dimensions")
            shape = tuple(self.scalar(10) for _ in range(dimensions))
            kind, offset = self.scalar(4), self.scalar(10)
            if kind not in _TYPES:
                raise _Malformed(f"tensor {name} has the unknown type {kind}")
            label, block, size = _TYPES[kind]
            numbers = 1
            for length in shape:
                numbers *= length
            if not 0 < numbers < 2**50 or shape[0] % block:
                raise _Malformed(f"tensor {name} has the shape {shape} in {label}")
            parameters += numbers
            found.append((name, shape, label))
            ends.append((name, offset + numbers // block * size))
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 65_536:
            raise _Malformed(f"its alignment is {alignment}")
        start = -(-self.at // alignment) * alignment
        for name, end in ends:
            if start + end > self.size:
                raise _Malformed(f"tensor {name} reaches past the end: the file is cut")
        return Header(metadata, tuple(found), parameters)

    def scalar(self, kind: int) -> Any:
        layout = _SCALARS.get(kind)
        if layout is None:
            raise _Malformed(f"unknown value type {kind}")
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return value

    def string(self, longest: int | None = None) -> str:
        length = self.scalar(10)
        if longest is not None and length > longest:
            raise _Malformed(f"a text of {length:,} bytes, where {longest:,} are the most")
        if length > self.size - self.at:
            raise _cut(f"text of {length:,} bytes")
        text = self.data[self.at : self.at + length].decode("utf-8", "replace")
        self.at += length
        return text

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.scalar(kind)
        inner, count = self.scalar(4), self.scalar(10)
        if count > self.size - self.at:
            raise _cut(f"list of {count:,} entries")
        if inner == _STRING:
            if count <= self.kept_length:
                return [self.string() for _ in range(count)]
            self._skip_strings(count)
            return {"length": count}
        if inner not in _SCALARS:
            raise _Malformed(f"a list of type {inner}")
        width = struct.calcsize(_SCALARS[inner])
        if count * width > self.size - self.at:
            raise _cut(f"list of {count:,} entries")
        if count <= self.kept_length:
            return [self.scalar(inner) for _ in range(count)]
        self.at += count * width
        return {"length": count}

    def _skip_strings(self, count: int) -> None:
        unpack, data, at, size = struct.Struct("<Q").unpack_from, self.data, self.at, self.size
        for _ in range(count):
            (length,) = unpack(data, at)
            at += 8 + length
            if at > size:
                raise _cut(f"text of {length:,} bytes")
        self.at = at
