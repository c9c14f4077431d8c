"""A model file may hold any template: endless, bloating, recursive. It costs one error.

The engine runs in this process, with its real children, so that the limits can be shortened.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jarvis.config import Config
from jarvis.engine import answers, generation, pool, store
from jarvis.engine.api import Engine
from jarvis.engine.llama import Cancelled
from jarvis.engine.pool import Loaded, Pool
from jarvis.engine.request import Request
from tests import tiny_model
from tests.integration import engine_server

_LOOP = (
    "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}"
    "{% endfor %}{% endfor %}{% endfor %}"
)
_DOUBLING = (
    "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}"
    "{% for a in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}"
)
_TRIGGERED = "{% for message in messages %}{% if 'GO' in message.content %}"
TEMPLATES = {
    # llama.cpp tries a template while it loads the model …
    "endless": _LOOP,
    "bloating": _DOUBLING,
    "recursive": "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    # … so a sly one waits for a word.
    "sly-endless": _TRIGGERED + _LOOP + "{% endif %}{% endfor %}" + tiny_model.PLAIN_TEMPLATE,
    "sly-bloating": _TRIGGERED + _DOUBLING + "{% endif %}{% endfor %}" + tiny_model.PLAIN_TEMPLATE,
}


class Hosted:
    """An engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def chat(self, model: str, text: str = "hi", *, client: socket.socket | None = None) -> Any:
        """Status and answer of one chat; ``client`` stands for the client's connection."""
        ours, theirs = socket.socketpair()
        body = {"model": model, "stream": False, "options": {"num_predict": 2}}
        body["messages"] = [{"role": "user", "content": text}]
        watched = (client or ours).fileno()
        request = Request("POST", "/api/chat", {}, json.dumps(body).encode(), watched, tcp=False)
        with ours, theirs:
            response = self.engine.handle(request)
        return response.status, json.loads(response.content)

    def processes(self) -> list[int]:
        """The children that hold models."""
        return [each.process.pid for each in self.engine.pool.loaded()]


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    monkeypatch.setattr(pool, "_LOAD_SECONDS", 5.0)
    monkeypatch.setattr(pool, "_SLACK", 400 << 20)
    monkeypatch.setattr(pool, "_CACHE_MIB", 16)
    monkeypatch.setattr(pool, "_RUNAWAY_SECONDS", 0.5)
    monkeypatch.setattr(generation, "SILENT_SECONDS", 2.0)
    with engine_server.home() as paths:
        for name, template in TEMPLATES.items():
            file = tiny_model.write(store.partial_folder(paths) / f"{name}.gguf", template=template)
            store.add(paths, name, file, store.sha256(file), "made by a test")
        paths.logs.mkdir(parents=True, mode=0o700)
        models = Pool(paths, 0, 600, paths.logs / "models.log")
        try:
            yield Hosted(Engine(paths, Config(), models))
        finally:
            models.close()


@pytest.mark.parametrize("name", ["endless", "bloating", "recursive"])
def test_a_template_that_fails_while_it_loads_is_one_error(hosted: Hosted, name: str) -> None:
    status, answer = hosted.chat(name)
    assert status == 500
    assert answer["error"].startswith(f"cannot load {name}:latest:")
    assert hosted.processes() == []
    assert hosted.chat("tiny")[0] == 200


def test_a_template_that_never_ends_is_given_up(hosted: Hosted) -> None:
    assert hosted.chat("sly-endless")[0] == 200
    status, answer = hosted.chat("sly-endless", "GO")
    assert (status, answer) == (500, {"error": "the model gave no sign within 2 s"})
    assert hosted.processes() == []
    # A talk that may not fit is rendered on its own first.
    assert hosted.chat("sly-endless", "GO" * 5000)[0] == 500
    assert hosted.chat("sly-endless")[0] == 200


def test_a_template_that_asks_for_all_memory_gets_an_error(hosted: Hosted) -> None:
    assert hosted.chat("sly-bloating")[0] == 200
    status, answer = hosted.chat("sly-bloating", "GO")
    assert status >= 400
    assert set(answer) == {"error"}
    status, answer = hosted.chat("sly-bloating")
    assert status == 200, answer


def test_a_process_that_ends_before_the_first_token_costs_no_request(hosted: Hosted) -> None:
    assert hosted.chat("tiny")[0] == 200
    (process,) = hosted.processes()
    os.kill(process, signal.SIGSTOP)
    ended = threading.Timer(0.5, os.kill, (process, signal.SIGKILL))
    ended.start()
    status, answer = hosted.chat("tiny")
    ended.join()
    assert status == 200, answer
    (another,) = hosted.processes()
    assert another != process


def test_a_request_that_ends_two_processes_gets_the_error(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hosted.chat("tiny")[0] == 200
    used: list[int] = []
    lines = answers.Chat.lines

    def deadly(self: answers.Chat, loaded: Loaded, *rest: Any) -> Iterator[dict[str, Any]]:
        used.append(loaded.process.pid)
        loaded.process.kill()
        return lines(self, loaded, *rest)

    monkeypatch.setattr(answers.Chat, "lines", deadly)
    status, answer = hosted.chat("tiny")
    assert status == 500
    assert "the model's process" in answer["error"]
    assert len(set(used)) == 2
    monkeypatch.undo()
    assert hosted.chat("tiny")[0] == 200


def test_a_template_whose_client_has_gone_does_not_work_on_for_nobody(hosted: Hosted) -> None:
    assert hosted.chat("sly-endless")[0] == 200
    left, client = socket.socketpair()
    with left, client:
        threading.Timer(0.4, left.close).start()
        with pytest.raises(Cancelled):
            hosted.chat("sly-endless", "GO", client=client)
    (process,) = hosted.processes()
    before = engine_server.processor_seconds(process)
    engine_server.wait_for(lambda: engine_server.processor_seconds(process) > before)

    def swept() -> bool:
        hosted.engine.pool.sweep()
        return hosted.processes() == []

    engine_server.wait_for(swept)
    assert hosted.chat("sly-endless")[0] == 200
