"""The engine's life: started once, stopped well, found again after a crash, safe meanwhile."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from jarvis.engine import launcher, store
from jarvis.paths import Paths
from tests import tiny_model
from tests.integration import engine_server
from tests.integration.engine_server import Served

LONG = {"num_predict": 100_000, "num_ctx": 32_768}
"""More than any test waits for."""


@pytest.fixture
def home() -> Iterator[Paths]:
    with engine_server.home() as paths:
        yield paths


def test_many_commands_at_once_start_one_engine(home: Paths) -> None:
    script = (
        "import sys, json; from jarvis.paths import Paths; from jarvis.engine import launcher;"
        "paths = Paths.from_environment(); launcher.ensure_running(paths);"
        "print(launcher.status(paths).pid)"
    )
    environment = engine_server.environment(home)

    def one(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    with ThreadPoolExecutor(8) as pool:
        pids = set(pool.map(one, range(8)))
    assert len(pids) == 1
    running = subprocess.run(["ps", "-wweo", "args"], capture_output=True, text=True, check=True)
    mine = [line for line in running.stdout.splitlines() if f'"{home.runtime}"' in line]
    assert len(mine) == 1


def test_a_second_engine_of_the_same_folder_is_refused(home: Paths) -> None:
    with engine_server.served(home):
        second = subprocess.run(
            [sys.executable, "-m", "jarvis.engine", "serve"],
            env=engine_server.environment(home),
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert second.returncode == 1
    assert "runs already" in second.stderr


def test_a_killed_engine_takes_its_models_along_and_the_next_one_serves(home: Paths) -> None:
    with engine_server.served(home) as served:
        served.chat()
        pid = served.pid
        models = engine_server.children(pid)
        assert models
        os.kill(pid, signal.SIGKILL)
        engine_server.wait_for(lambda: not any(_lives(each) for each in models))
    assert launcher.socket_path(home).exists()
    with engine_server.served(home) as served:
        assert served.pid != pid
        assert served.chat()["done"]


def test_a_crashed_model_costs_one_answer(home: Paths) -> None:
    with engine_server.served(home) as served:
        served.chat(options={"num_ctx": LONG["num_ctx"]})
        (model,) = engine_server.children(served.pid)
        with ThreadPoolExecutor(1) as pool:
            body = {"model": "tiny", "prompt": "x", "options": LONG, "stream": False}
            answer = pool.submit(served.post, "/api/generate", body)
            time.sleep(0.5)
            os.kill(model, signal.SIGSEGV)
            failed = answer.result(60)
        assert failed.status_code == 500
        assert "process has gone" in failed.json()["error"]
        assert served.chat()["done"]


def test_an_idle_engine_leaves_and_cleans_up(home: Paths) -> None:
    with engine_server.served(home, idle_minutes=0.02) as served:
        pid = served.pid
        served.client.close()
        engine_server.wait_for(lambda: not launcher.socket_path(home).exists())
        engine_server.wait_for(lambda: not _lives(pid))
    assert not list(home.engine_runtime.glob("*.sock"))


def test_clients_that_come_while_it_leaves_are_all_served(home: Paths) -> None:
    """The protocol of the idle exit: a client that fails before the first byte asks again once."""
    failures = []

    def client(number: int) -> None:
        for turn in range(6):
            time.sleep(1.2 + (number * 7 + turn * 3) % 10 / 20)
            for attempt in (1, 2):
                path = launcher.ensure_running(home, _config(idle_minutes=0.02))
                try:
                    with engine_server.client(path) as made:
                        made.get("/api/version").raise_for_status()
                    break
                except httpx.TransportError as error:
                    if attempt == 2:
                        failures.append(repr(error))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_engine_whose_folder_was_removed_leaves_and_lets_its_successor_be(home: Paths) -> None:
    with engine_server.served(home) as served:
        old = served.pid
    shutil.rmtree(home.engine_runtime)
    with engine_server.served(home) as served:
        assert served.pid != old
        engine_server.wait_for(lambda: not _lives(old))
        assert served.client.get("/").status_code == 200
        assert launcher.answers(launcher.socket_path(home))


def test_a_model_that_is_to_stay_keeps_the_engine(home: Paths) -> None:
    with engine_server.served(home, idle_minutes=0.02) as served:
        served.chat(keep_alive=-1)
        time.sleep(4)
        assert launcher.answers(launcher.socket_path(home))


def test_models_are_unloaded_when_their_time_is_over(home: Paths) -> None:
    with engine_server.served(home) as served:
        served.chat(keep_alive="1s")
        pid = served.pid
        assert engine_server.children(pid)
        engine_server.wait_for(lambda: not engine_server.children(pid))
        assert launcher.answers(launcher.socket_path(home))


def test_sigterm_finishes_the_running_answer(home: Paths) -> None:
    with engine_server.served(home) as served:
        pid = served.pid
        body = {"model": "tiny", "prompt": "x", "options": {"num_predict": 1500}}
        with served.client.stream("POST", "/api/generate", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            os.kill(pid, signal.SIGTERM)
            engine_server.wait_for(lambda: not launcher.answers(launcher.socket_path(home)))
            *_, last = lines
        assert json.loads(last)["eval_count"] == 1500
        engine_server.wait_for(lambda: not _lives(pid))


def test_an_engine_of_another_build_is_replaced(home: Paths) -> None:
    with engine_server.served(home) as served:
        old = served.pid
        record = json.loads(launcher.record_path(home).read_text())
        launcher.record_path(home).write_text(json.dumps({**record, "build": "0.0.1+old"}))
        said: list[str] = []
        launcher.ensure_running(home, progress=said.append)
        assert said[0] == "replacing the engine of another version"
        assert launcher.status(home).pid != old
        assert not _lives(old)


def test_everything_is_private_and_on_sockets_only(home: Paths) -> None:
    with engine_server.served(home) as served:
        served.chat()
        for folder in (home.engine_runtime, home.models, home.logs):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for folder in (home.models, home.logs):
            for file in folder.rglob("*"):
                if file.is_file():
                    assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        pid = served.pid
        for process in (pid, *engine_server.children(pid)):
            assert _tcp_listeners(process) == 0


@pytest.mark.parametrize("when", ["reading", "writing", "writing unstreamed"])
def test_a_client_that_leaves_stops_the_work(home: Paths, when: str) -> None:
    """The model's process gets idle long before the work could be done."""
    body = {"model": "tiny", "prompt": "x", "options": LONG, "stream": when == "writing"}
    if when == "reading":
        body |= {"prompt": "word " * 6000, "raw": True}
    with engine_server.served(home) as served:
        served.chat(options={"num_ctx": LONG["num_ctx"]})
        (model,) = engine_server.children(served.pid)
        if when == "writing":
            with served.client.stream("POST", "/api/generate", json=body) as response:
                next(response.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                served.post("/api/generate", body, timeout=0.5)
        engine_server.wait_for(lambda: _requests(served) == 0, 30)
        engine_server.wait_for(functools.partial(_is_idle, model), 30)
        assert served.chat()["done"]


def test_a_chat_comes_before_background_work(home: Paths) -> None:
    with engine_server.served(home) as served:
        served.chat(options={"num_ctx": LONG["num_ctx"]})
        header = {"X-Jarvis-Background": "1"}
        body = {"model": "tiny", "prompt": "x", "options": LONG, "stream": False}
        with ThreadPoolExecutor(2) as pool:
            whole = pool.submit(served.post, "/api/generate", body, headers=header)
            engine_server.wait_for(lambda: _requests(served))
            served.chat()
            assert whole.result(30).status_code == 503
            assert "preempted" in whole.result().json()["error"]
            foreground = pool.submit(served.chat, options={"num_predict": 1000})
            engine_server.wait_for(lambda: _requests(served))
            short = {**body, "options": {"num_predict": 1}}
            assert served.post("/api/generate", short, headers=header).status_code == 200
            assert foreground.done()
        streamed = {**body, "stream": True}
        with served.client.stream("POST", "/api/generate", json=streamed, headers=header) as begun:
            lines = begun.iter_lines()
            next(lines)
            served.chat()
            *_, last = lines
        assert "preempted" in json.loads(last)["error"]


def test_requests_are_answered_in_the_order_they_came(home: Paths) -> None:
    """Two at a time, all of one length: nobody is overtaken by one that came after the next."""
    order: list[int] = []

    def ask(number: int) -> None:
        body = {"model": "tiny", "prompt": "x", "options": {"num_predict": 1200}, "stream": False}
        with engine_server.client(launcher.socket_path(home)) as client:
            client.post("/api/generate", json=body).raise_for_status()
        order.append(number)

    with engine_server.served(home) as served:
        served.chat()
        with ThreadPoolExecutor(6) as pool:
            for number in range(6):
                pool.submit(ask, number)
                arrived = functools.partial(_arrived, served, order, number + 1)
                engine_server.wait_for(arrived)
                time.sleep(0.1)  # from the lease to llama.cpp's queue
    assert all(abs(place - number) <= 1 for place, number in enumerate(order)), order


def _arrived(served: Served, done: list[int], count: int) -> bool:
    return _requests(served) + len(done) >= count


def test_a_short_chat_does_not_wait_for_a_long_one(home: Paths) -> None:
    """Where two windows fit, two chats run side by side."""
    with engine_server.served(home) as served:
        served.chat()
        body = {"model": "tiny", "prompt": "x", "options": {"num_predict": 100_000}}
        with served.client.stream("POST", "/api/generate", json=body) as long:
            lines = long.iter_lines()
            next(lines)
            with engine_server.client(launcher.socket_path(home)) as other:
                assert Served(home, other).chat()["done"]
            assert json.loads(next(lines))["done"] is False


def test_a_background_request_in_between_does_not_cost_the_prompt_cache(home: Paths) -> None:
    with engine_server.served(home) as served:
        talk = "a talk of some length, " * 60
        served.chat(talk)
        for number in range(3):
            served.post(
                "/api/generate",
                {"model": "tiny", "prompt": f"other {number} " * 80, "stream": False,
                 "options": {"num_predict": 2}},
                headers={"X-Jarvis-Background": "1"},
            )  # fmt: skip
        again = served.chat(talk + "more")
        assert again["prompt_cached_count"] > 0.9 * again["prompt_eval_count"]


def test_damaged_model_files_cost_one_error(home: Paths) -> None:
    source = tiny_model.write(store.partial_folder(home) / "whole.gguf", context=512).read_bytes()
    random.seed(11)
    damaged = {
        "empty": b"",
        "magic": b"GGUF",
        "cut-head": source[:200],
        "cut-tensors": source[: len(source) // 2],
        "huge-count": source[:8] + b"\xff" * 16 + source[24:],
        "no-tensors": source[:8] + bytes(8) + source[16:],
        "text": b"#!/bin/sh\n" * 1000,
    }
    for number in range(12):
        flipped = bytearray(source)
        for _ in range(8):
            flipped[random.randrange(24, 12_000)] = random.randrange(256)
        damaged[f"flipped-{number}"] = bytes(flipped)
    for name, content in damaged.items():
        file = store.partial_folder(home) / f"{name}.gguf"
        file.write_bytes(content)
        store.add(home, name, file, store.sha256(file), "damaged by a test")
    with engine_server.served(home) as served:
        pid = served.pid
        for name in damaged:
            body = {"model": name, "prompt": "x", "stream": False, "options": {"num_predict": 2}}
            response = served.post("/api/generate", body)
            assert response.status_code in {200, 400, 500}, response.text
            if response.status_code != 200:
                assert set(response.json()) == {"error"}
        assert served.client.get("/api/tags").status_code == 200
        assert served.pid == pid
        assert served.chat()["done"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "host.docker.internal:11434"}, 200),
        ({"Host": "192.168.1.7"}, 200),
        ({"Host": "8.8.8.8"}, 403),
        ({"Host": "[oops"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "app://obsidian.md"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://friend.example"}, 200),
        ({"Origin": "chrome-extension://abcdef"}, 200),
        ({"Origin": "moz-extension://abcdef"}, 403),
    ],
)
def test_foreign_hosts_and_origins_are_refused(
    tcp: str, headers: dict[str, str], status: int
) -> None:
    response = httpx.get(f"{tcp}/api/tags", headers=headers)
    assert response.status_code == status
    allowed = response.headers.get("access-control-allow-origin")
    assert allowed == (headers.get("Origin") if status == 200 else None)


def test_preflight_and_the_official_client_on_tcp(tcp: str) -> None:
    asked = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    preflight = httpx.options(f"{tcp}/api/chat", headers=asked)
    assert preflight.status_code == 204
    assert "POST" in preflight.headers["access-control-allow-methods"]
    client = ollama.Client(host=tcp)
    assert {model.model for model in client.list().models} >= {"tiny:latest"}
    assert httpx.delete(f"{tcp}/api/jarvis").status_code == 403
    client._client.close()


@pytest.fixture(scope="module")
def tcp() -> Iterator[str]:
    with (
        engine_server.home() as paths,
        engine_server.on_tcp(
            paths, OLLAMA_ORIGINS="https://friend.example,chrome-extension://*"
        ) as address,
    ):
        yield address


def _config(**engine: Any) -> Any:
    from jarvis.config import Config, EngineSettings

    return Config(engine=EngineSettings(**engine))


def _requests(served: Served) -> int:
    """How many requests use a model now."""
    return sum(each["requests"] for each in served.client.get("/api/ps").json()["models"])


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _is_idle(pid: int) -> bool:
    before = engine_server.processor_seconds(pid)
    time.sleep(0.4)
    return engine_server.processor_seconds(pid) - before < 0.05


def _tcp_listeners(pid: int) -> int:
    """How many listening TCP sockets a process has."""
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                listening.add(fields[9])
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = str(descriptor.readlink())
        found += target.startswith("socket:[") and target[8:-1] in listening
    return found
