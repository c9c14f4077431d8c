"""The routes about models: which are here, which are loaded, fetched, copied, deleted."""

from __future__ import annotations

import logging
import queue
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from jarvis.config import Config
from jarvis.engine import catalogue, openai, options, pull, show, store
from jarvis.engine.download import Stopped
from jarvis.engine.pool import Pool
from jarvis.engine.request import HTTPError, Request, Response, error_response, json_response
from jarvis.engine.store import InstalledModel
from jarvis.errors import JarvisError, UsageError
from jarvis.paths import Paths

log = logging.getLogger("jarvis.engine")


class Library:
    """The models of one server."""

    def __init__(self, paths: Paths, config: Config, pool: Pool) -> None:
        self.paths, self.config, self.pool = paths, config, pool

    def tags(self, _: Request) -> Response:
        """The installed models, newest first."""
        models = sorted(store.installed(self.paths), key=lambda each: each.modified_at)
        return json_response({"models": [show.listed(each) for each in reversed(models)]})

    def ps(self, _: Request) -> Response:
        """The loaded models, those that stay longest first."""
        models = [show.running(each) for each in self.pool.loaded()]
        models.sort(key=lambda each: str(each["expires_at"]), reverse=True)
        return json_response({"models": models})

    def show(self, request: Request) -> Response:
        """All that is known of one model."""
        body = request.json()
        verbose = options.flag(body, "verbose", default=False)
        return json_response(
            show.details(self.paths, self.config, self.find(body), verbose=verbose)
        )

    def pull(self, request: Request) -> Response:
        """``POST /api/pull``: NDJSON of the progress."""
        body = request.json()
        name = _name(body, "model", "name")
        lines = self._pull_lines(request, name)
        if not options.flag(body, "stream", default=True):
            last: dict[str, Any] = {}
            for last in lines:
                if "error" in last:
                    return error_response(500, last["error"])
            return json_response(last)
        return Response(lines=lines)

    def _pull_lines(self, request: Request, name: str) -> Iterator[dict[str, Any]]:
        """Runs the pull on a thread of its own; what it reports comes through a queue."""
        reports: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        abandoned = threading.Event()

        def report(progress: pull.PullProgress) -> None:
            line: dict[str, Any] = {"status": progress.status}
            if progress.total:
                line |= {"digest": progress.digest, "total": progress.total}
                line["completed"] = progress.completed
            reports.put(line)

        def work() -> None:
            try:
                pull.pull(self.paths, self.config, name, report, abandoned.is_set)
                reports.put({"status": "success"})
            except Stopped:
                pass
            except JarvisError as error:
                reports.put({"error": f"pull model manifest: {error.message}"})
            except Exception:
                log.exception("pulling %s failed", name)
                reports.put({"error": "internal error; see the engine's log"})
            reports.put(None)

        yield {"status": "pulling manifest"}
        thread = threading.Thread(target=work, name="pull", daemon=True)
        thread.start()
        previous = None
        try:
            while True:
                try:
                    line = reports.get(timeout=0.5)
                except queue.Empty:
                    request.check()
                    continue
                if line is None:
                    return
                if line != previous:
                    yield line
                previous = line
        finally:
            abandoned.set()
            thread.join()

    def delete(self, request: Request) -> Response:
        """``DELETE /api/delete``."""
        model = self.find(request.json())
        try:
            store.remove(self.paths, model.name)
        except UsageError as error:
            raise HTTPError(403, error.message) from error
        self.pool.unload(model)
        return Response(200)

    def copy(self, request: Request) -> Response:
        """``POST /api/copy``: another name for the same file."""
        body = request.json()
        source = self.find({"model": body.get("source")})
        try:
            store.copy(self.paths, source, _name(body, "destination"))
        except UsageError as error:
            raise HTTPError(400, error.message) from error
        return Response(200)

    def openai_models(self, _: Request) -> Response:
        """``GET /v1/models``."""
        models = [openai.model(each) for each in store.installed(self.paths)]
        return json_response({"object": "list", "data": models})

    def openai_model(self, request: Request) -> Response:
        """``GET /v1/models/NAME``."""
        name = urllib.parse.unquote(request.path.removeprefix("/v1/models/"))
        return json_response(openai.model(self.find({"model": name})))

    def find(self, body: Mapping[str, Any]) -> InstalledModel:
        """The model that a request names.

        Raises:
            HTTPError: 400, it names none; 404, it is not here.
        """
        name = _name(body, "model", "name")
        found = store.find(self.paths, name)
        if found is None:
            hint = catalogue.find(name)
            more = f", try pulling it first: {hint.name}" if hint else ""
            raise HTTPError(404, f"model '{name[:200]}' not found{more}")
        return found


def _name(body: Mapping[str, Any], *keys: str) -> str:
    """The model's name in the first of the fields that has one."""
    name = next((body[key] for key in keys if body.get(key)), "")
    if not isinstance(name, str) or not name:
        raise HTTPError(400, f"{keys[0]} is required")
    try:
        store.full_name(name)
    except UsageError:
        raise HTTPError(400, "invalid model name") from None
    return name
