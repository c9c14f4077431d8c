"""Hostile input to every command; ``make fuzz`` spends more on it than the tests do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jarvis.cli import app as tree
from jarvis.config import DatabaseSettings
from jarvis.errors import ExitCode
from jarvis.security.text import clean
from jarvis.services import worker
from tests.faults.fuzzing import anything, costly, fuzzed, run, well_behaved, words
from tests.scripted_ollama import CUT, ScriptedOllama, last, piece, scripted_ollama

pytestmark = pytest.mark.owner

SKIPPED = {
    ("db", "psql"): "becomes another program",
    ("engine", "start"): "leaves a process behind",
    ("engine", "serve"): "serves until it is stopped",
    ("bench", "latency"): "measures for minutes",
}
"""Commands that cannot run inside this process, and why."""


def _commands() -> list[list[str]]:
    """Every command there is: from the tree, so that a new one is tried too."""
    import typer.main

    found: list[list[str]] = [[]]
    for name in tree.ENTRIES:
        root: Any = typer.main.get_command(tree.build(name))
        command = root.commands[name]
        below = getattr(command, "commands", None)
        found += [[name, word] for word in below] if below else [[name]]
    assert set(SKIPPED) <= set(map(tuple, found))
    return [command for command in found if tuple(command) not in SKIPPED]


COMMANDS = [*_commands(), ["erase", "--everything"], ["db", "restore", "--yes"]]

MODELS = [
    command
    for command in COMMANDS
    if command and command[0] in {"ask", "chat", "model", "engine", "reindex", "tool", "worker"}
]
"""Commands that mostly talk to a model server."""


@pytest.fixture
def program(
    settings: DatabaseSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The environment of a program with a database and no model; gives its folder."""
    for name, value in {
        "JARVIS_HOME": str(tmp_path / "home"),
        "JARVIS_USER": "tester",
        "JARVIS_DATABASE_HOST": settings.host,
        "JARVIS_DATABASE_USER": settings.user,
        "JARVIS_DATABASE_DBNAME": settings.dbname,
        "JARVIS_CHAT_PROVIDER": "ollama",
        "JARVIS_CHAT_HOST": "http://127.0.0.1:9",
        "JARVIS_EMBEDDING_PROVIDER": "ollama",
        "JARVIS_EMBEDDING_HOST": "http://127.0.0.1:9",
        "JARVIS_MEMORY_EXTRACT": "false",
        "EDITOR": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(worker, "spawn", lambda _app: None)
    monkeypatch.setattr(worker.run, "__kwdefaults__", {"linger": 0.0})
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        assert run(["memory", "add", f"Hostile fact {number} \x1b[31m [/] :smile:"]).code == 0
    yield tmp_path
    assert run(["memory", "list"]).code == 0, "the program no longer works"


@pytest.fixture
def talking(program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedOllama]:
    """The same with a chat model that answers what it is told to."""
    with scripted_ollama() as server:
        monkeypatch.setenv("JARVIS_CHAT_HOST", f"http://{server.host}")
        monkeypatch.setenv("JARVIS_CHAT_MODEL", "scripted")
        yield server


_CALLS = "remember recall forget list_memories search_documents ingest_document nothing".split()
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}
_request = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(2, 9)},
    optional={
        "method": st.sampled_from(["tools/call", "tools/list", "ping", "resources/read", "x/y"]),
        "params": st.one_of(
            anything,
            st.fixed_dictionaries({"name": st.sampled_from(_CALLS), "arguments": anything}),
        ),
    },
)


class TestFuzz:
    """Named so that ``make fuzz`` finds it."""

    @fuzzed
    @given(command=st.sampled_from(COMMANDS), rest=st.lists(words, max_size=4), stdin=st.binary())
    @example(command=["doctor"], rest=[], stdin=b"")
    def test_arguments(
        self, program: Path, command: list[str], rest: list[str], stdin: bytes
    ) -> None:
        arguments = [*command, *rest]
        if command[:1] == ["erase"]:  # what it does when told so is tested elsewhere
            arguments = [word for word in arguments if word not in {"--yes", "-y"}]
        well_behaved(run(arguments, stdin), arguments)

    @fuzzed
    @given(command=st.sampled_from(MODELS), rest=st.lists(words, max_size=4), stdin=st.binary())
    @example(command=["model", "calibrate"], rest=[], stdin=b"")
    @example(command=["model", "use"], rest=["scripted", "--user", "\x1b[2J"], stdin=b"")
    def test_arguments_with_a_model(
        self, talking: ScriptedOllama, command: list[str], rest: list[str], stdin: bytes
    ) -> None:
        """The commands that end at once where no model answers, and so are hardly tried above."""
        arguments = [*command, *rest]
        well_behaved(run(arguments, stdin), arguments)

    @fuzzed
    @given(stdin=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
    def test_stdin(self, program: Path, stdin: bytes) -> None:
        well_behaved(run(["memory", "add", "-", "--yes"], stdin), stdin)

    @costly
    @given(stdin=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
    @example(b"one\rtwo\n\xff\x00\n\n \nlast")
    def test_a_chat_answers_every_line(self, talking: ScriptedOllama, stdin: bytes) -> None:
        lines = [line.decode("utf-8", "replace").strip() for line in stdin.split(b"\n")]
        said = [line for line in lines if clean(line).strip()]
        ran = run(["chat", "--private", "--no-tools"], stdin)
        well_behaved(ran, stdin)
        if ran.code == ExitCode.OK:
            assert ran.stdout.splitlines() == ["fine"] * len(said)
        else:  # a line of invisible characters only is no message, and that is said
            assert any(line and not clean(line).strip() for line in lines), ran.stderr

    @costly
    @given(
        texts=st.lists(st.one_of(words, st.binary(max_size=40)), max_size=5),
        ending=st.sampled_from(["last", "cut", "nothing", "error", "nonsense"]),
        json=st.booleans(),
    )
    @example(texts=["\x1b]52;c;aG", "k=\x07\u202e"], ending="last", json=False)
    @example(texts=["\x1b]52;c;aGk=\x07\x9b\u202e"], ending="last", json=True)
    def test_whatever_the_model_sends(
        self,
        talking: ScriptedOllama,
        texts: list[str | bytes],
        ending: str,
        json: bool,
    ) -> None:
        ends: dict[str, list[Any]] = {
            "last": [last()],
            "cut": [CUT],
            "nothing": [],
            "error": [b'{"error": "\\u001b[31m broken"}\n'],
            "nonsense": [b'{"message": [], "done": 7}\n', b"[]\n", last()],
        }
        sent = [text if isinstance(text, bytes) else piece(text) for text in texts]
        talking.chats = [[*sent, *ends[ending]]]
        arguments = ["ask", "--no-tools", *(["--json"] if json else []), "What is new?"]
        ran = run(arguments)
        well_behaved(ran, (texts, ending))
        # The question is kept, whatever came of it.
        assert "What is new?" in run(["session", "search", "What is new"]).stdout

    @costly
    @given(
        messages=st.lists(st.one_of(_request, anything), max_size=4),
        noise=st.binary(max_size=60),
    )
    def test_an_mcp_client(self, program: Path, messages: list[Any], noise: bytes) -> None:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO}
        lines = [json.dumps(message).encode() for message in (hello, *messages)]
        ran = run(["mcp"], b"\n".join([*lines[:1], noise, *lines[1:], b""]))
        assert ran.code == ExitCode.OK, ran
        answers = [json.loads(line) for line in ran.stdout.splitlines()]
        assert any(answer.get("id") == 1 and "result" in answer for answer in answers)
        assert all(answer["jsonrpc"] == "2.0" for answer in answers)

    @fuzzed
    @given(data=st.data())
    def test_import_files(self, program: Path, data: st.DataObject) -> None:
        """An export with pieces exchanged: refused in one line, or taken, and nothing between."""
        lines = run(["export"]).stdout.splitlines()
        assert len(lines) > 2
        index = data.draw(st.integers(0, len(lines) - 1))
        record: dict[str, Any] = json.loads(lines[index])
        key = data.draw(st.sampled_from([*sorted(record), "unknown"]))
        record[key] = data.draw(anything)
        lines[index] = json.dumps(record)
        source = program / "import.ndjson"
        source.write_text("\n".join(lines) + data.draw(st.sampled_from(["", "\n", "\n{", "\n[]"])))
        before = run(["memory", "list", "--json"]).stdout
        ran = run(["import", str(source)])
        well_behaved(ran, record)
        if ran.code:
            assert run(["memory", "list", "--json"]).stdout == before

    @fuzzed
    @given(content=st.binary(max_size=200))
    def test_import_of_anything(self, program: Path, content: bytes) -> None:
        source = program / "anything"
        source.write_bytes(content)
        well_behaved(run(["import", str(source)]), content)

    @costly
    @given(content=st.binary(max_size=200))
    def test_a_restore_of_anything_changes_nothing(self, program: Path, content: bytes) -> None:
        source = program / "b.zip"
        source.write_bytes(content)
        before = run(["memory", "list", "--json"]).stdout
        for more in (["--yes"], ["--rehearse"]):
            ran = run(["db", "restore", str(source), *more])
            well_behaved(ran, content)
            assert ran.code == ExitCode.FAILED
        assert run(["memory", "list", "--json"]).stdout == before

    @costly
    @given(data=st.data())
    def test_a_restore_of_a_damaged_backup_changes_nothing(
        self, program: Path, data: st.DataObject
    ) -> None:
        good = program / "good.zip"
        if not good.exists():
            assert run(["db", "backup", str(good)]).code == ExitCode.OK
        content = bytearray(good.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= data.draw(st.integers(1, 255))
        bad = program / "bad.zip"
        bad.write_bytes(content[: data.draw(st.sampled_from([len(content), at, at + 1]))])
        before = run(["memory", "list", "--json"]).stdout
        ran = run(["db", "restore", str(bad), "--yes"])
        well_behaved(ran, at)
        # Whole, or nothing: a byte that no checksum covers (a date) may be another.
        assert run(["memory", "list", "--json"]).stdout == before
