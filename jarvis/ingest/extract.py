"""The table of extractors: media type to the module that reads it."""

from __future__ import annotations

import importlib

from jarvis.ingest import detect
from jarvis.ingest.model import Extracted, Source

EXTRACTORS = {
    detect.PDF: "jarvis.ingest.pdf",
    detect.DOCX: "jarvis.ingest.docx",
    detect.EPUB: "jarvis.ingest.epub",
    detect.HTML: "jarvis.ingest.html",
    detect.MARKDOWN: "jarvis.ingest.markdown",
    detect.PLAIN: "jarvis.ingest.text",
}
"""Each module has ``extract(source) -> Extracted`` and is imported only when its type comes."""


def extract(source: Source) -> Extracted:
    """Reads ``source`` with the extractor of its media type.

    Raises:
        Unreadable: it is no document, or none that can be read.
    """
    kind = detect.media_type(source.data, source.name)
    extracted: Extracted = importlib.import_module(EXTRACTORS[kind]).extract(source)
    return extracted
