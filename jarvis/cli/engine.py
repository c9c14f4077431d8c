"""``jarvis engine``: the embedded model server."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)


@app.command()
def start(context: typer.Context) -> None:
    """Starts the engine where none runs; every command that needs it does so by itself."""
    from jarvis.services import engine

    state = state_of(context)
    found = engine.start(state.paths, state.config, state.progress)
    output.note(f"the engine runs (pid {found.pid})")


@app.command()
def stop(context: typer.Context) -> None:
    """Stops the engine; answers that are being written are finished first."""
    from jarvis.services import engine

    stopped = engine.stop(state_of(context).paths)
    output.note("stopped" if stopped else "it did not run")


@app.command()
def status(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Whether it runs, which models are loaded, their memory and requests; starts nothing."""
    from jarvis.services import engine

    found = engine.status(state_of(context).paths)
    models = [_model(each) for each in found.models]
    if json:
        output.emit_object(replace(found, models=tuple(models)), json=True)
        return
    shown: dict[str, Any] = {"running": found.running, "socket": found.socket}
    if found.running:
        shown |= {
            "pid": found.pid,
            "version": found.version,
            "address": found.address or "its socket only",
            "memory": _mebibytes(found.memory),
            "uptime": f"{found.uptime_ms / 1000:.0f} s",
            "requests": found.requests,
        }
    for model in models:
        shown[model["name"]] = (
            f"{_mebibytes(model['memory_bytes'])}, window {model['context_length']}, "
            f"{model['requests']} running, until {model['expires_at']}"
        )
    output.emit_object(shown, json=False)


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", help="Listen on this address too, as an Ollama for others.")
    ] = "",
    port: Annotated[int, typer.Option("--port", help="Port for --host.")] = 11434,
    idle_minutes: Annotated[
        float, typer.Option("--idle-minutes", help="Leave when unused for so long; 0: never.")
    ] = 0,
) -> None:
    """Runs the engine in this terminal until Ctrl-C.

    Without --host it listens on its socket only. With it, programs made for Ollama can use it:
    OLLAMA_HOST=127.0.0.1:11434.
    """
    from jarvis.services import engine

    state = state_of(context)
    code = engine.serve(
        state.paths,
        state.config,
        host=host,
        port=port,
        idle_minutes=idle_minutes,
        warn=output.warn,
    )
    raise typer.Exit(code)


def _model(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "memory_bytes": entry["size"],
        "context_length": entry["context_length"],
        "requests": entry.get("requests", 0),
        "expires_at": entry["expires_at"],
    }


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
