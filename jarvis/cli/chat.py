"""``jarvis chat``: the REPL on a terminal, a scripted chat when stdin is piped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.progress import Progress
from jarvis.cli.state import State, state_of
from jarvis.errors import JarvisError


def chat(
    context: typer.Context,
    continue_: Annotated[
        bool, typer.Option("-c", "--continue", help="Go on with your latest session.")
    ] = False,
    session: Annotated[int | None, typer.Option("--session", help="Go on with this one.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new session (the default).")] = False,
    model: Annotated[str, typer.Option("--model", help="Another chat model.")] = "",
    system: Annotated[str, typer.Option("--system", help="A persona: its name or text.")] = "",
    private: Annotated[bool, typer.Option("--private", help="Store nothing.")] = False,
    tools: Annotated[bool, typer.Option("--tools/--no-tools", help="Offer tools.")] = True,
) -> None:
    """Talk. On a terminal an interactive chat; with piped stdin one turn a line.

    `printf 'hello\\nwhat is 2+2?\\n' | jarvis chat` prints one answer a line.
    """
    from jarvis.cli.ask import session_to_use

    state = state_of(context)
    session_id = None if new else session_to_use(state, session, continue_)
    if output.is_terminal(sys.stdin) and output.is_terminal(sys.stdout):
        from jarvis import repl

        repl.run(
            state,
            session_id=session_id,
            model=model,
            system=system,
            private=private,
            tools=tools,
        )
        return
    scripted(state, session_id=session_id, model=model, system=system, private=private, tools=tools)


def scripted(
    state: State,
    *,
    session_id: int | None,
    model: str,
    system: str,
    private: bool,
    tools: bool,
) -> None:
    """One turn a line of stdin, an answer a line on stdout.

    An error ends the chat, as it would end a script; at the end it waits for the worker, so that
    the next process finds what was said.
    """
    from jarvis.cli.ask import run_turn
    from jarvis.services.prompt import PastTurn
    from jarvis.services.turns import TurnRequest

    history: list[PastTurn] = []
    for number, line in enumerate(_lines(), 1):
        try:
            result = run_turn(
                state,
                TurnRequest(
                    text=line,
                    session_id=session_id,
                    model=model,
                    system=system,
                    private=private,
                    tools=tools,
                    history=tuple(history),
                ),
                live=False,
            )
        except JarvisError as error:
            error.message = f"line {number}: {error.message}"
            raise
        session_id = result.session_id
        history.append(PastTurn(line, result.answer))
        output.emit_records([{"answer": result.answer}], json=False)
    if not private:
        _settle(state)


def _lines() -> Iterator[str]:
    if sys.stdin is None:
        return
    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "replace").strip()
        if line:
            yield line


def _settle(state: State) -> None:
    """Waits until everything that was said has been read for facts."""
    from jarvis.services import worker

    with Progress("remembering") as progress:
        left = worker.drain(
            state.app, on_progress=lambda count: progress.update(f"remembering ({count} to go)")
        )
    if left:
        output.note(
            f"{left} pieces of background work are not done yet; jarvis worker status shows them"
        )
