"""Searching the web and reading a page."""

from __future__ import annotations

from jarvis.tools.protocol import Effect, ToolContext, WebPort, tool
from jarvis.tools.schema import ToolError

_MOST = 10


@tool(Effect.NETWORK)
def web_search(context: ToolContext, query: str, limit: int = 5) -> str:
    """Searches the web; gives titles, addresses and snippets.

    Args:
        query: what to search for
    """
    if not query.strip():
        raise ToolError("web_search: search for what?")
    results = _web(context).search(query.strip(), min(max(limit, 1), _MOST))
    if not results:
        return "the web search found nothing"
    return "\n\n".join(
        f"{number}. {result['title']}\n{result['url']}\n{result['snippet']}"
        for number, result in enumerate(results, 1)
    )


@tool(Effect.NETWORK)
def fetch_page(context: ToolContext, url: str) -> str:
    """Fetches one web page as text.

    Args:
        url: its full address
    """
    page = _web(context).page(url.strip())
    return f"{page.url}\n\n{page.text}" if page.text else f"{page.url} holds no text"


def _web(context: ToolContext) -> WebPort:
    if context.web is None:
        raise ToolError("the network is not available in this conversation")
    return context.web
