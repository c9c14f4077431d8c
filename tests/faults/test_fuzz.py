"""Hostile input everywhere; ``make fuzz`` spends more on it than the tests do.

What must hold: an exit code of the table, one line that says what is wrong, nothing unexpected,
no control character on the terminal, and a program and an engine that go on working.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis.config import DatabaseSettings
from jarvis.errors import ConfigError, ExitCode, JarvisError
from jarvis.services import backup, worker
from jarvis.services.extraction.parse import UnreadableReply, parse_reply
from jarvis.store.database import external_conninfo

BUDGET = 20 if os.environ.get("JARVIS_FUZZ") else 1
"""How many times more examples ``make fuzz`` tries."""

fuzzed = settings(
    max_examples=40 * BUDGET,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
cheap = settings(fuzzed, max_examples=200 * BUDGET)

COMMANDS = [
    ["memory", word] for word in "list search show add edit forget history review stats".split()
] + [
    *(["session", word] for word in "list show search rename export delete".split()),
    *(["doc", word] for word in "list show search forget ingest".split()),
    *([word] for word in "search ask export import privacy completion".split()),
    *(["config", word] for word in ("show", "path")),
    *(["tool", word] for word in ("list", "run")),
    *(["db", word] for word in ("status", "roles", "backup")),
    ["worker", "status"],
    [],
]
"""What answers without a model, a terminal, or an end to this process."""

_OPTIONS = (
    "--json --limit -k -n --type --user --yes --all --at --session --help --since --format -f - -- "
    "-1 0 1 99999999999999999999 1e309 nan FACT 2026-13-99 2026-02-30T25:61 /dev/null "
    "../../etc/passwd %s %(x)s {} {0.__class__} [/] [bold] :smile: * ? \\ \" ' `id` $(id) ;"
)
HOSTILE = [
    *_OPTIONS.split(),
    "",
    " ",
    "\n",
    "'; DROP TABLE users; --",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J\x9b31m",
    "\u202eabc\u2066",
    "\U000e0041\U000e0042",
    "a" * 20_000,
    "\udcff\udc80",
    "👩‍🌾" * 50,
]
words = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\0"), max_size=40),
)


@dataclass
class Ran:
    """One run of the program inside this process."""

    code: int
    stdout: str
    stderr: str


def run(arguments: list[str], stdin: bytes = b"") -> Ran:
    from jarvis.cli.run import run as main

    written = [io.BytesIO(), io.BytesIO()]
    streams = [io.TextIOWrapper(raw, "utf-8") for raw in written]
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                code = main(arguments)
            except SystemExit as left:
                code = int(left.code or 0)
        texts = []
        for stream, raw in zip(streams, written, strict=True):
            stream.flush()
            texts.append(raw.getvalue().decode("utf-8", "replace"))
        return Ran(code, *texts)
    finally:
        sys.stdin = before


def well_behaved(ran: Ran, arguments: object) -> None:
    assert ran.code in set(ExitCode) - {ExitCode.INTERRUPTED}, (arguments, ran)
    assert "error: unexpected " not in ran.stderr, (arguments, ran.stderr)
    assert "Traceback" not in ran.stderr, (arguments, ran.stderr)
    if ran.code:
        assert ran.stderr, (arguments, "failed without a word")
    for stream in (ran.stdout, ran.stderr):
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(stream), (arguments, stream)


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
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(worker, "spawn", lambda _app: None)
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        assert run(["memory", "add", f"Hostile fact {number} \x1b[31m [/] :smile:"]).code == 0
    yield tmp_path
    assert run(["memory", "list"]).code == 0, "the program no longer works"


PIECES = ['{"facts":[', "]}", '"a"', ",", "```json\n", "<think>", "</think>", "1. ", "- ", "\n"]
PIECES += ["\\u65", "\ud800", "[[", "{", "}", '"', "[", "]", "null", "7"]
"""What replies of small models are made of."""

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = "input prompt messages options format tools stream truncate name".split()
_body = st.one_of(
    _json,
    # A model that cannot chat: no request makes it think for long.
    st.fixed_dictionaries(
        {"model": st.sampled_from(["all-minilm", "nope", "", "../x", "all-minilm:latest"])},
        optional=dict.fromkeys(_KEYS, _json),
    ),
)


class TestFuzz:
    """Named so that ``make fuzz`` finds it."""

    @fuzzed
    @given(command=st.sampled_from(COMMANDS), rest=st.lists(words, max_size=4), stdin=st.binary())
    def test_arguments(
        self, program: Path, command: list[str], rest: list[str], stdin: bytes
    ) -> None:
        arguments = [*command, *rest]
        well_behaved(run(arguments, stdin), arguments)

    @fuzzed
    @given(stdin=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
    def test_stdin(self, program: Path, stdin: bytes) -> None:
        well_behaved(run(["memory", "add", "-", "--yes"], stdin), stdin)

    @fuzzed
    @given(data=st.data())
    def test_import_files(self, program: Path, data: st.DataObject) -> None:
        """An export with pieces exchanged: refused in one line, or taken, and nothing between."""
        lines = run(["export"]).stdout.splitlines()
        assert len(lines) > 2
        index = data.draw(st.integers(0, len(lines) - 1))
        record: dict[str, Any] = json.loads(lines[index])
        key = data.draw(st.sampled_from([*sorted(record), "unknown"]))
        record[key] = data.draw(_json)
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

    @cheap
    @given(reply=st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES)).map("".join)))
    def test_replies_of_an_extraction(self, reply: str) -> None:
        try:
            facts = parse_reply(reply)
        except UnreadableReply:
            return
        assert all(fact.strip() for fact in facts)

    @cheap
    @given(url=st.one_of(st.text(max_size=80), st.text(max_size=80).map("postgresql://".__add__)))
    def test_database_addresses(self, url: str) -> None:
        try:
            info = external_conninfo(DatabaseSettings(url=url or "x", host="h"))
        except ConfigError as error:
            assert "\n" not in error.message
            return
        assert isinstance(info["port"], int)

    @cheap
    @given(password=st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
    def test_any_password_survives_the_address(self, password: str) -> None:
        from urllib.parse import quote

        url = f"postgresql://me:{quote(password, safe='')}@db.example:6000/mine"
        info = external_conninfo(DatabaseSettings(url=url))
        assert (info["user"], info["password"]) == ("me", password)
        assert (info["host"], info["port"], info["dbname"]) == ("db.example", 6000, "mine")

    @fuzzed
    @given(data=st.data())
    def test_backup_files(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        path = tmp_path_factory.mktemp("fuzz") / "b.zip"
        manifest = data.draw(
            st.one_of(_json, st.just({"format": 1, "tables": [{"name": "users"}]}))
        )
        with zipfile.ZipFile(path, "w") as pack:
            pack.writestr("manifest.json", json.dumps(manifest))
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        with pytest.raises(JarvisError):
            backup.verify(path)

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
