"""Which server and which model: for chat and for embeddings, each by itself.

The order: a flag, the configuration, ``OLLAMA_HOST``, what was recorded, whatever answers. A
server that somebody named (the first three) is used or reported, never silently replaced. The
embedding choice is recorded at its first use, since vectors of two models cannot be compared.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jarvis.config import Config
from jarvis.errors import ModelNotInstalled
from jarvis.llm.address import DEFAULT_PORT, Address, answers, parse_address, unavailable
from jarvis.llm.profiles import (
    EMBEDDING_PROFILES,
    OLLAMA_CHAT_DEFAULT,
    OLLAMA_EMBEDDING_DEFAULT,
    base_name,
    is_embedding_name,
    same_model,
)
from jarvis.paths import Paths, private_folder

if TYPE_CHECKING:
    from jarvis.llm.server import Server

Kind = Literal["chat", "embedding"]

WHATEVER_ANSWERS = "an Ollama answers"


@dataclass(frozen=True, slots=True)
class Choice:
    """A server, a model on it, and why in one sentence."""

    kind: Kind
    server: Server
    model: str
    reason: str
    note: str = ""


class Providers:
    """Chooses servers and models for one configuration.

    Args:
        env: the environment; default ``os.environ``.
        progress: told in a sentence when something takes long.
    """

    def __init__(
        self,
        config: Config,
        paths: Paths,
        *,
        env: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.paths = paths
        self.env = os.environ if env is None else env
        self.progress = progress
        self._servers: dict[str, Server] = {}

    def choose(self, kind: Kind, *, model: str = "") -> Choice:
        """The server and model for ``kind``.

        Args:
            model: a model asked for by name; overrides the configured one.

        Raises:
            ProviderUnavailable: a named server does not answer.
            ModelNotInstalled: a named Ollama does not have the named model.
        """
        settings = self.config.chat if kind == "chat" else self.config.embedding
        recorded = self._recorded(kind)
        wanted = model or settings.model
        if settings.provider == "embedded":
            return self._embedded(kind, wanted, "it is configured")
        used_before = kind == "embedding" and recorded.get("provider") == "embedded"
        nobody_named = self._named_address(kind)[0] is None and settings.provider == "auto"
        if used_before and nobody_named and not wanted:
            return self._embedded(kind, recorded["model"], "it was used before")
        address, why = self._address(kind, "" if wanted else recorded.get("host", ""))
        if address is None:
            return self._embedded(kind, wanted, why)
        server = self._ollama(address)
        if why == WHATEVER_ANSWERS and wanted and not server.has(wanted):
            from jarvis.engine import catalogue

            if catalogue.find(wanted) is not None:
                return self._embedded(kind, wanted, f"{server.where} does not have it")
        choice = self._on_ollama(kind, server, wanted, recorded, why)
        if choice is not None:
            return choice
        if settings.provider == "ollama":
            raise server.not_installed(wanted or OLLAMA_EMBEDDING_DEFAULT)
        return self._embedded(kind, wanted, f"{server.where} has no embedding model")

    def server(self, kind: Kind) -> Server:
        """The server that ``kind`` would be asked of, whatever models it has.

        Raises:
            ProviderUnavailable: a named server does not answer.
        """
        settings = self.config.chat if kind == "chat" else self.config.embedding
        if settings.provider == "embedded":
            return self.embedded()
        address, _ = self._address(kind, "")
        return self.embedded() if address is None else self._ollama(address)

    def _address(self, kind: Kind, recorded: str) -> tuple[Address | None, str]:
        """Where an Ollama answers, and why that one; None: nowhere, and nobody named one.

        Raises:
            ProviderUnavailable: the one that was named, or used before, does not answer. Asked
                before the client is loaded, so that it is said at once.
        """
        settings = self.config.chat if kind == "chat" else self.config.embedding
        default = Address("http", "127.0.0.1", DEFAULT_PORT)
        address, why = self._named_address(kind)
        if address is None and settings.provider == "ollama":
            address, why = default, "it is configured"
        if address is None and recorded:
            address, why = parse_address(recorded), "it was used before"
        must_answer = address is not None
        address = address or default
        if answers(address, self.config.chat.connect_timeout):
            return address, why or WHATEVER_ANSWERS
        if must_answer:
            raise unavailable(address.url, "nothing answers")
        return None, "no Ollama answers"

    def record(self, choice: Choice) -> None:
        """Keeps an embedding choice for the next time; a chat choice is made anew each time."""
        if choice.kind != "embedding":
            return
        entry = {
            "provider": choice.server.kind,
            "host": choice.server.where if choice.server.kind == "ollama" else "",
            "model": choice.model,
        }
        known = self._read()
        if known.get(choice.kind) == entry:
            return
        self._write({**known, choice.kind: entry})

    def forget(self, kind: Kind) -> None:
        """Drops what was recorded, so that a new choice can be made."""
        known = self._read()
        if known.pop(kind, None) is not None:
            self._write(known)

    def embedded(self) -> Server:
        """The embedded engine."""
        if "embedded" not in self._servers:
            from jarvis.llm.server import EmbeddedServer

            self._servers["embedded"] = EmbeddedServer(self.paths, self.config, self.progress)
        return self._servers["embedded"]

    def close(self) -> None:
        """Closes what was opened."""
        for server in self._servers.values():
            server.close()

    def _named_address(self, kind: Kind) -> tuple[Address | None, str]:
        hosts = (
            (self.config.embedding.host if kind == "embedding" else "", "embedding.host names it"),
            (self.config.chat.host, "chat.host names it"),
            (self.env.get("OLLAMA_HOST", ""), "OLLAMA_HOST names it"),
        )
        for text, why in hosts:
            if text:
                return parse_address(text), why
        return None, ""

    def _ollama(self, address: Address) -> Server:
        from jarvis.llm.server import Server

        if address.url not in self._servers:
            chat = self.config.chat
            self._servers[address.url] = Server(address, chat.connect_timeout, chat.read_timeout)
        return self._servers[address.url]

    def _on_ollama(
        self, kind: Kind, server: Server, wanted: str, recorded: Mapping[str, Any], why: str
    ) -> Choice | None:
        """What that server offers; None: it has no embedding model and none was named."""
        installed = server.models()
        if wanted:
            for name in installed:
                if same_model(name, wanted):
                    return Choice(kind, server, name, why)
            raise server.not_installed(wanted)
        if kind == "embedding":
            preferred = [recorded.get("model", ""), OLLAMA_EMBEDDING_DEFAULT, *EMBEDDING_PROFILES]
            for want in preferred:
                for name in installed:
                    if want and (same_model(name, want) or base_name(name) == want):
                        return Choice(kind, server, name, why)
            return None
        for name in installed:
            if same_model(name, OLLAMA_CHAT_DEFAULT):
                return Choice(kind, server, name, why)
        candidates = [name for name in installed if not is_embedding_name(name)]
        if not candidates:
            raise ModelNotInstalled(
                f"{server.where} has no chat model",
                f"install one: jarvis model pull {OLLAMA_CHAT_DEFAULT}",
            )
        # The list is newest first: the one that was installed last is likely the one liked best.
        return Choice(
            kind,
            server,
            candidates[0],
            why,
            note=f"{OLLAMA_CHAT_DEFAULT} is not installed at {server.where}; "
            f"using {candidates[0]} (change it: jarvis model use NAME)",
        )

    def _embedded(self, kind: Kind, wanted: str, why: str) -> Choice:
        from jarvis.engine import catalogue

        if wanted:
            return Choice(kind, self.embedded(), wanted, why)
        if kind == "embedding":
            return Choice(kind, self.embedded(), catalogue.DEFAULT_EMBEDDING_MODEL, why)
        recorded = self._recorded("chat")
        name, because = recorded.get("embedded"), recorded.get("because")
        if not (name and because):
            from jarvis.engine import machine

            default = machine.default_chat_model()
            if name in (None, default.name):
                name, because = default.name, default.reason
            else:
                because = "it has answered here before"
            # Kept, so that the same model answers tomorrow, and no network is asked again.
            chosen = {"embedded": name, "because": because}
            self._write({**self._read(), "chat": {**recorded, **chosen}})
        return Choice(kind, self.embedded(), name, f"{why}; {because}")

    @property
    def _file(self) -> Path:
        return self.paths.state / "providers.json"

    def _recorded(self, kind: Kind) -> dict[str, Any]:
        entry = self._read().get(kind)
        return entry if isinstance(entry, dict) else {}

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _write(self, known: Mapping[str, Any]) -> None:
        folder = private_folder(self._file.parent)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".providers-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=1)
            Path(name).replace(self._file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
