"""What a file is, told from its bytes.

The name only settles what bytes cannot: Markdown or plain text, and whether a file claims to be
something that it is not (a login page saved as ``report.pdf``).
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePath

from jarvis.ingest.model import Unreadable

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EPUB = "application/epub+zip"
HTML = "text/html"
MARKDOWN = "text/markdown"
PLAIN = "text/plain"

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (0, b"\x04\x22\x4d\x18", "an LZ4 archive"),
    (0, b"MSCF", "a Windows cabinet archive"),
    (0, b"!<arch>\n", "an ar archive or Debian package"),
    (0, b"\xed\xab\xee\xdb", "an RPM package"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"GIF87a", "a GIF picture"),
    (0, b"GIF89a", "a GIF picture"),
    (0, b"II*\x00", "a TIFF picture"),
    (0, b"MM\x00*", "a TIFF picture"),
    (0, b"BM", "a BMP picture"),
    (0, b"\x00\x00\x01\x00", "an icon"),
    (0, b"8BPS", "a Photoshop picture"),
    (0, b"AT&TFORM", "a DjVu document"),
    (0, b"ID3", "an MP3 recording"),
    (0, b"\xff\xfb", "an MP3 recording"),
    (0, b"OggS", "an Ogg recording"),
    (0, b"fLaC", "a FLAC recording"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM video"),
    (4, b"ftyp", "an MP4, QuickTime or HEIC file"),
    (0, b"\x7fELF", "a program (ELF)"),
    (0, b"MZ", "a Windows program"),
    (0, b"\xcf\xfa\xed\xfe", "a program (Mach-O)"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (0, b"\x00asm", "a WebAssembly module"),
    (0, b"SQLite format 3\x00", "a SQLite database"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"wOFF", "a web font"),
    (0, b"wOF2", "a web font"),
    (0, b"\x00\x01\x00\x00\x00", "a TrueType font"),
    (0, b"OTTO", "an OpenType font"),
    (60, b"BOOKMOBI", "a Mobipocket or Kindle book"),
    (0, b"%!PS", "a PostScript file"),
    (0, b"{\\rtf", "an RTF document"),
)
"""Offset, bytes, name. Sources: the formats' own specifications (magic numbers)."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_CLAIMS = {
    ".pdf": "PDF",
    ".docx": "Word document",
    ".epub": "EPUB book",
    ".doc": "Word document",
    ".xlsx": "Excel workbook",
    ".pptx": "PowerPoint presentation",
    ".odt": "OpenDocument text",
    ".zip": "ZIP archive",
    ".gz": "gzip archive",
    ".png": "PNG picture",
    ".jpg": "JPEG picture",
    ".jpeg": "JPEG picture",
}
"""Suffixes of binary formats: text under such a name is a broken download, not a document."""

_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|div|p|h[1-6]|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_SIGNS = (
    re.compile(rb"^#{1,6} \S", re.MULTILINE),
    re.compile(rb"^(?:```|~~~)", re.MULTILINE),
    re.compile(rb"\[[^\]\n]+\]\([^)\s]+\)"),
    re.compile(rb"^\|?[ :]*-{3,}[ :]*\|", re.MULTILINE),
    re.compile(rb"^[^\n]{2,}\n(?:={3,}|-{3,})\s*$", re.MULTILINE),
    re.compile(rb"\*\*[^*\n]+\*\*"),
)


def media_type(data: bytes, name: str) -> str:
    """The media type of ``data``; ``name`` only tells Markdown from plain text.

    Raises:
        Unreadable: it is empty, or something that is no document; the reason names it.
    """
    if not data:
        raise Unreadable("is empty (0 bytes)", code="empty")
    head = data[:1024]
    suffix = PurePath(name).suffix.lower()
    claim = _CLAIMS.get(suffix)
    if b"%PDF-" in head or (suffix == ".pdf" and _pdf_without_header(data)):
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(data)
    if data.startswith(_OLE):
        raise Unreadable(*_ole(data), code="unsupported")
    if data[:4] == b"RIFF":
        kinds = {b"WEBP": "a WebP picture", b"WAVE": "a WAV recording", b"AVI ": "an AVI video"}
        raise _unsupported(kinds.get(data[8:12], "a RIFF file"))
    for offset, signature, what in _SIGNATURES:
        if data[offset : offset + len(signature)] == signature and not _plain_words(head, offset):
            raise _unsupported(what)
    kind = _text_type(data, suffix)
    if claim:
        what = {HTML: "an HTML page", MARKDOWN: "Markdown text"}.get(kind, "plain text")
        if kind == PLAIN and not _mostly_text(head):
            raise Unreadable(f"is not a {claim}: unknown binary data", code="unsupported")
        raise Unreadable(
            f"is not a {claim}: it holds {what}",
            "download it again, or rename it if that is what you want to read",
            "unsupported",
        )
    return kind


def _unsupported(what: str) -> Unreadable:
    hint = "unpack it first" if "archive" in what else ""
    if "picture" in what:
        hint = "text in pictures is not read: run OCR first"
    elif what.startswith(("a Mobipocket", "an RTF", "a PostScript", "a DjVu")):
        hint = "convert it to PDF, EPUB, DOCX or text first"
    return Unreadable(f"is {what}, which is not read", hint, "unsupported")


def _pdf_without_header(data: bytes) -> bool:
    return b" obj" in data and (b"startxref" in data or b"endobj" in data)


def _plain_words(head: bytes, offset: int) -> bool:
    """Whether a signature of letters is the beginning of a plain text ("BMW", "MZ said …")."""
    if offset:
        return False
    if head.startswith((b"%!PS", b"{\\rtf")):
        return False
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in head)


def _zip_type(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist()[:20000])
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                mime = archive.read("mimetype").strip()
            else:
                mime = b""
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        what = "Word document" if b"word/" in data[:4096] else "ZIP container"
        raise Unreadable(
            f"is a damaged {what}: its directory is missing", "download or copy it again"
        ) from error
    except Exception as error:
        raise Unreadable("is a damaged ZIP container", "download or copy it again") from error
    if mime == EPUB.encode() or "META-INF/container.xml" in names:
        return EPUB
    if "word/document.xml" in names or any(n.startswith("word/document") for n in names):
        return DOCX
    for prefix, what in (
        ("xl/", "an Excel workbook"),
        ("ppt/", "a PowerPoint presentation"),
        ("visio/", "a Visio drawing"),
    ):
        if any(name.startswith(prefix) for name in names):
            raise Unreadable(
                f"is {what}, which is not read", "save it as PDF or text first", "unsupported"
            )
    if mime.startswith(b"application/vnd.oasis.opendocument"):
        raise Unreadable(
            "is an OpenDocument file, which is not read",
            "save it as DOCX or PDF first",
            "unsupported",
        )
    if "META-INF/MANIFEST.MF" in names:
        raise _unsupported("a Java archive")
    raise _unsupported("a ZIP archive")


def _ole(data: bytes) -> tuple[str, str]:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "is an Office document with a password", "remove its password in Office first"
    for stream, what in (
        ("WordDocument", "Word"),
        ("Workbook", "Excel"),
        ("PowerPoint", "PowerPoint"),
    ):
        if stream.encode("utf-16-le") in data:
            return (
                f"is an old {what} file (before 2007), which is not read",
                "save it as DOCX or PDF",
            )
    return "is an old Office or OLE file, which is not read", "save it as DOCX or PDF"


def _text_type(data: bytes, suffix: str) -> str:
    sample = data[:65536].lstrip(b"\xef\xbb\xbf")
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        sample = sample.replace(b"\x00", b"")[2:]
    if _HTML_START.match(sample) or (suffix in {".html", ".htm", ".xhtml"} and b"<" in sample):
        if suffix not in {".md", ".markdown"}:
            return HTML
        # Markdown may begin with a tag; a whole page inside it is HTML all the same.
        if re.match(rb"\s*(<\?xml[^>]*>\s*)?<(!doctype html|html)\b", sample, re.IGNORECASE):
            return HTML
    if suffix in {".md", ".markdown", ".mdown", ".mkd"}:
        return MARKDOWN
    if (
        suffix in {"", ".txt", ".text"}
        and sum(bool(s.search(sample)) for s in _MARKDOWN_SIGNS) >= 2
    ):
        return MARKDOWN
    return PLAIN


def _mostly_text(head: bytes) -> bool:
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return odd * 20 < len(head)
