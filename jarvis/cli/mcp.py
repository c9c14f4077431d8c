"""``jarvis mcp``: memories and documents for other assistants."""

from __future__ import annotations

import typer

from jarvis.cli.state import state_of


def mcp(context: typer.Context) -> None:
    """Serve memories and documents to another assistant: an MCP server on stdio.

    In the client's configuration: command `jarvis`, arguments `mcp`.
    """
    from jarvis.services import mcp_server

    mcp_server.serve(state_of(context).app)
