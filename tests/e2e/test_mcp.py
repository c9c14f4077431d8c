"""``jarvis mcp``, driven by the client of the official SDK over stdio."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from tests.conftest import Cli

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def talk(cli: Cli, conversation: Callable[[Client], Awaitable[Any]]) -> Any:
    """Runs ``conversation`` with a client of a server process of its own."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "jarvis", "mcp"], env=dict(cli.environment)
    )

    async def main() -> Any:
        async with Client(server) as client:
            return await conversation(client)

    with anyio.from_thread.start_blocking_portal() as portal:
        return portal.call(main)


def text(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def test_it_offers_its_tools_with_schemas(cli: Cli) -> None:
    async def look(client: Client) -> dict[str, Any]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = talk(cli, look)
    assert set(tools) == {
        "remember",
        "recall",
        "forget",
        "list_memories",
        "search_documents",
        "ingest_document",
    }
    assert tools["remember"].input_schema["required"] == ["content"]
    assert all(tool.description for tool in tools.values())
    assert tools["forget"].annotations.destructive_hint
    assert tools["recall"].annotations.read_only_hint


def test_remember_recall_list_forget(cli: Cli) -> None:
    async def use(client: Client) -> None:
        stored = await client.call_tool("remember", {"content": "I keep bees on the roof"})
        assert not stored.is_error
        assert stored.structured_content is not None
        number = stored.structured_content["id"]
        again = await client.call_tool("remember", {"content": "I keep bees on the roof"})
        assert again.structured_content is not None
        assert again.structured_content["id"] == number
        assert "bees" in text(await client.call_tool("recall", {"query": "bees"}))
        listed = text(await client.call_tool("list_memories", {}))
        assert listed.count("bees") == 1
        assert "---BEGIN USER FACTS---" in listed
        gone = await client.call_tool("forget", {"memory_id": number})
        assert not gone.is_error
        assert "bees" not in text(await client.call_tool("list_memories", {}))

    talk(cli, use)
    # What one process forgot, another does not find.
    assert "bees" not in cli("memory", "list").stdout


def test_errors_are_results_and_the_server_goes_on(cli: Cli) -> None:
    async def use(client: Client) -> None:
        unknown = await client.call_tool("forget", {"memory_id": 4711})
        assert unknown.is_error
        assert "4711" in text(unknown)
        wrong = await client.call_tool("remember", {"content": "  "})
        assert wrong.is_error
        missing = await client.call_tool("ingest_document", {"path": "relative.txt"})
        assert missing.is_error
        assert not (await client.call_tool("list_memories", {})).is_error

    talk(cli, use)


def test_a_secret_is_held(cli: Cli) -> None:
    async def use(client: Client) -> None:
        key = "sk-proj-" + "a8F3kL9" * 6
        held = await client.call_tool("remember", {"content": f"my API key is {key}"})
        assert held.structured_content is not None
        assert held.structured_content["state"] == "held"
        assert key not in text(await client.call_tool("list_memories", {}))

    talk(cli, use)


def test_documents(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "boat.md"
    file.write_text("# The boat\n\nThe spare propeller is in the red locker below deck.\n")

    async def use(client: Client) -> None:
        taken = await client.call_tool("ingest_document", {"path": str(file)})
        assert taken.structured_content is not None
        assert taken.structured_content["files"][0]["status"] == "added"
        found = text(await client.call_tool("search_documents", {"query": "spare propeller"}))
        assert "red locker" in found
        assert "boat.md" in found
        nothing = text(await client.call_tool("search_documents", {"query": "xylophone"}))
        assert "red locker" not in nothing

    talk(cli, use)
