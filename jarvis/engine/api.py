"""Ollama's HTTP API: one function a route, found in one table."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jarvis import __version__
from jarvis.config import Config
from jarvis.engine import answers, embed, openai, options, show
from jarvis.engine.answers import Asked
from jarvis.engine.library import Library
from jarvis.engine.llama import Cancelled, RunnerFailed
from jarvis.engine.pool import Loaded, Pool
from jarvis.engine.request import (
    HTTPError,
    Request,
    Response,
    error_response,
    json_response,
    text_response,
)
from jarvis.engine.schedule import Schedule
from jarvis.engine.store import InstalledModel
from jarvis.errors import JarvisError, ModelUnavailable
from jarvis.paths import Paths

log = logging.getLogger("jarvis.engine")

OLLAMA_VERSION = "0.12.0"
"""The version of Ollama's API that is spoken here, for clients that ask before they use it."""

BACKGROUND_HEADER = "x-jarvis-background"
PREEMPTED = "preempted by a chat, try again"


class Engine:
    """The routes and what they share."""

    def __init__(self, paths: Paths, config: Config, pool: Pool) -> None:
        self.pool, self.library = pool, Library(paths, config, pool)
        self.schedule = Schedule()
        self.started = time.time()
        self.requests = 0
        self.shutdown: Callable[[], None] = lambda: None
        self.routes: dict[str, dict[str, Callable[[Request], Response]]] = {
            "/": {"GET": self.root, "HEAD": self.root},
            "/api/version": {"GET": self.version, "HEAD": self.version},
            "/api/tags": {"GET": self.library.tags, "HEAD": self.library.tags},
            "/api/ps": {"GET": self.library.ps, "HEAD": self.library.ps},
            "/api/show": {"POST": self.library.show},
            "/api/chat": {"POST": self.chat},
            "/api/generate": {"POST": self.generate},
            "/api/embed": {"POST": self.embed},
            "/api/embeddings": {"POST": self.embeddings},
            "/api/pull": {"POST": self.library.pull},
            "/api/delete": {"DELETE": self.library.delete},
            "/api/copy": {"POST": self.library.copy},
            "/api/create": {"POST": unserved},
            "/api/push": {"POST": unserved},
            "/v1/chat/completions": {"POST": self._chat_completions},
            "/v1/completions": {"POST": self._completions},
            "/v1/embeddings": {"POST": self._openai_embeddings},
            "/v1/models": {"GET": self.library.openai_models},
            "/api/jarvis": {"GET": self.status, "DELETE": self.stop},
            "/api/jarvis/unload": {"POST": self.unload},
        }

    def handle(self, request: Request) -> Response:
        """Answers one request. Whatever goes wrong becomes ``{"error": …}``."""
        started = time.monotonic()
        self.requests += 1
        refuse = openai.error_response if request.path.startswith("/v1/") else error_response
        try:
            response = self._dispatch(request)
        except HTTPError as error:
            response = refuse(error.status, error.message)
        except Cancelled:
            if not request.cancelled.is_set():
                raise  # the client has gone: nobody to tell
            response = refuse(503, PREEMPTED)
        except (RunnerFailed, JarvisError) as error:
            response = refuse(*failure(error))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            response = refuse(500, "internal error; see the engine's log")
        log.info(
            "%a %a %d %.1f ms",
            request.method[:20], request.path[:80], response.status,
            (time.monotonic() - started) * 1e3,
        )  # fmt: skip
        return response

    def _dispatch(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(204)
        methods = self.routes.get(request.path)
        if request.path.startswith("/api/blobs/"):
            return unserved(request)
        if request.path.startswith("/v1/models/"):
            methods = {"GET": self.library.openai_model}
        if methods is None:
            return text_response("404 page not found", 404)
        route = methods.get(request.method)
        if route is None:
            return text_response("405 method not allowed", 405)
        return route(request)

    # What is here

    def root(self, _: Request) -> Response:
        """``GET /`` and ``HEAD /``: the sentence by which clients know an Ollama."""
        return text_response("Ollama is running")

    def version(self, _: Request) -> Response:
        """The version of the API, and ours."""
        return json_response({"version": OLLAMA_VERSION, "jarvis": __version__})

    def status(self, _: Request) -> Response:
        """For ``jarvis engine status``: what the engine does now."""
        return json_response(
            {
                "version": __version__,
                "requests": self.requests,
                "uptime_ms": int((time.time() - self.started) * 1e3),
                "models": [show.running(each) for each in self.pool.loaded()],
            }
        )

    def stop(self, request: Request) -> Response:
        """For ``jarvis engine stop``: ends as after SIGTERM."""
        if request.tcp:
            raise HTTPError(403, "only on the engine's own socket")
        threading.Thread(target=self.shutdown, daemon=True).start()
        return json_response({"status": "stopping"})

    def unload(self, request: Request) -> Response:
        """For ``jarvis model``: ends a model's process; the model may be deleted already."""
        name = str(request.json().get("model"))
        for loaded in self.pool.loaded():
            if loaded.model.name == name:
                self.pool.unload(loaded.model)
        return json_response({})

    # Answers

    def chat(self, request: Request) -> Response:
        """``POST /api/chat``."""
        return self._answer(request, answers.Chat)

    def generate(self, request: Request) -> Response:
        """``POST /api/generate``."""
        return self._answer(request, answers.Generate)

    def _answer(self, request: Request, kind: type[Asked]) -> Response:
        asked, lines = self.ask(request, request.json(), kind)
        if asked.empty or not asked.streamed:
            return json_response(asked.joined(lines))
        return Response(lines=lines)

    def ask(
        self, request: Request, body: Mapping[str, Any], kind: type[Asked]
    ) -> tuple[Asked, Iterator[dict[str, Any]]]:
        """Begins an answer: what was asked, and its lines as ``/api/chat`` or the like has them.

        The first line is made here, so that an error has a status; a later one is the last line.
        """
        asked = kind(body, self.library.find(body))
        keep = options.keep_alive(body.get("keep_alive"))
        if asked.empty:
            return asked, iter([self._load_only(request, asked, keep)])
        lines = self._lines(request, asked, keep)
        return asked, _rejoined(next(lines), lines)

    def _lines(
        self, request: Request, asked: Asked, keep: float | None
    ) -> Iterator[dict[str, Any]]:
        started = time.monotonic()
        begun = False

        def work(loaded: Loaded) -> Iterator[dict[str, Any]]:
            return asked.lines(loaded, request, started, embed.nanoseconds(started))

        try:
            with self._turn(request):
                for line in self.pool.work(asked.model, asked.window, keep, request.check, work):
                    yield line
                    begun = True
        except (RunnerFailed, JarvisError, HTTPError, Cancelled) as error:
            # Once the stream has begun its status is sent: the error becomes the last line.
            if not begun or not asked.streamed:
                raise
            if isinstance(error, Cancelled):
                if not request.cancelled.is_set():
                    raise
                yield {"error": PREEMPTED}
            elif isinstance(error, HTTPError):
                yield {"error": error.message}
            else:
                yield {"error": failure(error)[1]}

    def _load_only(self, request: Request, asked: Asked, keep: float | None) -> dict[str, Any]:
        """An empty prompt loads the model; with ``keep_alive`` 0 it unloads it."""
        if keep == 0:
            self.pool.unload(asked.model)
            return asked.loaded_line("unload")
        with self.pool.lease(asked.model, asked.window, keep, request.check):
            return asked.loaded_line("load")

    # The same in OpenAI's form

    def _chat_completions(self, request: Request) -> Response:
        return self._openai_answer(request, openai.ChatCompletion, answers.Chat)

    def _completions(self, request: Request) -> Response:
        return self._openai_answer(request, openai.TextCompletion, answers.Generate)

    def _openai_answer(
        self, request: Request, form: type[openai.Completion], kind: type[Asked]
    ) -> Response:
        completion = form(request.json())
        asked, lines = self.ask(request, completion.body, kind)
        if not asked.streamed:
            return json_response(completion.whole(asked.joined(lines)))
        return Response(lines=completion.chunks(lines), events=True)

    def _openai_embeddings(self, request: Request) -> Response:
        body = request.json()
        return json_response(openai.embeddings(body, self.vectors(request, body)))

    @contextmanager
    def _turn(self, request: Request) -> Iterator[None]:
        if request.headers.get(BACKGROUND_HEADER):
            with self.schedule.background(request):
                yield
        else:
            with self.schedule.foreground():
                yield

    # Vectors

    def embed(self, request: Request) -> Response:
        """``POST /api/embed``."""
        return json_response(self.vectors(request, request.json()))

    def vectors(self, request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of ``/api/embed`` to ``body``."""
        started = time.monotonic()
        model = self.library.find(body)
        texts, length = embed.inputs(body), embed.dimensions(body)
        truncate = options.flag(body, "truncate", default=True)
        opts = options.merged(model.parameters, body.get("options"))
        background = bool(request.headers.get(BACKGROUND_HEADER))

        def work(loaded: Loaded) -> dict[str, Any]:
            load = embed.nanoseconds(started)
            window = embed.window_of(opts, loaded)
            embedding = embed.Embedding(loaded, request, window, truncate=truncate)
            vectors: list[list[float]] = []
            groups = embedding.vectors(texts, embed.BACKGROUND_GROUP if background else embed.GROUP)
            for group in groups:
                vectors += [embed.shorten(vector, length) for vector in group]
                if background:
                    self.schedule.give_way(request.check)
            return {
                "model": _called(body),
                "embeddings": vectors,
                "total_duration": embed.nanoseconds(started),
                "load_duration": load,
                "prompt_eval_count": embedding.tokens,
            }

        return self._embedded(request, model, body, opts, work)

    def embeddings(self, request: Request) -> Response:
        """``POST /api/embeddings``, the older form: one prompt, one vector."""
        body = request.json()
        model = self.library.find(body)
        opts = options.merged(model.parameters, body.get("options"))
        texts = embed.inputs({"input": body.get("prompt")})

        def work(loaded: Loaded) -> dict[str, Any]:
            window = embed.window_of(opts, loaded)
            embedding = embed.Embedding(loaded, request, window, truncate=True)
            vectors = list(itertools.chain.from_iterable(embedding.vectors(texts, embed.GROUP)))
            return {"embedding": vectors[0] if vectors else []}

        return json_response(self._embedded(request, model, body, opts, work))

    def _embedded(
        self,
        request: Request,
        model: InstalledModel,
        body: Mapping[str, Any],
        opts: Mapping[str, Any],
        work: Callable[[Loaded], dict[str, Any]],
    ) -> dict[str, Any]:
        """What ``work`` makes of an embedding model."""
        if not show.header(model).is_embedding:
            raise HTTPError(400, f'"{_called(body)}" does not support embeddings')
        if request.headers.get(BACKGROUND_HEADER):
            self.schedule.give_way(request.check)
        keep = options.keep_alive(body.get("keep_alive"))
        window = options.num_ctx(opts)
        (answer,) = self.pool.work(
            model, window, keep, request.check, lambda loaded: iter([work(loaded)])
        )
        return answer


def _called(body: Mapping[str, Any]) -> str:
    """The model's name as the request has it."""
    return str(body.get("model") or body.get("name"))


def unserved(request: Request) -> Response:
    """What Ollama has and this engine has not: said, where a bare 404 would puzzle a client."""
    raise HTTPError(
        501, f"{request.path[:40]} is not served here; add models with: jarvis model import"
    )


def failure(error: RunnerFailed | JarvisError | HTTPError | Cancelled) -> tuple[int, str]:
    """Status and words of what went wrong with a model."""
    if isinstance(error, RunnerFailed):
        status = error.status if 400 <= error.status < 500 else 500
        return status, " ".join(str(error).split())
    if isinstance(error, ModelUnavailable):
        return 500, error.message
    if isinstance(error, JarvisError):
        return 400, error.message
    return 500, str(error)


def _rejoined(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Both; closing it closes the rest, which stops the work."""
    try:
        yield first
        yield from rest
    finally:
        with contextlib.suppress(Cancelled):
            rest.close()  # type: ignore[attr-defined]
