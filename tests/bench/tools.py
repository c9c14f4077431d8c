"""Every built-in tool, called by real models in real turns.

    python -m tests.bench.tools [--models NAME …] [--only TOOL …]

Runs one turn for each tool and model with the embedded engine, in a home of its own that holds a
few facts, a document and a file. The network tools talk over HTTP to a server of this process that
speaks the formats of Open-Meteo and DuckDuckGo. Prints what was called, what came of it, and
whether the answer holds what the tool said. Models are judged here, so this is no test: what must
always be true stands in tests/e2e/test_tools_model.py.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from jarvis import postgres
from jarvis.config import Config
from jarvis.engine import launcher
from jarvis.paths import Paths
from jarvis.services import memory, worker
from jarvis.services.app import App
from jarvis.services.document_files import Selection
from jarvis.services.documents import Documents
from jarvis.services.turns import Finished, TurnRequest, TurnResult
from jarvis.tools import network, weather
from jarvis.tools.policy import Reply

MODELS = ("qwen2.5-coder:0.5b", "qwen2.5-coder:1.5b")


@dataclass(frozen=True, slots=True)
class Case:
    """One question, the tool that it calls for, and a word of the right answer."""

    tool: str
    question: str
    answer: str


CASES = (
    Case("calculator", "What is 2847 × 391?", "1113177"),
    Case("datetime", "How many days are there between 2024-02-01 and 2024-03-01?", "29"),
    Case("recall", "Recall what you know about my bicycle.", "green"),
    Case("search_documents", "Search my documents: where is the spare propeller?", "locker"),
    Case("read_file", "Read the file notes.txt and tell me what it says.", "4711"),
    Case("remember", "Please remember that my dentist is called Larsen.", "Larsen"),
    Case("forget", "Forget memory 1.", "forg"),
    Case("weather", "What is the weather in Oslo?", "snow"),
    Case("web_search", "Search the web for ferry times.", "ferry"),
    Case("fetch_page", "Read http://127.0.0.1:{port}/page and tell me what it says.", "nine"),
)

PLACE = {"results": [{"name": "Oslo", "country": "Norway", "latitude": 59.9, "longitude": 10.7}]}
FORECAST = {
    "current": {"time": "2026-12-01T12:00", "temperature_2m": -3, "apparent_temperature": -7,
                "relative_humidity_2m": 80, "weather_code": 71, "wind_speed_10m": 9},
    "current_units": {"temperature_2m": "°C", "wind_speed_10m": "km/h"},
    "daily": {"time": ["2026-12-01"], "weather_code": [73], "temperature_2m_max": [-1],
              "temperature_2m_min": [-8], "precipitation_sum": [4]},
    "daily_units": {"temperature_2m_max": "°C", "precipitation_sum": "mm"},
}  # fmt: skip
PAGES = {
    "/search": ("application/json", json.dumps(PLACE)),
    "/forecast": ("application/json", json.dumps(FORECAST)),
    "/page": ("text/html", "<html><body><p>The ferry leaves at nine.</p></body></html>"),
    "/html/": (
        "text/html",
        "<html><body><div class='body'><h2><a>Ferry times</a></h2><a href='https://example.com'>"
        "The ferry leaves at nine.</a></div></body></html>",
    ),
}


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    def do_GET(self) -> None:
        """One page, or 404."""
        kind, text = PAGES.get(urlsplit(self.path).path, ("", ""))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        """The same; what was posted is of no interest."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@contextmanager
def internet() -> Iterator[int]:
    """A server for the network tools; yields its port."""
    from ddgs.engines.duckduckgo import Duckduckgo

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        port = http.server_address[1]
        threading.Thread(target=http.serve_forever, daemon=True).start()
        weather.GEOCODING = f"http://127.0.0.1:{port}/search"
        weather.FORECAST = f"http://127.0.0.1:{port}/forecast"
        Duckduckgo.search_url = f"http://127.0.0.1:{port}/html/"
        network.Web = functools.partial(network.Web, public_only=False)  # type: ignore[misc, assignment]
        yield port
        http.shutdown()


class Idle(App):
    """Services whose worker works only when told to."""

    def wake_worker(self) -> None:
        """Not now."""


def turn(app: App, question: str) -> TurnResult:
    """One turn of a new session, with a user who says yes to everything."""
    request = TurnRequest(question, memory=False, confirm=lambda _: Reply.YES)
    for event in app.assistant.turn(request):
        if isinstance(event, Finished):
            return event.result
    raise AssertionError("a turn without an end")


def fill(app: App, folder: Path) -> None:
    """Facts, a document and a file."""
    memory.add(
        app,
        [
            memory.describe(fact)
            for fact in ("My cousin lives in Malmö", "My bicycle is green and has a wooden basket")
        ],
    )
    (folder / "notes.txt").write_text("The number of the garage is 4711.\n")
    boat = folder / "boat.md"
    boat.write_text("# The boat\n\nThe spare propeller is in the red locker below deck.\n")
    list(Documents(app).ingest(list(Selection().files([boat]))))
    worker.run(app, linger=0.0)


def measure(app_of: Callable[[str], App], models: list[str], only: list[str], port: int) -> int:
    """Runs all cases and prints a line each; returns how many missed."""
    missed = 0
    for model in models:
        app = app_of(model)
        for case in CASES:
            if only and case.tool not in only:
                continue
            result = turn(app, case.question.format(port=port))
            ran = [call["name"] for call in result.tools if not call["error"]]
            called = case.tool in ran
            plain = result.answer.replace(",", "").replace(" ", "").casefold()
            said = case.answer.casefold().replace(" ", "") in plain
            missed += not (called and said)
            errors = [f"{call['name']}: {call['error']}" for call in result.tools if call["error"]]
            print(
                f"{model:20} {case.tool:17} called {'yes' if called else 'NO':4}"
                f"answered {'yes' if said else 'NO':4}{'; '.join(errors)[:90]}",
                flush=True,
            )
            if not (called and said):
                print(f"    {result.answer[:200]!r}", flush=True)
    return missed


def main() -> None:
    """Runs and prints; exits 0, since what a model does is a figure and no failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    models = Paths.from_environment().models
    with tempfile.TemporaryDirectory(prefix="jb", ignore_cleanup_errors=True) as home:
        paths = Paths.from_environment({"JARVIS_HOME": home, "JARVIS_MODELS": str(models)})
        folder = Path(home, "files")
        folder.mkdir()
        base = Config()
        config = replace(
            base,
            user="bench",
            chat=replace(base.chat, temperature=0),
            tools=replace(base.tools, folders=[str(folder)]),
        )
        apps: dict[str, App] = {}

        def app_of(model: str) -> App:
            made = replace(config, chat=replace(config.chat, model=model))
            return apps.setdefault(model, Idle(made, paths))

        try:
            fill(app_of(options.models[0]), folder)
            with internet() as port:
                missed = measure(app_of, options.models, options.only, port)
            print(f"missed: {missed}")
        finally:
            for app in apps.values():
                app.close()
            launcher.stop(paths)
            postgres.remove(paths)


if __name__ == "__main__":
    main()
