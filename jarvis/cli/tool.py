"""``jarvis tool``: what the model may call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of
from jarvis.errors import UsageError

if TYPE_CHECKING:
    from jarvis.tools import Effect

app = typer.Typer(no_args_is_help=True)

COLUMNS = ("name", "effect", "policy", "source", "description")


@app.command("list")
def list_(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="NDJSON, every field.")] = False,
) -> None:
    """All tools: what each does, its effect, and whether it may run."""
    from jarvis.services import toolbox

    rows, problems = toolbox.rows(state_of(context).app)
    for problem in problems:
        output.warn(problem)
    output.emit_records(rows, json=json, columns=COLUMNS)


@app.command()
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="NAME=VALUE …, one JSON object, or the first parameter's value."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Call a tool by hand: `jarvis tool run calculator "2847 * 391"`."""
    from jarvis.services import toolbox

    result = toolbox.run(state_of(context).app, name, toolbox.parse_arguments(arguments or []))
    if json:
        output.emit_object({"name": name, "result": result}, json=True)
    else:
        output.emit_text(result)


@app.command()
def allow(
    context: typer.Context,
    effect: Annotated[str, typer.Argument(help="reads, writes or network.")],
) -> None:
    """Let tools of a kind run without asking, from now on."""
    from jarvis.services import toolbox

    state = state_of(context)
    kind = _effect(effect)
    toolbox.consents(state.app).allow(kind)
    output.note(f"{kind} tools run without asking; jarvis tool revoke {kind} takes it back")
    if toolbox.policy(state.app).standing(kind) != "allow":
        output.warn(f"the configuration still says tools.{kind} = deny")


@app.command()
def revoke(
    context: typer.Context,
    effect: Annotated[str, typer.Argument(help="reads, writes or network.")],
) -> None:
    """Ask again before tools of a kind run."""
    from jarvis.services import toolbox

    kind = _effect(effect)
    toolbox.consents(state_of(context).app).revoke(kind)
    output.note(f"{kind} tools follow the configuration again")


def _effect(name: str) -> Effect:
    from jarvis.tools import Effect

    try:
        return Effect(name.lower())
    except ValueError:
        kinds = ", ".join(Effect)
        raise UsageError(f"there is no kind of tool {name!r}", f"one of: {kinds}") from None
