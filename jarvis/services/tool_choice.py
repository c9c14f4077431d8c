"""Which tools a small model is offered: those that the message shows a need for.

A model of a few billion parameters or less, offered ten tools, calls one for "hello" (tried with
0.5 billion: a calculator for two names), and on a small machine their definitions are seconds
of reading. So such a model sees a tool only where the user's own words ask for what it does. A
larger one chooses for itself, and always sees the same tools, which keeps its prompt cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jarvis.tools import Tool

SMALL = 4_000_000_000
"""Parameters below which a model is offered tools by need."""

_CUES: dict[str, str] = {
    "calculator": r"\d\s*[-+*/×÷^%x]\s*\d|\b(calculate|compute|multipl\w+|divid\w+|percent\w*|"
    r"square root|sqrt|factorial|sum of|times \d|plus \d|minus \d)\b|\d.*%|\d+ (times|plus|minus) ",
    "datetime": r"\b(what (day|date|time|year)|which (day|date)|time in|time is it|how (many|long) "
    r"\w*\s*(days|weeks|months|years|hours|until|till|since)|days? (until|till|since|between|from)|"
    r"time ?zones?|weekday|leap year|calendar)\b",
    "weather": r"\b(weather|forecast|temperature|rain\w*|snow\w*|sunny|wind\w*|umbrella)\b",
    "web_search": r"\b(search (the web|online|the internet|for)|look (it |this |that )?up|google|"
    r"latest|news|on the (web|internet)|online)\b",
    "fetch_page": r"https?://|\bwww\.",
    "remember": r"\b(remember|keep in mind|take (a )?note|note (that|down)|save (that|this))\b",
    "recall": r"\b(recall|remember|do you know|what did i|have i|told you|my memor\w+)\b",
    "forget": r"\bforget\b",
    "search_documents": r"\b(documents?|pdfs?|files?|contract|report|paper|page|clause|manual)\b",
    "read_file": r"(^|\s)[~.]?/[\w./-]+|\b[\w-]+\.(txt|md|py|csv|json|toml|log|html?)\b|\bfiles?\b",
}
"""What in a message asks for a built-in tool."""

_WORD = re.compile(r"[a-z]{4,}")
_COMMON = frozenset(
    "this that with from your what when where which given have user text name".split()
)


def by_need(tools: Iterable[Tool], words: str) -> list[Tool]:
    """The tools that ``words``, the user's message, asks for.

    A tool of the user's own is judged by its name and the first sentence of its description.
    """
    lowered = words.lower()
    said = set(_WORD.findall(lowered)) - _COMMON
    chosen = []
    for tool in tools:
        cue = _CUES.get(tool.name)
        if cue is not None:
            if re.search(cue, lowered):
                chosen.append(tool)
            continue
        own = set(_WORD.findall(f"{tool.name} {tool.description.partition('.')[0]}".lower()))
        if said & (own - _COMMON):
            chosen.append(tool)
    return chosen
