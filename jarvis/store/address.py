"""The address of a server of the user's own, and what libpq says when it does not answer."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any

from jarvis.config import DatabaseSettings
from jarvis.errors import ConfigError
from jarvis.paths import expand


def conninfo(settings: DatabaseSettings) -> dict[str, Any]:
    """What libpq needs to reach a server of the user's own.

    The address is taken apart here and not by libpq, which misreads ``@`` and ``:`` in a
    password and prints a part of it in its error.

    Raises:
        ConfigError: the address is none, or the password file cannot be read.
    """
    info: dict[str, Any] = {}
    if settings.url:
        info |= _parse_url(settings.url)
    parts = {
        "host": settings.host,
        "user": settings.user,
        "password": settings.password,
        "dbname": settings.dbname,
        "sslmode": settings.sslmode,
    }
    info |= {key: value for key, value in parts.items() if value}
    for key in ("sslrootcert", "sslcert", "sslkey"):
        if path := getattr(settings, key):
            info[key] = path if path == "system" else str(expand(path))
    info.setdefault("port", settings.port)
    info.setdefault("dbname", info.get("user") or "jarvis")
    if settings.password_file:
        path = expand(settings.password_file)
        try:
            info["password"] = path.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        except OSError as error:
            raise ConfigError(
                f"cannot read database.password_file {path}: {error.strerror}"
            ) from error
    return info


def _parse_url(url: str) -> dict[str, Any]:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"postgres", "postgresql"}:
        raise ConfigError(
            "database.url is not a Postgres address", "write postgresql://user@host:5432/dbname"
        )
    # The last @ ends the user part: one inside a password need not be escaped.
    authority, _, query = (
        rest.partition("?") if "@" not in rest.rpartition("?")[2] else (rest, "", "")
    )
    login, at, place = authority.rpartition("@")
    place, _, dbname = place.partition("/")
    info: dict[str, Any] = {}
    if at:
        user, colon, password = login.partition(":")
        info["user"] = urllib.parse.unquote(user)
        if colon:
            info["password"] = urllib.parse.unquote(password)
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, ""
    if host:
        info["host"] = urllib.parse.unquote(host.strip("[]"))
    if port:
        if not port.isdigit():
            raise ConfigError(
                "database.url has a port that is no number",
                "write postgresql://user@host:5432/dbname",
            )
        info["port"] = int(port)
    if dbname:
        info["dbname"] = urllib.parse.unquote(dbname)
    info |= dict(urllib.parse.parse_qsl(query))
    return info


def schema_name(name: str) -> str:
    """``name``, which goes into an option of the server's.

    Raises:
        ConfigError: it holds what would have to be escaped there.
    """
    if not name.replace("_", "a").isalnum():
        raise ConfigError(f"database.schema may hold letters, digits and _ only, not {name!r}")
    return name


_ATTEMPT = re.compile(r"connection to server (?:at|on) .*? failed: ")
_CERTIFICATE = re.compile(r"certificate|\bSSL\b|\bTLS\b|sslmode|encryption", re.IGNORECASE)


def reason(error: BaseException) -> str:
    """What libpq means, in one line: without the address that it repeats, and its advice."""
    last = _ATTEMPT.split(str(error))[-1]
    lines = [line.strip() for line in last.splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text.removeprefix("FATAL:").strip()


def hint(error: BaseException) -> str:
    """What to do about a connection that could not be made."""
    if _CERTIFICATE.search(reason(error)):
        return (
            "check database.sslmode and database.sslrootcert; the host in the address must be"
            " a name that the server's certificate holds"
        )
    if "startup parameter" in reason(error):
        return "a pooler answers there: set database.prepared_statements to false"
    return "check database.url, or leave it out to use the embedded server"
