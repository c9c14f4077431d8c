"""DOCX: the text as it would be printed with every change accepted.

Deleted and moved-away text, hidden text, field codes and comments are left out; footnotes stand
behind the paragraph that refers to them; numbers that Word makes by itself ("Clause 7", "3.1") are
written out, since people ask by them.
"""

from __future__ import annotations

import re
from typing import Any

from jarvis.ingest.detect import DOCX
from jarvis.ingest.docx_numbering import Numbering, Styles
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable
from jarvis.ingest.package import Package, resolve
from jarvis.ingest.prose import unligate

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAMES = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main",
     b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"),
    (b"http://purl.oclc.org/ooxml/officeDocument/math",
     b"http://schemas.openxmlformats.org/officeDocument/2006/math"),
)  # fmt: skip
_SKIPPED = frozenset(
    f"{W}{name}"
    for name in (
        "del moveFrom instrText delText delInstrText pPr rPr tblPr tcPr trPr sectPr sdtPr "
        "sdtEndPr fldChar annotationRef commentReference"
    ).split()
)
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def extract(source: Source) -> Extracted:
    """The blocks of a Word document."""
    package = Package(source.data, source.max_text * 2, "Word document")
    part = _main_part(package)
    document = _xml(package, part)
    body = document.find(f"{W}body")
    if body is None:
        raise package.damaged("it has no body")
    reader = _Reader(package, part, source)
    reader.take(body)
    if not reader.blocks:
        raise Unreadable("holds no text", code="empty")
    return Extracted(DOCX, (Page(tuple(reader.blocks)),), title=_title(package))


def _main_part(package: Package) -> str:
    if package.has("_rels/.rels"):
        for relation in package.xml("_rels/.rels").iter("{*}Relationship"):
            target = resolve("", relation.get("Target", "").lstrip("/"))
            if relation.get("Type", "").endswith("/officeDocument") and package.has(target):
                return target
    return "word/document.xml"


def _xml(package: Package, name: str) -> Any:
    data = package.read(name)
    if _STRICT in data[:20_000]:  # the "strict" variant of the format has names of its own
        for strict, usual in _STRICT_NAMES:
            data = data.replace(strict, usual)
    return package.parse(data, name)


def _title(package: Package) -> str:
    if not package.has("docProps/core.xml"):
        return ""
    title = package.xml("docProps/core.xml").findtext("{http://purl.org/dc/elements/1.1/}title")
    return " ".join((title or "").split())


class _Reader:
    """Walks through the body and collects blocks."""

    def __init__(self, package: Package, part: str, source: Source) -> None:
        self.blocks: list[Block] = []
        self.source = source
        self.characters = 0
        folder = part.rpartition("/")[0]
        self.styles = Styles(_optional(package, f"{folder}/styles.xml"))
        self.numbering = Numbering(_optional(package, f"{folder}/numbering.xml"), self.styles)
        self.notes = {
            "footnote": _notes(_optional(package, f"{folder}/footnotes.xml"), "footnote"),
            "endnote": _notes(_optional(package, f"{folder}/endnotes.xml"), "endnote"),
        }
        self.waiting: list[str] = []
        self.note_numbers: dict[tuple[str, str], int] = {}

    def take(self, parent: Any) -> None:
        """The paragraphs and tables directly in ``parent``, and in wrappers around them."""
        for child in parent:
            if child.tag == f"{W}p":
                self._paragraph(child)
            elif child.tag == f"{W}tbl":
                self._table(child)
            elif child.tag not in _SKIPPED and isinstance(child.tag, str):
                self.take(child)

    def _paragraph(self, paragraph: Any) -> None:
        text = self._text(paragraph)
        boxes = self._boxes(paragraph)
        number = self.numbering.label(paragraph) if text.strip() else ""
        level = self.styles.heading_level(paragraph)
        if text.strip():
            self._add(text.strip(), number, level)
        for box in boxes:
            self.take(box)
        for note in self.waiting:
            self._append(Block(note))
        self.waiting.clear()

    def _add(self, text: str, number: str, level: int) -> None:
        text = unligate(f"{number} {text}" if number else text)
        if level:
            self._append(Block(text, Kind.HEADING, level, " ".join(text.split())))
        elif number:
            previous = self.blocks[-1] if self.blocks else None
            if previous is not None and previous.kind is Kind.LIST:
                self.blocks[-1] = Block(previous.text + "\n" + text, Kind.LIST)
                self._count(text)
            else:
                self._append(Block(text, Kind.LIST))
        else:
            self._append(Block(text))

    def _append(self, block: Block) -> None:
        self.blocks.append(block)
        self._count(block.text)

    def _count(self, text: str) -> None:
        self.characters += len(text)
        self.source.check_text(self.characters)

    def _table(self, table: Any) -> None:
        rows = []
        for row in table.iterchildren(f"{W}tr", f"{W}sdt"):
            for line in row.iter(f"{W}tr") if row.tag != f"{W}tr" else (row,):
                if line.find(f"{W}trPr/{W}del") is not None:
                    continue
                cells = [" ".join(self._cell(cell).split()) for cell in _cells(line)]
                if any(cells):
                    rows.append(" | ".join(cells))
        if rows:
            self._append(Block(unligate("\n".join(rows)), Kind.TABLE))
        for note in self.waiting:
            self._append(Block(note))
        self.waiting.clear()

    def _cell(self, cell: Any) -> str:
        parts = []
        for paragraph in cell.iter(f"{W}p"):
            text = self._text(paragraph)
            if text.strip():
                number = self.numbering.label(paragraph)
                parts.append(f"{number} {text}" if number else text)
        return " ".join(parts)

    def _text(self, element: Any) -> str:
        """The words of a paragraph; text boxes in it are left for ``_boxes``."""
        parts: list[str] = []
        for child in element:
            tag = child.tag
            if tag in _SKIPPED or tag == _FALLBACK or not isinstance(tag, str):
                continue
            if tag == f"{W}r":
                if not _hidden(child):
                    parts.append(self._text(child))
            elif tag == f"{W}t" or tag == f"{_MATH}t":
                parts.append(child.text or "")
            elif tag == f"{W}tab" or tag == f"{W}ptab":
                parts.append("\t")
            elif tag in (f"{W}br", f"{W}cr"):
                parts.append("\n")
            elif tag == f"{W}noBreakHyphen":
                parts.append("-")
            elif tag in (f"{W}footnoteReference", f"{W}endnoteReference"):
                parts.append(self._note(tag.rpartition("}")[2].removesuffix("Reference"), child))
            elif tag == f"{_MATH}f":
                over, under = child.find(f"{_MATH}num"), child.find(f"{_MATH}den")
                parts.append(f"({self._part(over)})/({self._part(under)})")
            elif tag in (f"{_MATH}sup", f"{_MATH}sub") and element.tag.startswith(_MATH):
                text = self._text(child)
                parts.append(("^" if tag.endswith("sup") else "_") + text if text else "")
            elif tag.endswith("}txbxContent"):
                continue
            else:
                parts.append(self._text(child))
        return "".join(parts)

    def _part(self, element: Any) -> str:
        return "" if element is None else self._text(element)

    def _boxes(self, paragraph: Any) -> list[Any]:
        return [
            box
            for box in paragraph.iter(f"{W}txbxContent")
            if not any(parent.tag == _FALLBACK for parent in box.iterancestors())
        ]

    def _note(self, kind: str, reference: Any) -> str:
        identity = reference.get(f"{W}id", "")
        note = self.notes[kind].get(identity)
        if note is None:
            return ""
        key = (kind, identity)
        number = self.note_numbers.setdefault(key, len(self.note_numbers) + 1)
        words = " ".join(" ".join(self._text(p) for p in note.iter(f"{W}p")).split())
        self.waiting.append(f"[{number}] {words}")
        return f"[{number}]"


def _cells(row: Any) -> list[Any]:
    """The cells of a row, those inside content controls too."""
    found = []
    for child in row:
        if child.tag == f"{W}tc":
            found.append(child)
        elif child.tag not in _SKIPPED and isinstance(child.tag, str):
            found += _cells(child)
    return found


def _hidden(run: Any) -> bool:
    vanish = run.find(f"{W}rPr/{W}vanish")
    return vanish is not None and vanish.get(f"{W}val", "1") not in {"0", "false", "off"}


def _optional(package: Package, name: str) -> Any:
    name = name.lstrip("/")
    return _xml(package, name) if package.has(name) else None


def _notes(tree: Any, kind: str) -> dict[str, Any]:
    if tree is None:
        return {}
    return {
        note.get(f"{W}id", ""): note
        for note in tree.iter(f"{W}{kind}")
        if not re.search("separator", note.get(f"{W}type", ""), re.IGNORECASE)
    }
