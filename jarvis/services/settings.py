"""Changes one setting in ``config.toml`` and leaves the rest of the file as it is.

Comments, order and spacing are the user's own: only the line of the setting is written, and the
result is checked to differ from the old file in that setting alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from jarvis.config import keys
from jarvis.errors import ConfigError
from jarvis.paths import private_file, private_folder

_HEADER = re.compile(r"^\s*\[\s*([^\[\]#]+?)\s*\]\s*(#.*)?$")


def set_value(path: Path, key: str, value: Any) -> None:
    """Sets ``section.name`` (or a top-level ``name``) in the file; None removes it.

    The file is made when it is missing, mode 0600, and replaced as a whole. A link is followed.

    Args:
        value: text, number, truth value, list or table, as ``config.parse_value`` returns it.

    Raises:
        ConfigError: there is no such key, the file is not valid TOML, or the setting stands in a
            form that cannot be changed safely; then nothing is written.
    """
    if key not in keys() and key.rpartition(".")[0] not in keys():
        raise ConfigError(f"unknown setting {key}", "jarvis config show lists the keys")
    path = path.resolve()
    try:
        old = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        old = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "jarvis config edit") from error
    expected = _with(_parse(path, old), key, value)
    new = _edit(old, key, value)
    try:
        same = tomllib.loads(new) == expected
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise ConfigError(
            f"{path} sets {key} in a form that only you can change", "jarvis config edit"
        )
    _replace(path, new)


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "jarvis config edit") from error


def _with(settings: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The settings as they should be afterwards."""
    *sections, name = key.split(".")
    inner = settings
    for section in sections:
        if value is None and section not in inner:
            return settings
        inner = inner.setdefault(section, {})
    if value is None:
        inner.pop(name, None)
    else:
        inner[name] = value
    return settings


def _edit(text: str, key: str, value: Any) -> str:
    import tomli_w

    section, _, name = key.rpartition(".")
    assignment = "" if value is None else _assignment(tomli_w.dumps({name: value}), name, value)
    # Not splitlines: a text may hold other characters that it takes for line ends.
    lines = text.removesuffix("\n").split("\n") if text else []
    start, end = _section(lines, section)
    if start < 0:
        if value is not None:
            lines += [*([""] if lines and lines[-1].strip() else []), f"[{section}]", assignment]
        return _joined(lines)
    for at in range(start, end):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[at]):
            last = _value_end(lines, at, end)
            kept = _comment(lines[at]) if last == at + 1 else ""
            lines[at:last] = [assignment + kept] if assignment else []
            return _joined(lines)
    if value is None:
        return text
    lines.insert(_place(lines, start, end, name), assignment)
    return _joined(lines)


def _assignment(dumped: str, name: str, value: Any) -> str:
    """One assignment; a table inline, since a header of its own would end the section."""
    import tomli_w

    if not isinstance(value, dict):
        return dumped.strip()
    entries = ", ".join(tomli_w.dumps({inner: each}).strip() for inner, each in value.items())
    return f"{name} = {{ {entries} }}" if entries else f"{name} = {{}}"


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """First line after the header and the line of the next header; (-1, -1): no such section."""
    start = 0 if not section else -1
    for at, line in enumerate(lines):
        if not line.lstrip().startswith("["):
            continue
        header = _HEADER.match(line)
        if start >= 0:
            return start, at
        if header and header.group(1).strip("\"'") == section:
            start = at + 1
    return start, len(lines) if start >= 0 else -1


def _value_end(lines: list[str], at: int, end: int) -> int:
    """The line after the assignment at ``at``, which may go over several lines."""
    for last in range(at + 1, end + 1):
        try:
            tomllib.loads("\n".join(lines[at:last]))
        except tomllib.TOMLDecodeError:
            continue
        return last
    return at + 1


def _comment(line: str) -> str:
    """The comment at the end of a line, with the space before it."""
    for match in re.finditer(r"\s*#", line):
        try:
            tomllib.loads(line[: match.start()])
        except tomllib.TOMLDecodeError:
            continue
        return line[match.start() :]
    return ""


def _place(lines: list[str], start: int, end: int, name: str) -> int:
    """Where a new line goes: below its commented default, else at the end of the section."""
    for at in range(start, end):
        if re.match(rf"\s*#\s*{re.escape(name)}\s*=", lines[at]):
            return at + 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""


def _replace(path: Path, text: str) -> None:
    if not path.parent.is_dir():
        private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(private_file(temporary, flags), "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise ConfigError(
            f"cannot write {path}: {error.strerror}", "make it writable, or name another: --config"
        ) from error
