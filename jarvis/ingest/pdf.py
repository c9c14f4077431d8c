"""PDF, through pdfium."""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from jarvis.ingest import pdf_repair
from jarvis.ingest.detect import PDF
from jarvis.ingest.model import Block, Extracted, Kind, Page, Source, Unreadable
from jarvis.ingest.pdf_blocks import blocks_of, style_of
from jarvis.ingest.pdf_lines import Line, PageText
from jarvis.ingest.pdf_order import ordered
from jarvis.ingest.prose import unligate, unreadable_share, vocabulary

GARBLED = 0.25
"""Share of characters without a letter above which a page counts as unreadable."""

NO_TEXT = "no text layer"
NO_LETTERS = "its fonts do not say which letters they show"

_FIELD_KINDS = {2: "checkbox", 3: "radio", 4: "choice", 5: "choice", 6: "text"}


def extract(source: Source) -> Extracted:
    """The text of a PDF, page by page.

    Raises:
        Unreadable: it is damaged beyond repair, needs a password, or has no text at all.
    """
    document, warnings = _open(source)
    try:
        return _read(document, source, warnings)
    finally:
        document.close()


def _open(source: Source) -> tuple[pdfium.PdfDocument, list[str]]:
    try:
        return pdfium.PdfDocument(source.data, password=source.password), []
    except pdfium.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code == raw.FPDF_ERR_PASSWORD:
            if source.password:
                raise Unreadable(
                    "the password does not open it", "jarvis doc ingest --password", "password"
                ) from None
            raise Unreadable(
                "is encrypted and needs a password", "jarvis doc ingest --password", "password"
            ) from None
        if code == raw.FPDF_ERR_SECURITY:
            raise Unreadable(
                "uses an encryption that is not supported", "save it without protection"
            ) from None
    if pdf_repair.has_no_pages(source.data):
        raise Unreadable("has 0 pages", code="empty")
    repaired = pdf_repair.rebuilt(source.data, source.max_text)
    if repaired is not None:
        try:
            document = pdfium.PdfDocument(repaired, password=source.password)
            return document, ["it is damaged and was repaired: something may be missing"]
        except pdfium.PdfiumError:
            pass
    if b"BrotliDecode" in source.data:
        raise Unreadable(
            "is compressed with Brotli, which is not supported", "save it as PDF 1.7 or older"
        )
    raise Unreadable("is damaged: no pages can be found in it", "download or copy it again")


def _read(document: pdfium.PdfDocument, source: Source, warnings: list[str]) -> Extracted:
    total = len(document)
    if not total:
        raise Unreadable("has 0 pages", code="empty")
    form = document.get_formtype()
    if form == raw.FORMTYPE_ACRO_FORM:
        document.init_forms()
    lines: list[list[Line]] = []
    fields: list[list[Block]] = []
    problems: list[str] = []
    characters = 0
    for index in range(total):
        found, filled, problem = _page(document, index, form == raw.FORMTYPE_ACRO_FORM)
        lines.append(found)
        fields.append(filled)
        problems.append(problem)
        characters += sum(len(line.text) for line in found) + sum(len(b.text) for b in filled)
        source.check_text(characters)
        source.progress(index + 1, total)
    if form == raw.FORMTYPE_XFA_FULL and _placeholder(lines):
        raise Unreadable(
            "is an Adobe XFA form: its pages hold only a notice to open it in Acrobat",
            "print it to PDF from Acrobat first",
            "unsupported",
        )
    if not any(lines) and not any(fields):
        raise _nothing(total, problems)
    words = vocabulary([unligate("\n".join(line.text for line in page)) for page in lines])
    style = style_of(lines)
    pages = tuple(
        Page(blocks_of(found, style, words) + tuple(filled), _label(document, index), problem)
        for index, (found, filled, problem) in enumerate(zip(lines, fields, problems, strict=True))
    )
    warnings += _attachments(document)
    garbled = [str(n) for n, problem in enumerate(problems, 1) if problem == NO_LETTERS]
    if garbled:
        warnings.append(f"{NO_LETTERS} on page {', '.join(garbled[:20])}")
    return Extracted(PDF, pages, paged=True, title=_title(document), warnings=tuple(warnings))


def _page(
    document: pdfium.PdfDocument, index: int, forms: bool
) -> tuple[list[Line], list[Block], str]:
    try:
        page = document[index]
    except pdfium.PdfiumError:
        return [], [], "the page is damaged"
    try:
        textpage = page.get_textpage()
    except pdfium.PdfiumError:
        return [], [], "the page is damaged"
    try:
        text = PageText(textpage)
        filled = _fields(document, page) if forms else []
        if not text.text.strip():
            return [], filled, "" if filled else NO_TEXT
        if unreadable_share(text.text) > GARBLED or text.unmapped() > 2 * GARBLED:
            return [], filled, NO_LETTERS
        return ordered(text), filled, ""
    finally:
        textpage.close()
        page.close()


def _nothing(total: int, problems: list[str]) -> Unreadable:
    count = f"{total} page{'' if total == 1 else 's'}"
    if NO_LETTERS in problems:
        return Unreadable(
            f"has no readable text on its {count}: {NO_LETTERS}",
            "run it through OCR first, for example ocrmypdf --force-ocr",
            "empty",
            total,
        )
    if all(problem == "the page is damaged" for problem in problems):
        return Unreadable(f"is damaged: none of its {count} can be read", "download it again")
    return Unreadable(
        f"has no text layer on its {count}: they are pictures",
        "run it through OCR first, for example ocrmypdf",
        "empty",
        total,
    )


def _placeholder(lines: list[list[Line]]) -> bool:
    text = " ".join(line.text for page in lines for line in page).lower()
    return "please wait" in text and "adobe" in text


def _label(document: pdfium.PdfDocument, index: int) -> str:
    label = document.get_page_label(index) or ""
    return "" if label == str(index + 1) else label


def _title(document: pdfium.PdfDocument) -> str:
    title = document.get_metadata_value("Title") or ""
    generic = not title.strip() or title.lower().startswith(("untitled", "microsoft word"))
    return "" if generic else title


def _attachments(document: pdfium.PdfDocument) -> list[str]:
    names = []
    for index in range(min(document.count_attachments(), 20)):
        try:
            names.append(document.get_attachment(index).get_name())
        except (pdfium.PdfiumError, UnicodeDecodeError):
            names.append("?")
    if not names:
        return []
    return [
        f"{len(names)} attached file{'' if len(names) == 1 else 's'} not read: {', '.join(names)}"
    ]


def _fields(document: pdfium.PdfDocument, page: Any) -> list[Block]:
    """What was filled into the form on this page, one ``name: value`` a line."""
    if document.formenv is None:
        return []
    handle, lines = document.formenv.raw, []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page.raw), 2000)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = _FIELD_KINDS.get(raw.FPDFAnnot_GetFormFieldType(handle, annotation))
            value = _wide(raw.FPDFAnnot_GetFormFieldValue, handle, annotation) if kind else ""
            if kind in {"checkbox", "radio"}:
                value = "yes" if raw.FPDFAnnot_IsChecked(handle, annotation) else ""
            if not value.strip():
                continue
            name = _wide(raw.FPDFAnnot_GetFormFieldAlternateName, handle, annotation)
            name = name or _wide(raw.FPDFAnnot_GetFormFieldName, handle, annotation)
            lines.append(f"{' '.join(name.split())}: {value.strip()}")
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return [Block("\n".join(dict.fromkeys(lines)), Kind.TABLE)] if lines else []


def _wide(function: Any, handle: Any, annotation: Any) -> str:
    size = function(handle, annotation, None, 0)
    if size <= 2 or size > 100_000:
        return ""
    buffer = ctypes.create_string_buffer(size)
    function(handle, annotation, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "ignore")
