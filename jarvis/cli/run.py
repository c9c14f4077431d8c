"""Runs one command: the only place that prints an error and chooses an exit code."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence

from jarvis.cli.arguments import Arguments, split_globals
from jarvis.errors import ExitCode, Interrupted, JarvisError, UsageError

HELP_WIDTH = 80
"""Columns of the help where no terminal says how wide it is."""


def run(argv: Sequence[str]) -> int:
    """Runs the command line and returns the exit code."""
    from jarvis.cli import output

    output.prepare_streams()
    arguments = split_globals(argv)
    debug = arguments.debug or bool(os.environ.get("JARVIS_DEBUG"))
    try:
        return int(_dispatch(arguments, debug))
    except BrokenPipeError:
        output.leave_quietly()
    except (KeyboardInterrupt, Interrupted):
        return int(ExitCode.INTERRUPTED)
    except JarvisError as error:
        if debug:
            _traceback()
        output.print_error(error)
        return int(error.exit_code)
    except Exception as error:  # noqa: BLE001 -- the last place that can say it in one line
        if debug:
            _traceback()
        else:
            _log(error)
        output.print_error(
            JarvisError(
                f"unexpected {type(error).__name__}: {error}",
                "run it again with --debug, and report what it shows",
            )
        )
        return int(ExitCode.FAILED)


def _dispatch(arguments: Arguments, debug: bool) -> int:
    from jarvis import __version__
    from jarvis.cli import app as tree
    from jarvis.cli import output
    from jarvis.cli.arguments import protect_free_text
    from jarvis.cli.state import State

    if arguments.version:
        output.emit_text(f"jarvis {__version__}")
        return ExitCode.OK
    if arguments.missing_value:
        raise UsageError(f"{arguments.missing_value} needs a value", "jarvis --help")
    rest = list(arguments.rest)
    command = arguments.command
    if not rest:
        command = "chat" if sys.stdin.isatty() and sys.stdout.isatty() else None
        rest = [command] if command else ["--help"]
    if command is not None and command not in tree.ENTRIES:
        near = difflib.get_close_matches(command, tree.ENTRIES, n=1)
        hint = f"did you mean {near[0]}?" if near else "jarvis --help lists the commands"
        raise UsageError(f"there is no command {command!r}", hint)

    import typer
    import typer.main
    from typer._click import exceptions as click_errors

    root = typer.main.get_command(tree.build(command))
    state = State(
        user=arguments.user,
        config_file=arguments.config_file,
        debug=debug,
        progress=output.note,
    )
    try:
        result = root.main(
            args=protect_free_text(root, rest),
            prog_name="jarvis",
            standalone_mode=False,
            terminal_width=output.stdout().width or HELP_WIDTH,
            obj=state,
        )
        return int(result) if isinstance(result, int) else int(ExitCode.OK)
    except click_errors.NoArgsIsHelpError as error:
        output.emit_text(error.format_message())
        return ExitCode.USAGE
    except click_errors.UsageError as error:
        where = error.ctx.command_path if error.ctx else "jarvis"
        raise UsageError(error.format_message(), f"{where} --help") from error
    except click_errors.ClickException as error:
        raise UsageError(error.format_message()) from error
    except typer.Abort:
        raise Interrupted("interrupted") from None
    finally:
        state.close()


def _traceback() -> None:
    import traceback

    traceback.print_exc()


def _log(error: BaseException) -> None:
    from jarvis import log

    log.get("cli").error("unexpected %s", type(error).__name__, exc_info=error)
