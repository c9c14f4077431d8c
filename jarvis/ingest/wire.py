"""What the parent and the child say to each other: JSON in frames with a length before them."""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any

from jarvis.ingest.model import PageSpan, Passage, Reading, Unreadable

HEADER = struct.Struct(">I")
"""A frame's length in bytes, big-endian."""

PASSAGES_PER_FRAME = 64

MAX_FRAME = 256 * 1024 * 1024
"""A longer frame is none of ours."""

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """A message as a frame."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return HEADER.pack(len(body)) + body


def unpack(body: bytes) -> Message:
    """The message in a frame's body."""
    message: Message = json.loads(body.decode("utf-8", "surrogatepass"))
    return message


def reading_messages(reading: Reading) -> list[Message]:
    """A reading in pieces, so that neither side holds its text twice."""
    head = {
        field.name: getattr(reading, field.name)
        for field in dataclasses.fields(reading)
        if field.name not in {"passages", "pages"}
    }
    messages: list[Message] = [{"reading": head}]
    for start in range(0, len(reading.passages), PASSAGES_PER_FRAME):
        part = reading.passages[start : start + PASSAGES_PER_FRAME]
        messages.append({"passages": [dataclasses.astuple(passage) for passage in part]})
    for start in range(0, len(reading.pages), 5000):
        part_of_pages = reading.pages[start : start + 5000]
        messages.append({"pages": [dataclasses.astuple(page) for page in part_of_pages]})
    messages.append({"done": True})
    return messages


class Collector:
    """Puts a reading together from its messages."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._passages: list[Passage] = []
        self._pages: list[PageSpan] = []

    def add(self, message: Message) -> Reading | None:
        """Takes one message; returns the reading when it was the last.

        Raises:
            Unreadable: the message says that the file cannot be read.
        """
        if "unreadable" in message:
            raise Unreadable(**message["unreadable"])
        if "reading" in message:
            self._head = message["reading"]
        elif "passages" in message:
            self._passages += [Passage(*row) for row in message["passages"]]
        elif "pages" in message:
            self._pages += [PageSpan(*row) for row in message["pages"]]
        elif "done" in message:
            head = self._head | {
                "empty_pages": tuple(self._head["empty_pages"]),
                "warnings": tuple(self._head["warnings"]),
            }
            return Reading(passages=tuple(self._passages), pages=tuple(self._pages), **head)
        return None
