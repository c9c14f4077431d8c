"""A model's answer is read for so long and no longer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jarvis.errors import ModelUnavailable
from jarvis.llm.protocols import ChatChunk
from jarvis.services.extraction import bounded


def never() -> bool:
    return False


def read(stream: Iterator[ChatChunk], **limits: float) -> str:
    found = bounded.chunks(stream, stop=never, **{"timeout": 30.0, **limits})
    return "".join(chunk.text for chunk in found)


class Stalling:
    """A stream that gives some tokens and then nothing, until it is let go."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.go = threading.Event()
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[ChatChunk]:
        try:
            for text in self.texts:
                yield ChatChunk(text=text)
            self.go.wait(60)
            yield ChatChunk(text="late")
            yield ChatChunk(text="later")
        finally:
            self.closed.set()


def test_a_whole_answer_comes_whole() -> None:
    assert read(iter([ChatChunk(text="a"), ChatChunk(text="b")])) == "ab"


def test_a_server_that_stalls_between_tokens_is_left_with_what_came() -> None:
    server = Stalling('{"facts": [', '"User rows"')
    assert read(iter(server), timeout=0.3) == '{"facts": ["User rows"'
    server.go.set()
    assert server.closed.wait(10), "the connection is closed when the server moves again"


def test_a_first_token_that_never_comes_is_an_error() -> None:
    server = Stalling()
    with pytest.raises(ModelUnavailable, match="did not begin to answer"):
        read(iter(server), first_token=0.3)
    server.go.set()
    assert server.closed.wait(10)


def test_who_waits_for_an_answer_stops_it_before_the_first_token() -> None:
    server = Stalling()
    with pytest.raises(bounded.Interrupted):
        list(bounded.chunks(iter(server), timeout=30, stop=lambda: True))
    server.go.set()
    assert server.closed.wait(10)


def test_an_error_of_the_stream_is_raised() -> None:
    def failing() -> Iterator[ChatChunk]:
        yield ChatChunk(text="a")
        raise ModelUnavailable("gone")

    with pytest.raises(ModelUnavailable, match="gone"):
        read(failing())
