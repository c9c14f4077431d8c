"""Reads a model's answer for so long and no longer, whatever the server does.

A stream is waited for in a thread of its own: a server that stalls between two tokens, or never
gets to the first, holds up only that thread, which closes the connection as soon as it can.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

from jarvis.errors import ModelUnavailable
from jarvis.llm.protocols import ChatChunk

FIRST_TOKEN_S = 600.0
"""For loading the model and reading the prompt; a large model on a slow disk takes minutes."""

LOOK_S = 0.2
"""How often ``stop`` is looked at while nothing comes."""


class Interrupted(Exception):
    """Somebody waits for an answer: the message is read later, from the start."""


def chunks(
    stream: Iterator[ChatChunk],
    *,
    timeout: float,
    stop: Callable[[], bool],
    first_token: float = FIRST_TOKEN_S,
) -> Iterator[ChatChunk]:
    """Yields what comes within ``timeout`` seconds of the first chunk, and ends then.

    Errors of the stream are raised here.

    Args:
        first_token: seconds until the first chunk.

    Raises:
        Interrupted: ``stop`` became true.
        ModelUnavailable: the first chunk did not come in time.
    """
    came: queue.SimpleQueue[ChatChunk | BaseException | None] = queue.SimpleQueue()
    left = threading.Event()
    threading.Thread(target=_pump, args=(stream, came, left), daemon=True).start()
    deadline, begun = time.monotonic() + first_token, False
    try:
        while True:
            if stop():
                raise Interrupted
            rest = deadline - time.monotonic()
            if rest <= 0:
                if begun:
                    return
                raise ModelUnavailable(
                    f"the model did not begin to answer within {first_token:g} s",
                    "jarvis model status",
                )
            try:
                chunk = came.get(timeout=min(LOOK_S, rest))
            except queue.Empty:
                continue
            if chunk is None:
                return
            if isinstance(chunk, BaseException):
                raise chunk
            if not begun:
                deadline, begun = time.monotonic() + timeout, True
            yield chunk
    finally:
        left.set()


def _pump(
    stream: Iterator[ChatChunk],
    came: queue.SimpleQueue[ChatChunk | BaseException | None],
    left: threading.Event,
) -> None:
    try:
        for chunk in stream:
            if left.is_set():
                break
            came.put(chunk)
        came.put(None)
    except BaseException as error:  # noqa: BLE001 -- raised again by the reader
        came.put(error)
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
