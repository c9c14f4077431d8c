"""What was typed, kept between chats: one file, 0600, one entry a line.

Several chats may write at once: each appends whole lines under a lock of its own file, and the
file is only ever replaced as a whole. Reading happens on a thread after the prompt is visible,
newest first, so a history of any length costs the first prompt nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.history import History

from jarvis.paths import private_file, private_folder

MAX_ENTRY = 20_000
"""Characters of one entry; what is longer (a pasted file) is not kept."""
SLACK = 1.1
"""How far the file may outgrow its limit before it is shortened."""
_BATCH = 256
_TAIL_READ = 1 << 16


def encode(entry: str) -> str:
    """An entry as one line of the file."""
    return entry.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")


def decode(line: str) -> str:
    """The entry that a line of the file holds."""
    if "\\" not in line:
        return line
    out: list[str] = []
    characters = iter(line)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        following = next(characters, "\\")
        out.append({"n": "\n", "r": "\r"}.get(following, following))
    return "".join(out)


class HistoryFile:
    """The file. Every method may be called by several processes and threads at once.

    Args:
        path: the file; its folder is made when something is stored.
        limit: entries kept.
    """

    def __init__(self, path: Path, limit: int = 100_000) -> None:
        self.path = path
        self.limit = limit

    def append(self, entry: str) -> bool:
        """Stores an entry, unless it is too long or equals the last one; False: not stored.

        A history that cannot be written (a read-only home) is no reason to fail.
        """
        if not entry.strip() or len(entry) > MAX_ENTRY or self.limit <= 0:
            return False
        line = encode(entry).encode("utf-8", "surrogatepass") + b"\n"
        try:
            private_folder(self.path.parent)
            with self._locked():
                if self._last_line() == line:
                    return False
                descriptor = private_file(self.path)
                try:
                    os.write(descriptor, line)
                finally:
                    os.close(descriptor)
        except Exception:  # noqa: BLE001 -- losing one history line must not lose the message
            return False
        return True

    def newest_first(self) -> list[str]:
        """All entries, the last one first; shortens the file where it outgrew its limit."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        if len(lines) > self.limit * SLACK:
            self._shorten()
            lines = lines[-self.limit :]
        lines.reverse()
        return [decode(line.decode("utf-8", "replace")) for line in lines if line]

    def _last_line(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL_READ))
                lines = file.read().splitlines(keepends=True)
        except OSError:
            return b""
        return lines[-1] if lines else b""

    def _shorten(self) -> None:
        with contextlib.suppress(OSError), self._locked():
            lines = self.path.read_bytes().splitlines(keepends=True)
            if len(lines) <= self.limit:
                return
            fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            descriptor = private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(lines[-self.limit :])
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = private_file(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


class ChatHistory(History):
    """The history of one chat, for prompt-toolkit.

    Args:
        file: where it is kept.

    Attributes:
        store: whether new entries are stored; not in a private chat.
        expand: what a line with marks of pastes really says.
    """

    def __init__(self, file: HistoryFile) -> None:
        super().__init__()
        self._file = file
        self._read = False
        self.store = True
        self.expand: Callable[[str], str] = lambda line: line

    async def load(self) -> AsyncGenerator[str, None]:
        """Yields entries newest first, without holding the keyboard up."""
        if not self._read:
            self._read = True
            older = await asyncio.get_running_loop().run_in_executor(None, self._entries)
            self._loaded_strings.extend(older)
        for index, entry in enumerate(list(self._loaded_strings)):
            if index % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            yield entry

    def load_history_strings(self) -> Iterable[str]:
        """All entries, newest first."""
        return self._entries()

    def append_string(self, string: str) -> None:
        """Adds what was just sent, long pastes included where they are not too long."""
        expanded = self.expand(string)
        string = expanded if len(expanded) <= MAX_ENTRY else string
        if self._loaded_strings[:1] != [string] and string.strip():
            self._loaded_strings.insert(0, string)
        self.store_string(string)

    def store_string(self, string: str) -> None:
        """Stores an entry; one that begins with a blank is kept in this chat only."""
        if self.store and not string.startswith(" "):
            self._file.append(string)

    def _entries(self) -> list[str]:
        return self._file.newest_first()
