"""``python -m jarvis.engine serve``: what a started engine really runs, without the whole CLI."""

from __future__ import annotations

import argparse
import sys

from jarvis import config
from jarvis.engine import server
from jarvis.errors import JarvisError
from jarvis.paths import Paths


def main(arguments: list[str] | None = None) -> int:
    """Serves as the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jarvis.engine")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve")
    serve.add_argument("--detached", action="store_true", help="log to the file only")
    serve.add_argument("--host", default="")
    serve.add_argument("--port", type=int, default=11434)
    serve.add_argument("--idle-minutes", type=float, default=None)
    serve.add_argument("--config", default="")
    given = parser.parse_args(arguments)
    try:
        paths = Paths.from_environment()
        settings = config.load(paths.config_file)
        return server.serve(
            paths,
            settings,
            host=given.host,
            port=given.port,
            idle_minutes=given.idle_minutes,
            foreground=not given.detached,
        )
    except JarvisError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"{error.hint}\n")
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
