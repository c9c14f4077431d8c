"""The output contract: colour, width, records, JSON, encodings, readers that go away."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.cli import output
from jarvis.cli.output import Column, Output


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "terminal", "colour"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_gets_colour(env: Mapping[str, str], terminal: bool, colour: bool) -> None:
    out = Output.of(Tty() if terminal else io.StringIO(), env)
    assert out.colour is colour
    assert out.terminal is terminal
    assert (out.width is not None) is terminal


def test_a_closed_stream_takes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    output.emit_text("nobody reads this")
    output.emit_records([{"a": 1}], json=True)
    assert not output.stdout().terminal


class Colour(StrEnum):
    RED = "red"


@dataclass
class Row:
    id: int
    content: str
    kind: Colour
    created_at: datetime
    score: float = 1.0
    tags: tuple[str, ...] = ()


OSLO = datetime(2026, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
ROW = Row(1, "line one\nline\ttwo \x1b[31m", Colour.RED, OSLO, float("nan"), ("a", "b"))


def test_json_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.emit_records([ROW, ROW], json=True) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first) == {
        "id": 1,
        "content": ROW.content,
        "kind": "red",
        "created_at": "2026-05-01T12:30:00+02:00",
        "score": None,
        "tags": ["a", "b"],
    }


def test_a_naive_time_gets_an_offset() -> None:
    assert datetime.fromisoformat(output.jsonable(datetime(2026, 5, 1))).tzinfo is not None


def test_a_piped_record_is_one_line_and_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    output.emit_records(
        [ROW, Row(2, "x" * 300, Colour.RED, OSLO)], json=False, columns=["id", "content"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["1\tline one\\nline\\ttwo \\x1b[31m", "2\t" + "x" * 300]


@given(st.text())
def test_any_text_is_one_piped_line_and_survives_json(text: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    before, sys.stdout = sys.stdout, stream
    try:
        output.emit_records([{"t": text}], json=False)
        output.emit_records([{"t": text}], json=True)
    finally:
        sys.stdout = before
    data = stream.buffer.getvalue().decode()
    plain, exact = data.removesuffix("\n").split("\n")
    assert json.loads(exact) == {"t": text}
    assert "\t" not in plain


def test_user_text_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[/] [bold] [/items] list[str] :smile: [the docs](u)"
    output.emit_records([{"content": text}], json=False)
    output.emit_text(text)
    output.note(text)
    found = capsys.readouterr()
    assert found.out == f"{text}\n{text}\n"
    assert found.err == f"{text}\n"


def test_an_error_is_two_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    from jarvis.errors import JarvisError

    output.print_error(JarvisError("no \x1b[2Jmodel\n[/]", "pull it"))
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err == "error: no \\x1b[2Jmodel [/]\nhint: pull it\n"


def test_an_object_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit_object({"name": "a", "text": "x\ny", "none": None}, json=False)
    assert capsys.readouterr().out == "name\ta\ntext\tx\\ny\nnone\t\n"


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Tty:
    stream = Tty()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return stream


def test_columns_align_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyte

    stream = on_terminal(monkeypatch, 40)
    rows = [
        {"id": 1, "content": "日本語 and more words that fold", "end": "A"},
        {"id": 22, "content": "👩 e\u0301 [/]", "end": "B"},
        {"id": 3, "content": "two\nlines", "end": "C"},
    ]
    output.emit_records(rows, json=False, columns=["id", Column("content", flexible=True), "end"])
    screen = pyte.Screen(40, 24)
    pyte.Stream(screen).feed(stream.getvalue().replace("\n", "\r\n"))
    shown = screen.buffer
    ends = {
        next((x for x in range(40) if shown[y][x].data == mark), None)
        for mark in "ABC"
        for y in range(24)
        if any(shown[y][x].data == mark for x in range(30, 40))
    }
    assert len(ends) == 1
    text = "\n".join(line.rstrip() for line in screen.display)
    for word in ("日本語", "more", "fold", "[/]", "two", "lines"):
        assert word in text.replace(" ", "") or word in text


def test_a_cell_whose_width_terminals_disagree_about_is_followed_by_an_absolute_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = on_terminal(monkeypatch, 40)
    rows = [{"a": "👩‍🌾", "b": "x"}, {"a": "long cell", "b": "y"}]
    output.emit_records(rows, json=False, columns=["a", "b"])
    start = len("long cell") + 2
    assert f"\x1b[{start + 1}Gx" in stream.getvalue()


def test_a_narrow_terminal_stacks_records(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch, 20)
    output.emit_records(
        [{"id": 1, "created_at": OSLO, "content": "a longer text that folds"}], json=False
    )
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 20
    assert " ".join(" ".join(lines).split()).endswith("a longer text that folds")


CHILD = """
from jarvis.cli import output
output.prepare_streams()
output.emit_records(({"n": n, "t": "日 👩"} for n in range(COUNT)), json=JSON)
"""


def child(count: int, json_: bool, **env: str) -> subprocess.CompletedProcess[bytes]:
    code = CHILD.replace("COUNT", str(count)).replace("JSON", str(json_))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, **env}, check=False
    )


def test_ascii_streams_lose_nothing() -> None:
    plain = child(1, False, PYTHONIOENCODING="ascii")
    assert (plain.returncode, plain.stdout) == (0, b"0\t\\u65e5 \\U0001f469\n")
    exact = child(1, True, PYTHONIOENCODING="ascii")
    assert json.loads(exact.stdout) == {"n": 0, "t": "日 👩"}


def test_an_ascii_terminal_gets_rows_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch, 40)
    monkeypatch.setattr(Tty, "encoding", "ascii")
    output.emit_records([{"content": "many…: " + "日本語 and words " * 5}], json=False)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert "many...: " in lines[1]
    assert "\\u65e5" in " ".join(lines)
    assert stream.getvalue().isascii()


def test_a_text_in_a_pipe_acts_on_no_terminal_behind_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.emit_text("a\x1b]52;c;aGk=\x07b\x1b[2Jc\u202ed\n\te")
    assert capsys.readouterr().out == "abcd\n\te\n"


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    code = CHILD.replace("COUNT", "100000").replace("JSON", "False")
    script = tmp_path / "child.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", '"$0" "$1" | head -1; echo ${PIPESTATUS[0]}', sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_times_are_short_on_a_terminal_only() -> None:
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert len(output.show_value(moment, terminal=True)) == len("2026-05-01 12:00")
    assert datetime.fromisoformat(output.show_value(moment)) == moment
