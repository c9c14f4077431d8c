"""Reads text files, inside the folders that the user allowed and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jarvis.paths import expand
from jarvis.tools.protocol import Effect, ToolContext, tool
from jarvis.tools.schema import ToolError

MAX_BYTES = 256 * 1024
"""The most that is read of one file."""
_MAX_ENTRIES = 200


@tool(
    Effect.READS,
    when=r"\b(?:files?|folder|directory)\b|(?:^|\s)[~.]?/\w|\b[\w-]+\.[a-z]{2,5}\b(?!/)",
)
def read_file(context: ToolContext, path: str) -> str:
    """Reads a text file or lists a folder."""
    if not context.folders:
        raise ToolError("no folder is allowed: the user sets tools.folders")
    if "\0" in path:
        raise ToolError("a path cannot hold a NUL byte")
    root, parts = _locate(path, context.folders)
    descriptor = _open_below(root, parts, path)
    try:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            return _listing(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ToolError(f"{path} is not a file")
        data = _read(descriptor)
    finally:
        os.close(descriptor)
    text = _decode(data[:MAX_BYTES], path)
    if len(data) > MAX_BYTES:
        text += f"\n[… the first {MAX_BYTES // 1024} of {info.st_size // 1024:,} KiB]"
    return text or "(the file is empty)"


def _locate(path: str, folders: tuple[Path, ...]) -> tuple[Path, tuple[str, ...]]:
    """The allowed folder that really holds ``path``, and the way from there."""
    wanted = expand(path)
    candidates = [wanted] if wanted.is_absolute() else [folder / wanted for folder in folders]
    for candidate in candidates:
        # Links are followed here, before the check: what counts is where the file really is.
        try:
            real = candidate.resolve()
        except (OSError, RuntimeError):
            continue
        for folder in folders:
            root = expand(folder).resolve()
            if not real.is_relative_to(root) or (len(candidates) > 1 and not real.exists()):
                continue
            parts = real.relative_to(root).parts
            if any(part.startswith(".") for part in parts):
                raise ToolError(f"{path} is hidden; hidden files are not read")
            return root, parts
    allowed = ", ".join(str(folder) for folder in folders)
    raise ToolError(f"{path} is not inside an allowed folder ({allowed})")


def _open_below(root: Path, parts: tuple[str, ...], path: str) -> int:
    """Opens step by step without following links: none can be slipped in after the check."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(root, flags | os.O_DIRECTORY)
        for part in parts:
            outer = descriptor
            try:
                descriptor = os.open(part, flags, dir_fd=outer)
            finally:
                os.close(outer)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error
    return descriptor


def _read(descriptor: int) -> bytes:
    data = b""
    while len(data) <= MAX_BYTES:
        piece = os.read(descriptor, MAX_BYTES + 1 - len(data))
        if not piece:
            break
        data += piece
    return data


def _listing(descriptor: int) -> str:
    names = sorted(name for name in os.listdir(descriptor) if not name.startswith("."))
    shown = "\n".join(names[:_MAX_ENTRIES])
    more = len(names) - _MAX_ENTRIES
    return (shown or "(the folder is empty)") + (f"\n[… {more} more]" if more > 0 else "")


def _decode(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Cut in the middle of a character, or another encoding.
        if error.start >= len(data) - 4 and len(data) == MAX_BYTES:
            return data[: error.start].decode("utf-8-sig")
        from charset_normalizer import from_bytes

        best = from_bytes(data).best()
        if best is None or b"\0" in data:
            raise ToolError(f"{path} is not a text file") from None
        return str(best)
    if "\0" in text:
        raise ToolError(f"{path} is not a text file")
    return text
