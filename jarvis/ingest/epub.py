"""EPUB: the chapters of a book, in the order of its spine."""

from __future__ import annotations

from typing import Any

from jarvis.ingest import html
from jarvis.ingest.detect import EPUB
from jarvis.ingest.encoding import declared_charset, decode
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable
from jarvis.ingest.package import Package, resolve

_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def extract(source: Source) -> Extracted:
    """The text of every chapter; headings carry the chapter's name where its text has none."""
    package = Package(source.data, source.max_text * 4, "EPUB book")
    _refuse_protected(package)
    place = _package_document(package)
    book = package.xml(place)
    title = " ".join((_first(book, "title") or "").split())
    manifest = {
        item.get("id", ""): (resolve(place, item.get("href", "")), item.get("media-type", ""),
                             item.get("properties", ""))
        for item in _all(book, "item")
    }  # fmt: skip
    names = _chapter_names(package, manifest)
    blocks: list[Block] = []
    warnings: list[str] = []
    characters = 0
    spine = [item.get("idref", "") for item in _all(book, "itemref")]
    for number, identity in enumerate(spine, 1):
        part, kind, properties = manifest.get(identity, ("", "", ""))
        if "html" not in kind and not part.endswith((".xhtml", ".html", ".htm")):
            continue
        if "nav" in properties.split():
            continue
        if not package.has(part):
            warnings.append(f"the chapter {part} is missing")
            continue
        data = package.read(part)
        text, _ = decode(data, declared_charset(data))
        found, _ = html.blocks(text, main_only=False)
        characters += sum(len(block.text) for block in found)
        source.check_text(characters)
        name = names.get(part, "")
        if name and found and not any(block.kind is Kind.HEADING for block in found[:3]):
            found.insert(0, Block(name, Kind.HEADING, 1, name))
        blocks += found
        source.progress(number, len(spine))
    if not blocks:
        raise Unreadable("holds no text: its pages are pictures or missing", code="empty")
    return Extracted(EPUB, (Page(tuple(blocks)),), title=title, warnings=tuple(warnings))


def _refuse_protected(package: Package) -> None:
    if package.has("META-INF/rights.xml") or package.has("META-INF/license.lcpl"):
        raise Unreadable("is a book with copy protection (DRM)", code="unsupported")
    if not package.has("META-INF/encryption.xml"):
        return
    for method in _all(package.xml("META-INF/encryption.xml"), "EncryptionMethod"):
        if method.get("Algorithm", "") not in _FONT_ALGORITHMS:
            raise Unreadable("is a book with copy protection (DRM)", code="unsupported")


def _package_document(package: Package) -> str:
    if package.has("META-INF/container.xml"):
        for rootfile in _all(package.xml("META-INF/container.xml"), "rootfile"):
            path = rootfile.get("full-path", "")
            if path and package.has(path):
                return str(path)
    found = next((name for name in package.names() if name.endswith(".opf")), "")
    if not found:
        raise package.damaged("it has no list of its chapters")
    return found


def _chapter_names(package: Package, manifest: dict[str, tuple[str, str, str]]) -> dict[str, str]:
    """Part to chapter name, from the book's own table of contents (EPUB 3 or 2)."""
    names: dict[str, str] = {}
    for part, kind, properties in manifest.values():
        if not package.has(part):
            continue
        if "nav" in properties.split():
            for link in _all(package.xml(part), "a"):
                text = " ".join("".join(link.itertext()).split())
                names.setdefault(resolve(part, link.get("href", "")), text)
        elif kind == "application/x-dtbncx+xml":
            for point in _all(package.xml(part), "navPoint"):
                content, label = _all(point, "content"), _all(point, "text")
                if content and label:
                    text = " ".join("".join(label[0].itertext()).split())
                    names.setdefault(resolve(part, content[0].get("src", "")), text)
    return names


def _all(tree: Any, name: str) -> list[Any]:
    """Every element of that local name, whatever its namespace."""
    return list(tree.iter(f"{{*}}{name}"))


def _first(tree: Any, name: str) -> str | None:
    found = _all(tree, name)
    return found[0].text if found else None
