"""Which tools a small model sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from jarvis.services.tool_choice import by_need
from jarvis.tools.registry import Registry


def names(words: str) -> set[str]:
    return {tool.name for tool in by_need(Registry.load(Path("/nonexistent")), words)}


@pytest.mark.parametrize(
    "words",
    [
        "hi",
        "My name is Dana and I live in Kathmandu.",
        "I am building a note-taking app in Rust.",
        "What is the capital of France?",
        "Which city do I live in?",
        "Tell me a joke about penguins.",
    ],
)
def test_talk_offers_no_tool(words: str) -> None:
    assert names(words) == set()


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("What is 2847 × 391?", "calculator"),
        ("what's 15% of 80", "calculator"),
        ("How many days until Christmas?", "datetime"),
        ("What time is it in Tokyo?", "datetime"),
        ("What is the weather in Oslo?", "weather"),
        ("Search the web for pgvector", "web_search"),
        ("Summarise https://example.org/a", "fetch_page"),
        ("Remember that I am allergic to nuts", "remember"),
        ("Forget my old address", "forget"),
        ("What does my contract say about notice?", "search_documents"),
        ("Read notes.txt for me", "read_file"),
    ],
)
def test_a_message_that_asks_for_a_tool_gets_it(words: str, tool: str) -> None:
    assert tool in names(words)
