"""``python -m jarvis.engine serve``: what a started engine really runs, without the whole CLI."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from jarvis import config
from jarvis.config import Config, EngineSettings, LogSettings
from jarvis.engine import server
from jarvis.errors import JarvisError
from jarvis.paths import Paths


def main(arguments: list[str] | None = None) -> int:
    """Serves as the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jarvis.engine")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="run the engine in this process")
    serve.add_argument("--spec", default="", help="paths and settings of who starts it, as JSON")
    serve.add_argument("--host", default="", help="listen on this TCP address too")
    serve.add_argument("--port", type=int, default=11434)
    given = parser.parse_args(arguments)
    try:
        paths, settings = _settings(given.spec)
        return server.serve(
            paths, settings, host=given.host, port=given.port, foreground=not given.spec
        )
    except JarvisError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return int(error.exit_code)


def _settings(spec: str) -> tuple[Paths, Config]:
    """What the launcher handed over; without it, the usual files and variables."""
    if not spec:
        paths = Paths.from_environment()
        return paths, config.load(paths.config_file)
    given = json.loads(spec)
    paths = Paths(**{name: Path(text) for name, text in given["paths"].items()})
    if "engine" not in given:
        return paths, config.load(paths.config_file)
    return paths, Config(
        engine=EngineSettings(**given["engine"]), log=LogSettings(level=given["log"])
    )


if __name__ == "__main__":
    sys.exit(main())
