"""HTML: the main text, without what a reader would not see."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree
from lxml import html as parser

from jarvis.ingest.detect import HTML
from jarvis.ingest.encoding import declared_charset, decode
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable
from jarvis.ingest.prose import unligate

_DROPPED = frozenset(
    (
        "script style noscript template iframe object embed svg canvas audio video map head "
        "nav aside button select option datalist input textarea dialog"
    ).split()
)
_BLOCKS = frozenset(
    (
        "address article blockquote body center dd details div dl dt fieldset figcaption "
        "figure footer form header hgroup html legend li main ol p section summary ul tr td "
        "th tbody thead"
    ).split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "menu"})
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|(?<![\w-])opacity\s*:\s*0(?:\.0+)?(?![.\d])"
    r"|(?<![\w-])font-size\s*:\s*0(?:px|pt|em|rem|%)?(?![.\d])|text-indent\s*:\s*-\d{3,}"
    r"|(?:left|top)\s*:\s*-\d{3,}|clip\s*:\s*rect\(\s*0|(?<![\w-])(?:height|width)\s*:\s*0(?:px)?\s*(?:;|$)",
    re.IGNORECASE,
)
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SIMPLE = re.compile(r"(?:([\w-]+)?(?:\.([\w-]+)|#([\w-]+))|([\w-]+))$")
_NOISE = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navbox|sidebar|cookie-?(?:banner|bar|consent|notice)|breadcrumbs?"
    r"|mw-editsection|noprint|catlinks|skip-link|sr-only)(?:$|[\s_-])",
    re.IGNORECASE,
)
"""Classes and ids of what surrounds a text on most sites."""

NOISE_SHARE = 0.25
"""Part of a page's words above which an element is no surroundings, whatever it is called
(``<div class="page with-sidebar">``)."""

MAX_NESTED = 2048
"""Elements inside each other that libxml2 takes (``xmlParserMaxDepth`` with XML_PARSE_HUGE)."""

MAX_DEPTH = 400
"""Nesting beyond which text is taken as it stands: no page that people read goes so deep."""


def extract(source: Source) -> Extracted:
    """The blocks of an HTML page; its title from ``<title>``."""
    text, warnings = decode(source.data, declared_charset(source.data))
    source.check_text(len(text))
    found, title = blocks(text, main_only=True)
    if text.count("<") > MAX_NESTED and _too_deep(text):
        warnings.append("it is nested too deeply: what is deepest is missing")
    if not found:
        raise Unreadable("holds no text that a reader would see", code="empty")
    return Extracted(HTML, (Page(tuple(found)),), title=title, warnings=tuple(warnings))


def blocks(text: str, *, main_only: bool) -> tuple[list[Block], str]:
    """The visible blocks of a page and its title.

    Args:
        text: the markup.
        main_only: leave out navigation and what else surrounds the text.
    """
    text = text.replace("\x00", "").lstrip("\ufeff \t\r\n")
    text = re.sub(r"^<\?xml[^>]*\?>", "", text)
    if not text.strip():
        return [], ""
    try:
        root = parser.document_fromstring(text, parser=parser.HTMLParser(huge_tree=True))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return [], ""
    title = " ".join((root.findtext(".//title") or "").split())
    hidden = _Hidden(root, main_only)
    start = _main(root, hidden) if main_only else root
    walker = _Walker(hidden)
    walker.walk(start, 0)
    walker.flush()
    return walker.blocks, title


def _too_deep(text: str) -> bool:
    """Whether the parser (libxml2) stopped at its limit of nesting."""
    reader = parser.HTMLParser(huge_tree=True)
    parser.document_fromstring(text, parser=reader)
    return any("depth" in entry.message.lower() for entry in reader.error_log)


class _Hidden:
    """Tells which elements a reader does not see (or does not read, outside the main text)."""

    def __init__(self, root: Any, main_only: bool) -> None:
        self.main_only = main_only
        self.length = _length(root)
        self.tags: set[str] = set()
        self.classes: set[tuple[str, str]] = set()
        self.ids: set[str] = set()
        for style in root.iter("style"):
            self._read("".join(style.itertext()))

    def __call__(self, element: Any) -> bool:
        tag, attributes = element.tag, element.attrib
        if not isinstance(tag, str) or tag in _DROPPED or tag in self.tags:
            return True
        if not attributes:
            return False
        if "hidden" in attributes or _HIDING.search(attributes.get("style", "")):
            return True
        identity, names = attributes.get("id", ""), attributes.get("class", "")
        if identity in self.ids:
            return True
        if any(("", name) in self.classes or (tag, name) in self.classes for name in names.split()):
            return True
        if attributes.get("aria-hidden") == "true":
            return True
        if not self.main_only:
            return False
        if attributes.get("role") in _ROLES:
            return True
        if not _NOISE.search(names) and not _NOISE.search(identity):
            return False
        return _length(element) < NOISE_SHARE * self.length

    def _read(self, sheet: str) -> None:
        """Takes the rules that hide something by a tag, class or id alone."""
        sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
        sheet = re.sub(r"@[\w-]+[^{;]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
        for selectors, body in _RULE.findall(sheet):
            if not _HIDING.search(body):
                continue
            for selector in selectors.split(","):
                match = _SIMPLE.match(selector.strip())
                if not match:
                    continue
                tag, name, identity, alone = match.groups()
                if name:
                    self.classes.add((tag or "", name))
                elif identity:
                    self.ids.add(identity)
                elif alone not in {"body", "html", "main", "article", "p", "div"}:
                    self.tags.add(alone)


def _main(root: Any, hidden: _Hidden) -> Any:
    """The element that holds the main text, when one holds a good part of all of it."""
    body = root.find("body")
    body = root if body is None else body
    whole = _weight(body)
    for path, share in ((".//main", 0.25), (".//*[@role='main']", 0.25), (".//article", 0.6)):
        # Of several articles none is the text; together they are.
        found = [element for element in root.iterfind(path) if not hidden(element)]
        best = max(found, key=_weight, default=None)
        if best is not None and _weight(best) >= max(200, share * whole):
            return best
    return body


def _length(element: Any) -> int:
    """Characters below ``element``, without scripts and style sheets."""
    parts = element.xpath(".//text()[not(parent::script or parent::style)]")
    return sum(len(part) for part in parts)


def _weight(element: Any) -> int:
    """Characters in paragraphs and lists below ``element``."""
    return sum(len("".join(part.itertext())) for part in element.iter("p", "li", "pre", "td"))


class _Walker:
    """Collects blocks on one walk through the tree."""

    def __init__(self, hidden: _Hidden) -> None:
        self.hidden = hidden
        self.blocks: list[Block] = []
        self.words: list[str] = []
        self.prefix = ""

    def walk(self, element: Any, depth: int) -> None:
        """Takes ``element`` and what is in it (not what follows it)."""
        if self.hidden(element):
            return
        tag = element.tag
        if depth > MAX_DEPTH:
            self.words.append(" ".join(element.itertext()))
            return
        if tag in _HEADINGS:
            self.flush()
            self._heading(element, _HEADINGS[tag])
        elif tag == "pre":
            self.flush()
            text = "".join(element.itertext()).strip("\n")
            if text.strip():
                self.blocks.append(Block(text, Kind.CODE))
        elif tag == "table" and element.find(".//table") is None and not _layout(element):
            self.flush()
            self._table(element)
        elif tag == "br":
            self.words.append("\n")
        elif tag == "hr":
            self.flush()
        elif tag == "math":
            self.words.append(" ".join(element.itertext()))
        else:
            self._inside(element, depth, tag in _BLOCKS or tag == "table")

    def flush(self) -> None:
        """Ends the block that is being collected."""
        text = "".join(self.words)
        self.words.clear()
        lines = [" ".join(line.split()) for line in text.split("\n")]
        text = unligate("\n".join(line for line in lines if line))
        if text:
            prefix, self.prefix = self.prefix, ""
            kind = Kind.LIST if prefix else Kind.PARAGRAPH
            if prefix and self.blocks and self.blocks[-1].kind is Kind.LIST:
                text = self.blocks.pop().text + "\n" + prefix + text
            else:
                text = prefix + text
            self.blocks.append(Block(text, kind))

    def _inside(self, element: Any, depth: int, block: bool) -> None:
        if block:
            self.flush()
        if element.tag == "li":
            self.prefix = "- "
            parent = element.getparent()
            if parent is not None and parent.tag == "ol":
                self.prefix = f"{_number(parent, element)}. "
        if element.text:
            self.words.append(element.text.replace("\n", " "))
        for child in element:
            self.walk(child, depth + 1)
            if child.tail:
                self.words.append(child.tail.replace("\n", " "))
        if block:
            self.flush()
            self.prefix = ""

    def _heading(self, element: Any, level: int) -> None:
        text = unligate(" ".join(self._text(element).split()))
        if text:
            self.blocks.append(Block(text, Kind.HEADING, level, text))

    def _table(self, element: Any) -> None:
        rows = []
        for row in element.iter("tr"):
            cells = [" ".join(self._text(cell).split()) for cell in row.iterchildren("td", "th")]
            if any(cells):
                rows.append(" | ".join(cells))
        caption = element.find("caption")
        if caption is not None:
            rows.insert(0, " ".join(self._text(caption).split()))
        if rows:
            self.blocks.append(Block(unligate("\n".join(rows)), Kind.TABLE))

    def _text(self, element: Any) -> str:
        """The visible words below ``element``, in one run."""
        parts = [element.text or ""]
        for child in element:
            if not self.hidden(child):
                parts.append("" if child.tag != "br" else " ")
                parts.append(self._text(child))
                if child.tag in _BLOCKS:
                    parts.append(" ")
            parts.append(child.tail or "")
        return "".join(parts)


def _layout(table: Any) -> bool:
    """Whether a table only places things: one cell a row, or long text in its cells."""
    rows = list(table.iter("tr"))[:50]
    widest = max((sum(1 for _ in row.iterchildren("td", "th")) for row in rows), default=0)
    if widest <= 1:
        return True
    return any(True for _ in table.iter("p", "h1", "h2", "h3")) and len(rows) <= 2


def _number(parent: Any, item: Any) -> int:
    try:
        first = int(parent.get("start", "1"))
    except ValueError:
        first = 1
    return first + sum(1 for _ in item.itersiblings("li", preceding=True))
