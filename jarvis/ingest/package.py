"""Reading ZIP containers (DOCX, EPUB) without being blown up by one."""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from typing import Any

from lxml import etree

from jarvis.ingest.model import Unreadable

MAX_ENTRIES = 20_000
"""Files in one container at most; the largest real book tried has 900."""

_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What ``zipfile`` raises over containers whose numbers are wrong."""


class Package:
    """A ZIP container whose parts unpack to at most ``limit`` bytes in all."""

    def __init__(self, data: bytes, limit: int, what: str) -> None:
        self.what = what
        self._left = limit
        self._limit = limit
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (*_DAMAGE, OSError) as error:
            raise self.damaged("its directory is missing") from error
        if len(self._zip.infolist()) > MAX_ENTRIES:
            raise Unreadable(f"has more than {MAX_ENTRIES} parts", code="limit")

    def damaged(self, why: str) -> Unreadable:
        """The error for a part that is missing or cannot be read."""
        return Unreadable(f"is a damaged {self.what}: {why}", "download or copy it again")

    def has(self, name: str) -> bool:
        """Whether there is a part of that name."""
        return name in self._zip.NameToInfo

    def names(self) -> list[str]:
        """The names of all parts."""
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        """The bytes of a part.

        Raises:
            Unreadable: it is missing, damaged, encrypted, or unpacks to more than is left.
        """
        try:
            info = self._zip.getinfo(name)
            if info.flag_bits & 1:
                raise Unreadable(f"is a {self.what} with a password", "remove the password first")
            with self._zip.open(info) as part:
                data = part.read(self._left + 1)
        except KeyError:
            raise self.damaged(f"{name} is missing") from None
        except (*_DAMAGE, zlib.error, OSError, EOFError) as error:
            raise self.damaged(f"{name} cannot be unpacked") from error
        if len(data) > self._left:
            raise Unreadable(
                f"unpacks to more than {self._limit // (1024 * 1024)} MiB",
                "raise documents.max_text_mb if you trust it",
                "limit",
            )
        self._left -= len(data)
        return data

    def xml(self, name: str) -> Any:
        """A part as an XML tree; entities are not expanded and nothing is fetched.

        Raises:
            Unreadable: as ``read``, or it is no XML.
        """
        return self.parse(self.read(name), name)

    def parse(self, data: bytes, name: str) -> Any:
        """``data`` as an XML tree; entities are not expanded and nothing is fetched."""
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False
        )
        try:
            root = etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise self.damaged(f"{name} is no XML") from error
        if root is None:
            raise self.damaged(f"{name} is no XML")
        return root


def resolve(base: str, reference: str) -> str:
    """The part that ``reference`` inside the part ``base`` means."""
    from urllib.parse import unquote

    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)).lstrip("/")
