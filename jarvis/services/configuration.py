"""The configuration as a user sees it: every setting, its value, and where it comes from."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jarvis import config
from jarvis.errors import ConfigError
from jarvis.paths import private_file, private_folder
from jarvis.services import settings

Origin = Literal["default", "file", "environment"]
_SECRET = frozenset({"database.password"})
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``value`` never holds a password."""

    key: str
    value: Any
    origin: Origin
    help: str


def settings_of(path: Path, env: Mapping[str, str] | None = None) -> Iterator[Setting]:
    """Every setting, in the order of the reference.

    Raises:
        ConfigError: the file or the environment is wrong.
    """
    env = os.environ if env is None else env
    loaded = config.load(path, env)
    in_file = _keys_in(path)
    meanings, known = config.documentation(), config.keys()
    for key in known:
        variable = "JARVIS_" + key.replace(".", "_").upper()
        origin: Origin = (
            "environment" if variable in env else "file" if key in in_file else "default"
        )
        value = without_password(key, config.value_of(loaded, key))
        yield Setting(key, value, origin, meanings.get(key, ""))


def setting_of(path: Path, key: str) -> Setting:
    """One setting.

    Raises:
        ConfigError: there is no such key, or the file is wrong.
    """
    config.value_of(config.Config(), key)
    return next(found for found in settings_of(path) if found.key == key)


def change(path: Path, key: str, text: str | None) -> Setting:
    """Sets one setting in the file, or removes it (None); comments stay as they are.

    Raises:
        ConfigError: there is no such key, or the text is no value of it; nothing is written.
    """
    value = None if text is None else config.parse_value(key, text, "config set")
    if text is None:
        config.value_of(config.Config(), key)
    settings.set_value(path, key, value)
    return setting_of(path, key)


def make_file(path: Path) -> bool:
    """Makes the file from the example when it is missing; returns whether it did."""
    if path.exists():
        return False
    private_folder(path.parent)
    try:
        descriptor = private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(config.example())
    return True


def without_password(key: str, value: Any) -> Any:
    """The value as it may be shown."""
    if key in _SECRET and value:
        return HIDDEN
    if isinstance(value, str) and "://" in value:
        return _without_login(_IN_QUERY.sub(rf"\1{HIDDEN}", value))
    return value


_IN_QUERY = re.compile(r"([?&][^=&]*(?:password|key|token|secret)=)[^&@]*", re.IGNORECASE)


def _without_login(address: str) -> str:
    scheme, _, rest = address.partition("://")
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}://{user}{':' + HIDDEN if colon else ''}{at}{place}"


def _keys_in(path: Path) -> set[str]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return set()
    keys: set[str] = set()
    for name, value in raw.items():
        if isinstance(value, dict):
            keys |= {f"{name}.{inner}" for inner in value}
        else:
            keys.add(name)
    return keys
