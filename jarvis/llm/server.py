"""One model server: its address, and the ``ollama`` client that speaks to it.

The embedded engine and a real Ollama differ here only: the first is reached through a Unix
socket and started when nothing answers, the second through TCP. Everything above sees a
``Server``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx
import ollama

from jarvis.errors import ModelNotInstalled, ModelUnavailable, ProviderUnavailable
from jarvis.llm.address import DEFAULT_PORT, Address, answers, unavailable
from jarvis.llm.profiles import same_model

if TYPE_CHECKING:
    from jarvis.config import Config
    from jarvis.paths import Paths

BACKGROUND_HEADER = "X-Jarvis-Background"
"""Tells the embedded engine that nobody waits for this request; Ollama ignores it."""


class CachedTokens:
    """Reads ``prompt_cached_count`` off an engine's answer; the ``ollama`` client drops it."""

    def __init__(self) -> None:
        self.value: int | None = None

    def look(self, line: bytes) -> None:
        """Takes one line of an answer."""
        if b'"prompt_cached_count"' in line:
            with contextlib.suppress(ValueError, AttributeError, TypeError):
                self.value = int(json.loads(line).get("prompt_cached_count"))


class _Tap(httpx.BaseTransport):
    """Hands each line of an answer to ``on_line``, and everything on as it is."""

    def __init__(self, inner: httpx.BaseTransport, on_line: Callable[[bytes], None]) -> None:
        self.inner = inner
        self.on_line = on_line

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self.inner.handle_request(request)
        if request.url.path == "/api/chat" and isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _TappedStream(response.stream, self.on_line)
        return response

    def close(self) -> None:
        self.inner.close()


class _TappedStream(httpx.SyncByteStream):
    def __init__(self, inner: httpx.SyncByteStream, on_line: Callable[[bytes], None]) -> None:
        self.inner = inner
        self.on_line = on_line

    def __iter__(self) -> Iterator[bytes]:
        tail = b""
        for piece in self.inner:
            *lines, tail = (tail + piece).split(b"\n")
            for line in lines:
                self.on_line(line)
            tail = tail[-65_536:]
            yield piece
        self.on_line(tail)

    def close(self) -> None:
        self.inner.close()


class Server:
    """A model server that speaks Ollama's API.

    Args:
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next piece; long, since a model may be loading.
    """

    kind = "ollama"

    def __init__(self, address: Address, connect_timeout: float, read_timeout: float) -> None:
        self.address = address
        self.connect_timeout = connect_timeout
        self.read_timeout = read_timeout
        self.cached_tokens = CachedTokens()

    @property
    def where(self) -> str:
        """The address for people."""
        return self.address.url

    @cached_property
    def client(self) -> ollama.Client:
        """For what somebody waits for."""
        return self._client({})

    @cached_property
    def background_client(self) -> ollama.Client:
        """For what nobody waits for."""
        return self._client({BACKGROUND_HEADER: "1"})

    def ensure(self) -> None:
        """Returns when the server answers.

        Raises:
            ProviderUnavailable: it does not.
        """
        if not answers(self.address, self.connect_timeout):
            raise self.unavailable("nothing answers")

    def revive(self) -> bool:
        """Called when a request failed before its first byte: whether a retry makes sense."""
        return False

    def unavailable(self, reason: str) -> ProviderUnavailable:
        """The error that says that this server does not answer."""
        return unavailable(self.where, reason)

    def models(self) -> list[str]:
        """The names of the installed models.

        Raises:
            ProviderUnavailable: the server does not answer.
        """
        with self.errors(""):
            return [item.model for item in self.client.list().models if item.model]

    def has(self, model: str) -> bool:
        """Whether the model is installed.

        Raises:
            ProviderUnavailable: the server does not answer.
        """
        return any(same_model(name, model) for name in self.models())

    def digest(self, model: str) -> str:
        """The digest of an installed model; empty when the server does not say.

        Raises:
            ProviderUnavailable: the server does not answer.
        """
        with self.errors(model):
            for item in self.client.list().models:
                if item.model and same_model(item.model, model):
                    return (item.digest or "").removeprefix("sha256:")
        return ""

    @contextlib.contextmanager
    def errors(self, model: str) -> Iterator[None]:
        """Turns what the client raises into our tree."""
        try:
            yield
        except ollama.ResponseError as error:
            raise self.translate(error, model) from error
        except (httpx.TimeoutException, httpx.TransportError, ConnectionError) as error:
            raise self.unavailable(_reason(error)) from error
        except (ValueError, json.JSONDecodeError) as error:
            raise ModelUnavailable(
                f"the server at {self.where} sent what is no answer: {error}",
                "check that an Ollama listens there",
            ) from error

    def translate(self, error: ollama.ResponseError, model: str) -> ModelUnavailable:
        """The error of ours for an error of the server's."""
        text = " ".join(str(error.error).split())[:300] or f"status {error.status_code}"
        if error.status_code == 404 and model:
            return self.not_installed(model)
        return ModelUnavailable(
            f"{self.where} refused the request for {model or 'its models'}: {text}",
            "jarvis doctor",
        )

    def not_installed(self, model: str) -> ModelNotInstalled:
        """The error that names the model, what is near, and the command that installs it."""
        import difflib

        installed: list[str] = []
        with contextlib.suppress(ModelUnavailable):
            installed = self.models()
        near = difflib.get_close_matches(model, installed, n=2, cutoff=0.4)
        others = f"; installed: {', '.join(near or installed[:3])}" if installed else ""
        return ModelNotInstalled(
            f'model "{model}" is not installed at {self.where}',
            f"jarvis model pull {model}{others}",
        )

    def close(self) -> None:
        """Closes the connections that were opened."""
        for name in ("client", "background_client"):
            if name in self.__dict__:
                self.__dict__[name]._client.close()

    def _client(self, headers: dict[str, str]) -> ollama.Client:
        options: dict[str, Any] = {
            "headers": headers,
            "timeout": httpx.Timeout(
                self.read_timeout, connect=self.connect_timeout, pool=self.connect_timeout
            ),
        }
        if self.address.loopback:
            # Proxies from the environment are for the network, not for this machine.
            options["trust_env"] = False
        return ollama.Client(host=self.address.url, **options)


class EmbeddedServer(Server):
    """The engine of this installation, on its Unix socket; started when nothing answers."""

    kind = "embedded"

    def __init__(self, paths: Paths, config: Config, progress: Callable[[str], None]) -> None:
        super().__init__(
            Address("http", "localhost", DEFAULT_PORT),
            config.chat.connect_timeout,
            config.chat.read_timeout,
        )
        self.paths = paths
        self.config = config
        self.progress = progress

    @property
    def where(self) -> str:
        """The address for people."""
        return "the embedded engine"

    def ensure(self) -> None:
        """Starts the engine where it does not run.

        Raises:
            ProviderUnavailable: it cannot be started.
        """
        from jarvis.engine import launcher

        launcher.ensure_running(self.paths, self.config, progress=self.progress)

    def revive(self) -> bool:
        """It was idle and left, or crashed: start it again."""
        self.ensure()
        return True

    def unavailable(self, reason: str) -> ProviderUnavailable:
        """The error that says that the engine does not answer."""
        return ProviderUnavailable(
            f"the embedded engine does not answer ({reason})", "jarvis engine status"
        )

    def _client(self, headers: dict[str, str]) -> ollama.Client:
        from jarvis.engine import launcher

        transport = httpx.HTTPTransport(uds=str(launcher.socket_path(self.paths)))
        return ollama.Client(
            host="http://localhost",
            headers=headers,
            transport=_Tap(transport, self.cached_tokens.look),
            timeout=httpx.Timeout(self.read_timeout, connect=self.connect_timeout),
            trust_env=False,
        )


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if "ollama.com/download" in text.lower():
        return "connection refused"
    return text[:160] or type(error).__name__
