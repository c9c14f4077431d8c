"""Where a model server listens, and whether anything answers there.

Light on purpose: that nothing answers is said before the ``ollama`` client is loaded.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import urllib.parse
from dataclasses import dataclass

from jarvis.errors import ConfigError, ProviderUnavailable

DEFAULT_PORT = 11434


@dataclass(frozen=True, slots=True)
class Address:
    """Where an Ollama listens."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether it is this machine: then no proxy is asked."""
        return self.host in {"localhost", "::1"} or self.host.startswith("127.")


def parse_address(text: str) -> Address:
    """Reads what people write into OLLAMA_HOST: scheme and port may be missing.

    0.0.0.0 and [::] are addresses to listen at; a client takes the loopback.

    Raises:
        ConfigError: it is no address.
    """
    text = text.strip()
    full = text if "://" in text else f"http://{text}"
    try:
        parts = urllib.parse.urlsplit(full)
        port = parts.port
    except ValueError:
        raise ConfigError(
            f"the Ollama address {text!r} is none", "write host:port, for example localhost:11434"
        ) from None
    host = parts.hostname or "127.0.0.1"
    if parts.scheme not in {"http", "https"} or any(letter.isspace() for letter in host):
        raise ConfigError(
            f"the Ollama address {text!r} is none", "write host:port, for example localhost:11434"
        )
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- read, not bound
    if port is None:
        port = 443 if parts.scheme == "https" else 80 if "://" in text else DEFAULT_PORT
    return Address(parts.scheme, host, port)


def answers(address: Address, timeout: float) -> bool:
    """Whether something accepts a connection there within ``timeout`` seconds.

    The look-up of the name is bounded too: the resolver itself knows no limit, so it runs on a
    thread that is left behind when it takes too long.
    """
    result: list[bool] = []

    def attempt() -> None:
        with (
            contextlib.suppress(OSError, UnicodeError),
            socket.create_connection((address.host, address.port), timeout=timeout),
        ):
            result.append(True)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    return bool(result)


def unavailable(where: str, reason: str) -> ProviderUnavailable:
    """The error that says that no Ollama answers at ``where``."""
    return ProviderUnavailable(
        f"the Ollama server at {where} does not answer ({reason})",
        "start it with: ollama serve -- or use the embedded engine: JARVIS_CHAT_PROVIDER="
        "embedded JARVIS_EMBEDDING_PROVIDER=embedded",
    )
