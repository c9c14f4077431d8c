"""The user's memories and documents, as tools. The work is done by the ports."""

from __future__ import annotations

from jarvis.errors import NotFound
from jarvis.tools.protocol import DocumentPort, Effect, MemoryPort, ToolContext, tool
from jarvis.tools.schema import ToolError

FACTS = 8
"""Memories that one call returns at most."""
PASSAGES = 4
"""Passages that one call returns at most."""


@tool(Effect.READS, when=r"\brecall|\bmemor|\bdo you (?:know|remember)\b")
def recall(context: ToolContext, query: str) -> str:
    """Searches what is remembered about the user. Use it; never guess a fact about them."""
    hits = _memories(context).recall(query, FACTS)
    if not hits:
        return "nothing is remembered about that"
    return "\n".join(
        f"{hit.memory.id}: {hit.memory.content} ({hit.memory.created_at.date().isoformat()})"
        for hit in hits
    )


@tool(
    Effect.READS,
    when=r"\b(?:document|pdf|file|report|paper|manual|contract|invoice|clause)s?\b",
)
def search_documents(context: ToolContext, query: str) -> str:
    """Searches the user's documents."""
    documents = _documents(context)
    hits = documents.search(query, PASSAGES)
    if not hits:
        return "no document says anything about that"
    return "\n\n".join(documents.excerpt(hit) for hit in hits)


@tool(
    Effect.WRITES,
    when=r"\bremember (?:that|this|my|i\b)|\bremember:|keep in mind|don't forget"
    r"|(?:take|make) a note|note (?:that|down)",
)
def remember(context: ToolContext, content: str) -> str:
    """Remembers a fact when the user asks for it.

    Args:
        content: one short sentence in the user's words
    """
    memory = _memories(context).remember(content)
    if memory.state != "active":
        return f"held for the user's review as {memory.id}: {memory.held_reason or 'unclear'}"
    return f"remembered as {memory.id}: {memory.content}"


@tool(Effect.WRITES, when=r"(?<!don't )(?<!not )(?<!\bi )(?<!\bto )(?<!always )\bforget\b")
def forget(context: ToolContext, memory_id: int) -> str:
    """Forgets a fact when the user asks for it.

    Args:
        memory_id: its number, from recall
    """
    try:
        memory = _memories(context).forget(memory_id)
    except NotFound as error:
        raise ToolError(error.message) from error
    return f"memory {memory_id} is forgotten; it said: {memory.content}"


def _memories(context: ToolContext) -> MemoryPort:
    if context.memories is None:
        raise ToolError("the memory is not available in this conversation")
    return context.memories


def _documents(context: ToolContext) -> DocumentPort:
    if context.documents is None:
        raise ToolError("documents are not available in this conversation")
    return context.documents
