"""An Ollama that does on order what a real one cannot be made to do: cut, split, stall, lie.

Speaks HTTP on a loopback port. Each request to ``/api/chat`` plays the next script of ``chats``
(the last one again and again); a script is a list of steps: bytes to send, seconds to wait, or
``CUT`` to drop the connection.
"""

from __future__ import annotations

import contextlib
import json
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT = object()
Step = bytes | float | object


def piece(text: str, **more: Any) -> bytes:
    """One line of a streamed answer."""
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"model": "scripted", "message": message, "done": False}).encode() + b"\n"


def last(prompt: int = 50, answer: int = 5, **more: Any) -> bytes:
    """The line that ends an answer. Counts are tokens."""
    return (
        json.dumps(
            {
                "model": "scripted",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": prompt,
                "prompt_eval_duration": 1_000_000,
                "eval_count": answer,
                "eval_duration": 1_000_000,
                **more,
            }
        ).encode()
        + b"\n"
    )


def vector_of(text: str) -> list[float]:
    """A vector that depends on the text and on nothing else."""
    return [1.0 + (len(text) % 7) / 10, 0.5, *(((hash(text) >> i) & 3) / 4 for i in range(6))]


class ScriptedOllama:
    """The server. ``requests`` holds the bodies of the chat requests, in order.

    ``disconnected`` counts clients that left before their answer ended.
    """

    def __init__(self) -> None:
        self.chats: list[Sequence[Step]] = [[piece("fine"), last()]]
        self.embed: Callable[[str], Any] = vector_of
        self.embed_delay = 0.0
        self.context_length = 8192
        self.capabilities = ["completion"]
        self.requests: list[dict[str, Any]] = []
        self.disconnected = 0
        self._served = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                return

            def do_GET(self) -> None:
                if self.path == "/api/tags":
                    models = [
                        {"model": name, "name": name, "digest": f"sha256:{name}", "size": 1}
                        for name in ("scripted", "all-minilm")
                    ]
                    self._json({"models": models})
                else:
                    self._json({"version": "0.0.0"})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length) or b"{}")
                if self.path == "/api/show":
                    family = "scripted"
                    self._json(
                        {
                            "details": {"family": family},
                            "capabilities": outer.capabilities,
                            "model_info": {f"{family}.context_length": outer.context_length},
                        }
                    )
                elif self.path == "/api/embed":
                    time.sleep(outer.embed_delay)
                    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
                    self._json({"embeddings": [outer.embed(text) for text in texts]})
                elif not body.get("messages"):
                    self._json(json.loads(last()))
                else:
                    outer._play(self, body)

            def _json(self, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        """For OLLAMA_HOST."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def _play(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(body)
            script = self.chats[min(self._served, len(self.chats) - 1)]
            self._served += 1
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-ndjson")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for step in script:
            if step is CUT:
                return
            if isinstance(step, bytes):
                try:
                    handler.wfile.write(step)
                    handler.wfile.flush()
                except OSError:
                    self.disconnected += 1
                    return
            elif isinstance(step, int | float) and self._left_within(handler, float(step)):
                self.disconnected += 1
                return

    @staticmethod
    def _left_within(handler: BaseHTTPRequestHandler, seconds: float) -> bool:
        """Waits; whether the client closed its end meanwhile."""
        readable, _, _ = select.select([handler.connection], [], [], seconds)
        return bool(readable)


@contextlib.contextmanager
def scripted_ollama() -> Iterator[ScriptedOllama]:
    """A server for the length of a block."""
    server = ScriptedOllama()
    try:
        yield server
    finally:
        server.close()
