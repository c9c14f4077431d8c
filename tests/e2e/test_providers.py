"""Which model server the program uses, and what it says when there is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REAL_PATHS, Cli


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def tcp_server(tmp_path_factory: pytest.TempPathFactory, engine: Path) -> Iterator[str]:
    """Our engine as an Ollama on a TCP port, with a home of its own."""
    port = free_port()
    home = tmp_path_factory.mktemp("tcp")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jarvis",
            "engine",
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ],
        env={**os.environ, "JARVIS_HOME": str(home), "JARVIS_MODELS": str(REAL_PATHS.models)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    process.wait(30)


@pytest.mark.model
def test_a_server_that_is_named_is_used_and_the_embedded_engine_is_not_started(
    cli: Cli, tcp_server: str, tmp_path: Path
) -> None:
    home = tmp_path / "h"
    environment = {"JARVIS_HOME": str(home), "OLLAMA_HOST": tcp_server}
    added = cli("memory", "add", "User plays the oboe", env=environment)
    assert added.returncode == 0, added.stderr
    found = cli("memory", "search", "Which instrument do I play?", "--json", env=environment)
    assert json.loads(found.stdout.splitlines()[0])["similarity"] > 0
    asked = cli("ask", "--json", "--no-tools", "Which instrument do I play?", env=environment)
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["answer"]
    status = json.loads(cli("engine", "status", "--json", env=environment).stdout)
    assert status["running"] is False


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"JARVIS_CHAT_PROVIDER": "ollama", "OLLAMA_HOST": "127.0.0.1:1"}, "127.0.0.1:1"),
        ({"OLLAMA_HOST": "127.0.0.1:1"}, "127.0.0.1:1"),
        ({"OLLAMA_HOST": "no-such-host.invalid"}, "no-such-host.invalid:11434"),
        ({"OLLAMA_HOST": "0.0.0.0:1"}, "127.0.0.1:1"),
    ],
)
def test_nothing_listening_is_one_line_with_the_address(
    cli: Cli, environment: dict[str, str], address: str
) -> None:
    done = cli("ask", "hi", env=environment)
    assert done.returncode == 4
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    assert address in lines[0]
    assert "hint:" in done.stderr


def test_the_message_is_kept_when_no_model_answers(cli: Cli) -> None:
    cli("ask", "my locker has number 4711", env={"OLLAMA_HOST": "127.0.0.1:1"})
    listed = cli("session", "list", "--json")
    session = json.loads(listed.stdout.splitlines()[0])
    shown = cli("session", "show", str(session["id"]), "--json")
    assert "4711" in shown.stdout


def test_search_goes_on_by_words_and_says_so(cli: Cli) -> None:
    down = {"OLLAMA_HOST": "127.0.0.1:1"}
    added = cli("memory", "add", "User keeps bees in Ljubljana", env=down)
    assert added.returncode == 0, added.stderr
    found = cli("memory", "search", "Ljubljana bees", "--json", env=down)
    assert found.returncode == 0, found.stderr
    assert "Ljubljana" in found.stdout
    assert "words" in found.stderr


@pytest.mark.model
def test_a_model_that_is_not_installed_is_named(cli: Cli, tcp_server: str) -> None:
    done = cli("ask", "hi", "--model", "qwen2.5-codr:0.5b", env={"OLLAMA_HOST": tcp_server})
    assert done.returncode == 4
    assert '"qwen2.5-codr:0.5b" is not installed' in done.stderr
    assert "jarvis model pull" in done.stderr


def test_background_processes_do_not_hold_the_callers_pipe(
    cli: Cli, engine: Path, tmp_path: Path
) -> None:
    """``x=$(jarvis …)`` returns although the command starts what then stays."""
    script = 'x=$("$PYTHON" -m jarvis memory add "User likes tea"); echo "done: $x"'
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env={**cli.environment, "PYTHON": sys.executable},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"done:" in done.stdout
