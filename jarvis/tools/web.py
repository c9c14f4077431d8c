"""Searching the web and reading a page."""

from __future__ import annotations

from jarvis.tools.protocol import Effect, ToolContext, WebPort, tool
from jarvis.tools.schema import ToolError

RESULTS = 5
"""Results that one search returns at most."""


@tool(
    Effect.NETWORK,
    when=r"\b(?:search (?:the|for|online)|google|look (?:it |this |that )?up|web|internet|online"
    r"|news|latest)\b",
)
def web_search(context: ToolContext, query: str) -> str:
    """Searches the web."""
    if not query.strip():
        raise ToolError("web_search: search for what?")
    results = _web(context).search(query.strip(), RESULTS)
    if not results:
        # The search engine refuses with an empty page: the two cannot be told apart.
        return "the web search returned nothing: no results, or the search engine refused"
    return "\n\n".join(
        f"{number}. {result['title']}\n{result['url']}\n{result['snippet']}"
        for number, result in enumerate(results, 1)
    )


@tool(Effect.NETWORK, when=r"https?://|\bwww\.|\b[\w-]+\.(?:com|org|net|io|dev|edu|gov)\b")
def fetch_page(context: ToolContext, url: str) -> str:
    """Reads one web page."""
    page = _web(context).page(url.strip())
    return f"{page.url}\n\n{page.text}" if page.text else f"{page.url} holds no text"


def _web(context: ToolContext) -> WebPort:
    if context.web is None:
        raise ToolError("the network is not available in this conversation")
    return context.web
