"""``jarvis model`` and ``jarvis engine``, run as a user runs them, in a home of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from jarvis.paths import Paths
from tests import tiny_model
from tests.conftest import Cli
from tests.integration import engine_server


@pytest.fixture(scope="module")
def home() -> Iterator[Paths]:
    with engine_server.home() as paths:
        yield paths


@pytest.fixture
def jarvis(home: Paths) -> Cli:
    # Nothing listens at this address: no Ollama of the machine's is asked.
    return Cli({**engine_server.environment(home), "JARVIS_CHAT_PROVIDER": "embedded",
                "JARVIS_EMBEDDING_PROVIDER": "embedded"})  # fmt: skip


def test_the_engine_is_started_seen_and_stopped(jarvis: Cli) -> None:
    jarvis("engine", "stop")
    before = jarvis("engine", "status", "--json")
    assert json.loads(before.stdout)["running"] is False
    started = jarvis("engine", "start")
    assert (started.returncode, started.stdout) == (0, "")
    after = json.loads(jarvis("engine", "status", "--json").stdout)
    assert after["running"] is True
    assert after["pid"] > 0
    assert after["models"] == []
    assert "its socket only" in jarvis("engine", "status").stdout
    assert "stopped" in jarvis("engine", "stop").stderr
    assert "did not run" in jarvis("engine", "stop").stderr


def test_serve_says_when_the_address_is_taken(jarvis: Cli) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = jarvis("engine", "serve", "--host", "127.0.0.1", "--port", port)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_models_are_listed_with_what_they_are_used_for(jarvis: Cli) -> None:
    records = [json.loads(line) for line in jarvis("model", "list", "--json").stdout.splitlines()]
    by_name = {record["name"]: record for record in records}
    assert by_name["tiny"]["installed"] is True
    assert (
        by_name["all-minilm"] | {"installed": False, "used_for": "embedding"}
        == by_name["all-minilm"]
    )
    assert sum("chat" in record["used_for"] for record in records) == 1


def test_use_writes_the_configuration_and_keeps_its_comments(jarvis: Cli, home: Paths) -> None:
    home.config.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text("[chat]\n# my own words\ntemperature = 0.3\n")
    done = jarvis("model", "use", "tiny")
    assert (done.returncode, done.stdout) == (0, "")
    text = home.config_file.read_text()
    assert "# my own words" in text
    assert tomllib.loads(text) == {"chat": {"temperature": 0.3, "model": "tiny"}}
    status = json.loads(jarvis("model", "status", "--json").stdout)
    assert status["models"][0]["model"] == "tiny"
    assert status["models_bytes"] > 1_000_000
    home.config_file.unlink()


def test_unknown_models_are_exit_4_with_near_names(jarvis: Cli) -> None:
    for verb in ("use", "pull"):
        done = jarvis("model", verb, "qwen2.5-codr:0.5b")
        assert done.returncode == 4
        assert "qwen2.5-coder:0.5b" in done.stderr
    assert jarvis("model", "rm", "nope", "--yes").returncode == 4


def test_import_and_removal(jarvis: Cli, tmp_path: Path) -> None:
    file = tiny_model.write(tmp_path / "mine.gguf", context=999)
    assert jarvis("model", "import", str(file), "--name", "mine:1").returncode == 0
    assert '"name": "mine:1"' in jarvis("model", "list", "--json").stdout
    again = jarvis("model", "import", str(file), "--name", "mine:1")
    assert again.returncode == 2
    assert "already" in again.stderr
    assert jarvis("model", "rm", "mine:1").returncode == 2  # nobody to ask
    assert jarvis("model", "rm", "mine:1", "--yes").returncode == 0
    assert "mine:1" not in jarvis("model", "list", "--json").stdout


def test_a_damaged_import_leaves_nothing(jarvis: Cli, home: Paths, tmp_path: Path) -> None:
    file = tiny_model.write(tmp_path / "cut.gguf")
    file.write_bytes(file.read_bytes()[:100_000])
    done = jarvis("model", "import", str(file), "--name", "cut")
    assert done.returncode == 4
    assert "the file is cut" in done.stderr
    assert not list(home.models.glob("partial/import-*"))


def test_a_model_in_use_that_is_deleted_is_missed_with_the_way_out(
    jarvis: Cli, home: Paths, tmp_path: Path
) -> None:
    model = tiny_model.write(tmp_path / "m.gguf")
    assert jarvis("model", "import", str(model), "--name", "mine").returncode == 0
    assert jarvis("model", "use", "mine").returncode == 0
    gone = jarvis("model", "rm", "mine", "--yes")
    assert "chat.model still names it: jarvis model use" in gone.stderr
    asked = jarvis("ask", "--private", "--no-memory", "hello")
    assert asked.returncode == 4
    assert 'there is no model "mine" here' in asked.stderr
    assert "downloading" not in asked.stderr
    checked = [line for line in jarvis("doctor").stdout.splitlines() if " chat: " in line]
    assert len(checked) == 1
    assert checked[0].startswith("failed")
    home.config_file.unlink()


def test_doctor_explains_the_default_model_each_time(jarvis: Cli) -> None:
    for _ in range(2):  # the second time the choice is recorded
        checked = [line for line in jarvis("doctor").stdout.splitlines() if " chat: " in line]
        assert len(checked) == 1
        assert re.search(r"it is configured; \d+ cores and \d+ GiB of memory", checked[0])


def test_serve_says_at_which_address_it_can_be_reached(home: Paths, tmp_path: Path) -> None:
    environment = engine_server.environment(home) | {"JARVIS_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "jarvis", "engine", "serve", "--host", "127.0.0.1"]
    with subprocess.Popen(
        [*command, "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.terminate()
    assert re.search(r"serves on http://127\.0\.0\.1:\d+ and /", said)
