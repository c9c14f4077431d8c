"""What people write as an address: of a database, of an Ollama."""

from __future__ import annotations

from pathlib import Path

import pytest

from jarvis.config import DatabaseSettings
from jarvis.errors import ConfigError
from jarvis.llm.address import parse_address
from jarvis.store.address import conninfo, hint, reason


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("example", "http://example:11434"),
        ("example:80", "http://example:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ("http://example", "http://example:80"),
        ("https://example/", "https://example:443"),
        (" localhost:11434 ", "http://localhost:11434"),
    ],
)
def test_ollama_addresses(text: str, url: str) -> None:
    assert parse_address(text).url == url


@pytest.mark.parametrize("text", ["a b", "ftp://x", "host:port", "http://h:99999"])
def test_what_is_no_ollama_address_is_said(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_address(text)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_loopback_needs_no_proxy(host: str) -> None:
    assert parse_address(host).loopback
    assert not parse_address("example").loopback


@pytest.mark.parametrize(
    "password", ["p@ss", "a#b", "a%b", "a:b", "a/b", "a?b", "p@s#s%w:o/r", "a@b@c", "%zz"]
)
def test_a_password_may_hold_anything(password: str) -> None:
    info = conninfo(DatabaseSettings(url=f"postgresql://me:{password}@db:5433/mine"))
    assert info["user"] == "me"
    assert info["password"] == password
    assert (info["host"], info["port"], info["dbname"]) == ("db", 5433, "mine")


def test_an_escaped_password_is_unescaped() -> None:
    info = conninfo(DatabaseSettings(url="postgres://me:p%40ss@db/mine?sslmode=require"))
    assert info["password"] == "p@ss"
    assert info["sslmode"] == "require"
    assert info["port"] == 5432


def test_parts_override_the_address_and_a_file_holds_the_password(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from the file\nnot this\n", encoding="utf-8")
    info = conninfo(
        DatabaseSettings(
            url="postgresql://me@db/mine", user="other", password_file=str(secret), sslmode="prefer"
        )
    )
    assert (info["user"], info["password"], info["sslmode"]) == ("other", "from the file", "prefer")


@pytest.mark.parametrize("url", ["mysql://x", "db.example", "postgresql://h:port/x"])
def test_what_is_no_database_address_is_said_without_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        conninfo(DatabaseSettings(url=url))
    assert url not in caught.value.message


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (
            'connection failed: connection to server at "127.0.0.1", port 1 failed: Connection'
            " refused\n\tIs the server running on that host and accepting TCP/IP connections?",
            "Connection refused",
        ),
        (
            'connection to server at "::1", port 1 failed: Connection refused\n'
            'connection to server at "127.0.0.1", port 1 failed: FATAL:  no such role',
            "no such role",
        ),
        (
            'connection to server at "h", port 1 failed: root certificate file "/x" does not'
            " exist\nEither provide the file, or change sslmode to disable verification.",
            'root certificate file "/x" does not exist',
        ),
    ],
)
def test_what_went_wrong_is_told_without_libpq_s_advice(said: str, means: str) -> None:
    assert reason(Exception(said)) == means
    assert ("sslrootcert" in hint(Exception(said))) == ("certificate" in means)


def test_files_of_tls_may_lie_in_the_home_folder() -> None:
    info = conninfo(DatabaseSettings(host="db", sslrootcert="~/ca.crt", sslkey="/k"))
    assert info["sslrootcert"] == str(Path("~/ca.crt").expanduser())
    assert info["sslkey"] == "/k"
    assert conninfo(DatabaseSettings(host="db", sslrootcert="system"))["sslrootcert"] == "system"
