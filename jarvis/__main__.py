"""Where every command begins. ``--version`` is answered with the standard library alone."""

from __future__ import annotations

import sys

from jarvis import __version__


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Args:
        argv: the arguments without the program's name; default: this process's.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"jarvis {__version__}\n")
        return 0
    from jarvis.cli.run import run

    return run(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
