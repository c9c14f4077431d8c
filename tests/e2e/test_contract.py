"""The contract of every command: streams, exit codes, records, encodings, readers that go away."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jarvis.errors import ExitCode
from tests.conftest import Cli

NASTY = "first line\nsecond\tline \x1b]0;title\x07 [/] :smile: \u202e日本語"
CLEAN = "first line second line"


def shell(cli: Cli, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which ``jarvis`` is the program."""
    program = f'jarvis() {{ {shlex.quote(sys.executable)} -m jarvis "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", "set -o pipefail; " + program + line],
        capture_output=True,
        text=True,
        env={**cli.environment, **env},
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


@pytest.fixture
def dead(cli: Cli) -> Cli:
    """The program with nothing behind it: no database, no model server."""
    return Cli(
        {
            **cli.environment,
            "JARVIS_DATABASE_HOST": "127.0.0.1",
            "JARVIS_DATABASE_PORT": "1",
            "JARVIS_CHAT_PROVIDER": "ollama",
            "JARVIS_CHAT_HOST": "http://127.0.0.1:1",
        }
    )


def test_every_exit_code_is_met(cli: Cli, dead: Cli, tmp_path: Path) -> None:
    """One row a code of the table; 130 has a test of its own."""
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing follows")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    embedded = Cli({k: v for k, v in cli.environment.items() if "_DATABASE_" not in k})
    rows: list[tuple[ExitCode, Cli, list[str], dict[str, str]]] = [
        (ExitCode.OK, cli, ["session", "list"], {}),
        (ExitCode.FAILED, embedded, ["session", "list"], {"JARVIS_HOME": str(in_the_way)}),
        (ExitCode.USAGE, cli, ["session", "show", "many"], {}),
        (ExitCode.USAGE, cli, ["nosuchcommand"], {}),
        (ExitCode.DATABASE, dead, ["session", "list"], {}),
        (ExitCode.MODEL, cli, ["ask", "--private", "hi"], {
            "JARVIS_CHAT_PROVIDER": "ollama", "JARVIS_CHAT_HOST": "http://127.0.0.1:1"
        }),
        (ExitCode.NOT_FOUND, cli, ["session", "show", "999"], {}),
        (ExitCode.DOCUMENT, cli, ["doc", "ingest", str(broken)], {}),
    ]  # fmt: skip
    for code, program, arguments, env in rows:
        done = program(*arguments, env=env)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        if code is not ExitCode.OK:
            assert "Traceback" not in done.stderr
            assert done.stderr.count("error:") == 1
            assert code is ExitCode.DOCUMENT or done.stdout == ""


def test_ctrl_c_is_130(cli: Cli) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "jarvis", "ask", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=cli.environment,
    )
    assert waiting.stdin is not None
    waiting.stdin.write(b"x")
    waiting.stdin.flush()
    unread = bytearray(4)
    while fcntl.ioctl(waiting.stdin, termios.FIONREAD, unread) or any(unread):
        assert waiting.poll() is None
        time.sleep(0.02)  # it has read what is there, so it waits for more
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (ExitCode.INTERRUPTED, b"")
    assert b"Traceback" not in err


def test_lists_are_ndjson_and_pipes_are_whole_lines(cli: Cli) -> None:
    """A memory with everything in it: one line in a pipe, exact in JSON."""
    stored = cli("memory", "add", NASTY)
    assert stored.returncode == 0, stored.stderr
    long = "word " * 60
    assert cli("memory", "add", long).returncode == 0
    listed = cli("memory", "list", env={"COLUMNS": "20"})
    lines = listed.stdout.splitlines()
    assert len(lines) == 2
    assert "[/] :smile:" in listed.stdout
    assert long.strip() in listed.stdout
    assert not any(c in listed.stdout for c in "\x1b\x07\u202e")
    exact = [json.loads(line) for line in cli("memory", "list", "--json").stdout.splitlines()]
    assert [row["content"] for row in exact][1] == long.strip()
    assert exact[0]["created_at"][-6] in "+-"


def test_a_reader_that_goes_away(cli: Cli) -> None:
    for number in range(3):
        cli("memory", "add", f"fact number {number} of three")
    done = shell(cli, "jarvis memory list | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
    helped = shell(cli, "jarvis --help | head -1; echo ${PIPESTATUS[0]}")
    assert helped.stdout.splitlines()[-1] == "0"


def test_streams_that_are_closed(cli: Cli) -> None:
    assert shell(cli, "jarvis session list <&-").returncode == 0
    assert shell(cli, "jarvis session list >&-").returncode == 0
    assert shell(cli, "jarvis session show 999 2>&-").returncode == 5


def test_both_streams_in_one(cli: Cli) -> None:
    done = shell(cli, "jarvis session show 999 2>&1")
    assert done.returncode == 5
    assert done.stdout.splitlines() == ["error: there is no session 999",
                                        "hint: jarvis session list"]  # fmt: skip


@pytest.mark.parametrize(
    ("env", "styled"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colour(cli: Cli, env: dict[str, str], styled: bool) -> None:
    done = cli("session", "show", "999", env=env)
    assert ("\x1b[" in done.stderr) is styled


@pytest.mark.parametrize("env", [{"PYTHONIOENCODING": "ascii"}, {"LANG": "C", "LC_ALL": "C"}])
def test_poor_encodings(cli: Cli, env: dict[str, str]) -> None:
    assert cli("memory", "add", "I like 日本語 and 👩‍🌾").returncode == 0
    plain = cli("memory", "list", env=env)
    assert plain.returncode == 0
    assert "I like" in plain.stdout
    exact = cli("memory", "list", "--json", env=env)
    assert json.loads(exact.stdout)["content"] == "I like 日本語 and 👩‍🌾"


def test_global_options_stand_before_and_after(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    config.write_text("[chat]\nmodel = 'other'\n")
    env = {"JARVIS_CONFIG": ""}
    environment = {k: v for k, v in cli.environment.items() if k != "JARVIS_CHAT_MODEL"}
    program = Cli(environment)
    before = program("--config", str(config), "config", "show", "chat.model", env=env)
    after = program("config", "show", "chat.model", "--config", str(config), env=env)
    assert before.stdout == after.stdout == "other\n"


READING = (
    "memory list", "memory search x", "memory show 1", "memory history 1", "memory review",
    "memory stats", "memory export", "memory forget 1 --yes", "doc list", "doc show 1",
    "doc search x", "doc forget 1 --yes", "session list", "session show 1", "session search x",
    "session export 1", "session rename 1 x", "session delete 1 --yes", "search x", "export",
)  # fmt: skip
"""Commands about what is there already."""


def test_an_unknown_user_is_said_and_not_created(cli: Cli) -> None:
    assert cli("memory", "add", "a fact of the tester").returncode == 0
    for command in READING:
        done = cli("--user", "stranger", *command.split())
        assert (done.returncode, done.stdout) == (ExitCode.NOT_FOUND, ""), (command, done.stderr)
        error, hint = done.stderr.splitlines()
        assert error == "error: there is no user 'stranger'", command
        assert hint.startswith("hint: "), command


def test_settings_are_changed_and_comments_stay(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("# mine\n[chat]\n# the model\nmodel = 'a'  # why\n")
    env = {"JARVIS_CONFIG": str(config)}
    program = Cli({k: v for k, v in cli.environment.items() if k != "JARVIS_CHAT_MODEL"})
    assert program("config", "set", "chat.model", "b", env=env).returncode == 0
    text = config.read_text()
    assert "# mine" in text
    assert "# the model" in text
    assert "# why" in text
    assert program("config", "show", "chat.model", env=env).stdout == "b\n"
    wrong = program("config", "set", "chat.modle", "b", env=env)
    assert wrong.returncode == ExitCode.USAGE
    assert "chat.model" in wrong.stderr
    assert config.read_text() == text


def test_a_password_is_never_shown(cli: Cli) -> None:
    secret = "s3cret@word"
    env = {"JARVIS_DATABASE_URL": f"postgresql://me:{secret}@127.0.0.1:1/x"}
    for arguments in (["config", "show"], ["config", "show", "--json"], ["session", "list"]):
        done = cli(*arguments, env=env)
        assert secret not in done.stdout + done.stderr
        assert "word@" not in done.stdout + done.stderr


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[str]:
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\necho '[chat]' > \"$1\"; echo 'temperature = 0.5' >> \"$1\"\n")
    script.chmod(0o755)
    yield str(script)


def test_editing_the_settings(cli: Cli, editor: str, tmp_path: Path) -> None:
    config = tmp_path / "edited.toml"
    config.write_text("")
    done = cli("config", "edit", env={"EDITOR": editor, "VISUAL": "", "JARVIS_CONFIG": str(config)})
    assert done.returncode == 0, done.stderr
    assert "temperature" in config.read_text()


PROBE = """
import sys
before = set(sys.modules)
from jarvis.__main__ import main
code = main(sys.argv[1:])
heavy = {"rich", "psycopg", "ollama", "prompt_toolkit", "pypdfium2", "httpx", "numpy", "typer"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--version"], set()),
        (["--help"], {"typer"}),
        (["config", "show"], {"typer"}),
        (["completion", "bash"], {"typer"}),
        (["session", "list"], {"typer", "psycopg"}),
    ],
)
def test_nothing_heavy_is_loaded_where_it_is_not_used(
    cli: Cli, arguments: list[str], allowed: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        capture_output=True,
        text=True,
        env=cli.environment,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1].replace("'", '"')))
    assert loaded <= allowed


def test_version_needs_the_standard_library_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "jarvis", "--version"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"]},
        check=True,
    )
    assert done.stdout.startswith("jarvis ")


def test_help_has_groups_and_examples(cli: Cli) -> None:
    overview = cli("--help", env={"COLUMNS": "20"})
    assert overview.stdout.index("Talk:") < overview.stdout.index("What Jarvis knows:")
    assert "Examples:" in overview.stdout
    for command in ("ask", "memory", "session", "config"):
        assert "Examples:" in cli(command, "--help").stdout
