"""Hostile input to the engine: its API, and no HTTP at all."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.fuzzing import anything, fuzzed

_KEYS = "input prompt messages options format tools stream truncate name".split()
_body = st.one_of(
    anything,
    # A model that cannot chat: no request makes it think for long.
    st.fixed_dictionaries(
        {"model": st.sampled_from(["all-minilm", "nope", "", "../x", "all-minilm:latest"])},
        optional=dict.fromkeys(_KEYS, anything),
    ),
)


class TestFuzz:
    """Named so that ``make fuzz`` finds it."""

    @fuzzed
    @given(
        path=st.sampled_from(["show", "embed", "chat", "generate", "nothing"]),
        body=st.deferred(lambda: _body),
    )
    def test_the_engine_api(self, engine: Path, path: str, body: Any) -> None:
        status, text = _post(engine, f"/api/{path}", json.dumps(body).encode())
        assert status < 500, (path, body, text)
        if status >= 400 and path != "nothing":  # as with Ollama, no route is said in plain text
            assert "error" in json.loads(text), (path, body, text)
        assert _post(engine, "/api/version", b"", "GET")[0] == 200

    @fuzzed
    @given(content=st.binary(max_size=400))
    def test_the_engine_with_no_http_at_all(self, engine: Path, content: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(engine))
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while connection.recv(65536):
                    pass
        assert _post(engine, "/api/version", b"", "GET")[0] == 200


def _post(path: Path, target: str, body: bytes, method: str = "POST") -> tuple[int, str]:
    import httpx

    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=60) as client:
        answer = client.request(method, f"http://engine{target}", content=body)
        return answer.status_code, answer.text
