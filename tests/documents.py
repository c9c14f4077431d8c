"""Makes PDFs and Word documents for the tests, so that none has to be shipped."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence

from fpdf import FPDF

WORDS = (
    "harbour lantern orchard meadow copper violin granite saffron lighthouse canyon walnut cedar "
    "compass thimble glacier pepper saddle marble willow kettle anchor ribbon falcon basket quarry"
).split()


def pdf(
    pages: Sequence[str | Callable[[FPDF], None]],
    *,
    size: float = 11,
    encrypt: tuple[str, str] | None = None,
    title: str = "",
) -> bytes:
    """A PDF: each page is its text, or a function that draws it.

    Args:
        encrypt: the owner's and the user's password.
    """
    made = FPDF()
    made.set_auto_page_break(False)
    if title:
        made.set_title(title)
    for page in pages:
        made.add_page()
        made.set_font("Helvetica", size=size)
        if callable(page):
            page(made)
        elif page:
            made.multi_cell(0, 6, page, new_x="LMARGIN", new_y="NEXT")
    if encrypt is not None:
        made.set_encryption(owner_password=encrypt[0], user_password=encrypt[1])
    return bytes(made.output())


def paragraph(seed: int, sentences: int = 4) -> str:
    """Sentences of common words that differ by ``seed``."""
    made = []
    for index in range(sentences):
        start = seed * 7 + index * 5
        words = [WORDS[(start + step * 3) % len(WORDS)] for step in range(9)]
        made.append(" ".join(words).capitalize() + ".")
    return " ".join(made)


def picture() -> bytes:
    """A grey PNG."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\x00" + b"\x80" * 40 for _ in range(40))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 40, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def image_page(made: FPDF) -> None:
    """A page that is only a picture, like a scan."""
    made.image(io.BytesIO(picture()), x=10, y=10, w=180)


def two_columns(
    left: Sequence[str], right: Sequence[str], *, by_row: bool
) -> Callable[[FPDF], None]:
    """A page in two columns, written column by column or line by line across both."""

    def draw(made: FPDF) -> None:
        made.set_font("Helvetica", size=10)
        made.text(15, 15, "A Title that Runs over Both of the Columns of this Page")
        cells = [(15.0, 25 + 5.0 * n, line) for n, line in enumerate(left)]
        others = [(110.0, 25 + 5.0 * n, line) for n, line in enumerate(right)]
        order = [*cells, *others]
        if by_row:
            order.sort(key=lambda cell: (cell[1], cell[0]))
        for x, y, line in order:
            made.text(x, y, line)

    return draw


def zipped(parts: dict[str, bytes | str]) -> bytes:
    """A ZIP container."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_body(body: str, **parts: str) -> bytes:
    """A Word document with this XML as its body; ``parts``: other files in ``word/``."""
    files: dict[str, bytes | str] = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
    }
    files |= {f"word/{name}.xml": content for name, content in parts.items()}
    return zipped(files)


def epub(chapters: Sequence[tuple[str, str]], title: str = "A Book") -> bytes:
    """An EPUB 3 with chapters of (title, XHTML of the body)."""
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    links = "".join(f'<li><a href="c{n}.xhtml">{t}</a></li>' for n, (t, _) in enumerate(chapters))
    files: dict[str, bytes | str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/b.opf"/>'
        "</rootfiles></container>",
        "O/b.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}"
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        f"</manifest><spine>{spine}</spine></package>",
        "O/nav.xhtml": f"<html><body><nav><ol>{links}</ol></nav></body></html>",
    }
    for number, (_, body) in enumerate(chapters):
        files[f"O/c{number}.xhtml"] = f"<html><body>{body}</body></html>"
    return zipped(files)
