"""The user's memories and documents, as tools. The work is done by the ports."""

from __future__ import annotations

from jarvis.errors import NotFound
from jarvis.tools.protocol import DocumentPort, Effect, MemoryPort, ToolContext, tool
from jarvis.tools.schema import ToolError

_MOST = 20


@tool(Effect.READS)
def recall(context: ToolContext, query: str, limit: int = 5) -> str:
    """Searches what is remembered about the user.

    Args:
        query: what to look for
    """
    hits = _memories(context).recall(query, _bounded(limit))
    if not hits:
        return "nothing is remembered about that"
    return "\n".join(
        f"{hit.memory.id}: {hit.memory.content} ({hit.memory.created_at.date().isoformat()})"
        for hit in hits
    )


@tool(Effect.READS)
def search_documents(context: ToolContext, query: str, limit: int = 4) -> str:
    """Searches the user's documents; cite what is found as [name, p. N].

    Args:
        query: what to look for
    """
    hits = _documents(context).search(query, _bounded(limit))
    if not hits:
        return "no document says anything about that"
    found = []
    for hit in hits:
        page = f", p. {hit.page_label or hit.page}" if hit.page is not None else ""
        found.append(f"[{hit.document}{page}]\n{hit.content}")
    return "\n\n".join(found)


@tool(Effect.WRITES)
def remember(context: ToolContext, content: str) -> str:
    """Remembers a fact about the user, when they ask for it.

    Args:
        content: one short sentence, in the user's words
    """
    memory = _memories(context).remember(content)
    if memory.state != "active":
        return f"held for the user's review as {memory.id}: {memory.held_reason or 'unclear'}"
    return f"remembered as {memory.id}: {memory.content}"


@tool(Effect.WRITES)
def forget(context: ToolContext, memory_id: int) -> str:
    """Forgets one remembered fact, when the user asks for it.

    Args:
        memory_id: the number that recall shows
    """
    try:
        memory = _memories(context).forget(memory_id)
    except NotFound as error:
        raise ToolError(error.message) from error
    return f"forgotten: {memory.content}"


def _bounded(limit: int) -> int:
    return min(max(limit, 1), _MOST)


def _memories(context: ToolContext) -> MemoryPort:
    if context.memories is None:
        raise ToolError("the memory is not available in this conversation")
    return context.memories


def _documents(context: ToolContext) -> DocumentPort:
    if context.documents is None:
        raise ToolError("documents are not available in this conversation")
    return context.documents
