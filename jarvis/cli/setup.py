"""``jarvis setup``: a few questions, then everything is ready. Without a person: no questions."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import State, state_of

if TYPE_CHECKING:
    from jarvis.services.setup import Plan


def setup(
    context: typer.Context,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Ask nothing, take what is proposed.")
    ] = False,
    model: Annotated[str, typer.Option("--model", help="The chat model to use.")] = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object a step.")] = False,
) -> None:
    """Makes the database and the models ready, after a few questions.

    Where stdin is no terminal nothing is asked and what is proposed is taken.
    """
    from jarvis.services import setup as service

    state = state_of(context)
    ask = not yes and output.is_terminal(sys.stdin) and output.is_terminal(sys.stderr)
    if model:
        service.choose(state.app, "chat.model", model)
    elif ask:
        _questions(state)
    fresh = _fresh(state)
    with contextlib.closing(fresh):
        for step in service.prepare(fresh.app):
            output.emit_records([step], json=json, columns=["name", "detail"])
    output.note(f"ready: jarvis{_completion_hint()}")


def _questions(state: State) -> None:
    """The wizard: Enter takes what stands in brackets."""
    from jarvis.services import setup as service

    for plan in service.plans(state.app):
        output.note(_describe(plan))
    chat = next(plan for plan in service.plans(state.app) if plan.kind == "chat")
    model = _ask(f"chat model [{chat.model}]")
    if model and model != chat.model:
        service.choose(state.app, "chat.model", model)
    remember = "yes" if state.config.memory.extract else "no"
    answer = _ask(f"find facts about you in what you say, on this machine [{remember}]").lower()
    if answer in {"y", "yes", "n", "no"}:
        service.choose(state.app, "memory.extract", "true" if answer[0] == "y" else "false")


def _describe(plan: Plan) -> str:
    if plan.problem:
        return f"{plan.kind}: {plan.problem}"
    there = "installed" if plan.installed else "to be downloaded once"
    return f"{plan.kind}: {plan.model} with {plan.where} ({there}): {plan.reason}"


def _ask(question: str) -> str:
    output.stderr().write(f"{question}: ")
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        output.stderr().write("\n")
    return answer.strip()


def _fresh(state: State) -> State:
    """The state with the settings as they are now."""
    return State(
        user=state.user,
        config_file=state.config_file,
        debug=state.debug,
        progress=state.progress,
    )


def _completion_hint() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    from jarvis.cli.completion import SHELLS

    return f"; for Tab: jarvis completion {shell} --help" if shell in SHELLS else ""
