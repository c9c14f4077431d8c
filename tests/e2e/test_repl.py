"""The true REPL in a terminal, over a scripted assistant: whole transcripts."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.driver import Person

Open = Callable[..., Person]
STATS = "50 tokens (20 read) · first after 120 ms · 30 tokens/s"
GREETING = "Jarvis 0.1.0 – /help, Ctrl-D leaves"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def open_chat(tmp_path: Path, log: Path) -> Iterator[Open]:
    people: list[Person] = []

    def start(columns: int = 80, rows: int = 24, **env: str) -> Person:
        person = Person(
            "-m",
            "tests.e2e.scripted",
            env={"JARVIS_HOME": str(tmp_path / "home"), "SCRIPT_LOG": str(log), **env},
            columns=columns,
            rows=rows,
        )
        people.append(person)
        return person

    yield start
    for person in people:
        person.kill()


def ready(person: Person) -> Person:
    person.until(lambda: person.at_prompt)
    return person


def asked(log: Path) -> list[str]:
    if not log.exists():
        return []
    return [line[5:] for line in log.read_text().splitlines() if line.startswith("turn ")]


def test_a_talk(open_chat: Open) -> None:
    person = ready(open_chat())
    person.until("new session · scripted · 3 facts known · /help")
    person.send("hello there")
    person.until(STATS)
    ready(person)
    assert person.transcript() == [
        GREETING,
        "› hello there",
        "You said: hello there",
        STATS,
        "›",
    ]
    assert person.leave() == 0
    assert person.transcript()[-1] == "left"


def test_keys(open_chat: Open, log: Path) -> None:
    person = ready(open_chat())
    person.type("one\x1b\rtwo\x0athree")
    person.until("· three")
    person.type("\r")
    person.until(STATS)
    ready(person)
    person.type("cleared\x03")
    person.until(lambda: person.at_prompt)
    person.type("\x03")
    person.until("Ctrl-D or /exit leaves")
    person.type("\x12one")
    person.until("I-search backward")
    person.type("\r")
    person.until("· three")
    person.type("\x03")
    ready(person)
    person.type("/ren\t")
    person.until("/rename")
    person.type("\x03")
    ready(person)
    assert asked(log) == [repr("one\ntwo\nthree")]
    assert person.leave() == 0


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("marked", [True, False])
def test_a_paste_of_thirty_lines_is_one_message(
    open_chat: Open, log: Path, end: str, marked: bool
) -> None:
    person = ready(open_chat())
    text = end.join(f"line {n}" for n in range(30))
    person.type(f"\x1b[200~{text}\x1b[201~" if marked else text)
    person.until("[pasted 30 lines]" if marked else "line 29")
    person.look(0.3)
    assert asked(log) == []
    person.type("\r")
    person.until(STATS)
    assert asked(log) == [repr("\n".join(f"line {n}" for n in range(30)))]


def test_a_megabyte_is_pasted(open_chat: Open, log: Path) -> None:
    person = ready(open_chat())
    text = "0123456789abcde\n" * 65536
    person.type(f"\x1b[200~{text}\x1b[201~")
    person.until("[pasted 65536 lines]")
    person.type("\r")
    person.until(lambda: bool(asked(log)))
    assert asked(log) == [repr(text.rstrip("\n"))] or asked(log) == [repr(text)]


def test_slashes_that_are_text(open_chat: Open, log: Path) -> None:
    person = ready(open_chat())
    person.send("//etc is a folder")
    person.until(STATS)
    ready(person)
    person.send("/nothing like it")
    person.until("error: there is no command /nothing")
    ready(person)
    assert asked(log) == [repr("/etc is a folder")]


def test_typing_ahead_is_one_message(open_chat: Open, log: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text("word " * 300)
    person = ready(open_chat())
    person.send(f"file {answer}")
    person.until("word word")
    person.type("first line\rsecond")
    person.until("› second")
    person.type(" line\r")
    person.until(lambda: len(asked(log)) == 2)
    person.until(lambda: person.text.count(STATS) == 2)
    assert asked(log)[1] == repr("first line\nsecond line")
    lines = person.transcript()
    assert lines.index("› first line") + 1 == lines.index("  second line")


def test_ctrl_c_keeps_the_partial_answer_and_the_draft(open_chat: Open, log: Path) -> None:
    person = ready(open_chat())
    person.send("slow")
    person.until("word3")
    person.type("my next")
    person.until("› my next")
    person.type("\x03")
    person.until("(interrupted)")
    person.until("› my next")
    kept = next(line for line in log.read_text().splitlines() if line.startswith("kept"))
    assert "word0 word1 word2 word3" in kept
    assert "word0 word1 word2 word3" in person.text
    person.type("\x03")
    ready(person)
    person.send("hello again")
    person.until("You said: hello again")


def test_ten_times_ctrl_c_in_a_second(open_chat: Open, log: Path) -> None:
    person = ready(open_chat(SCRIPT_CLEANUP="0.5"))
    person.send("slow")
    person.until("word3")
    for _ in range(10):
        person.type("\x03")
        person.look(0.09)
    ready(person)
    assert sum(line.startswith("kept") for line in log.read_text().splitlines()) == 1
    assert person.text.count("(interrupted)") == 1
    person.send("still alive")
    person.until("You said: still alive")
    ready(person)
    assert person.leave() == 0


def test_ctrl_c_while_nothing_comes(open_chat: Open) -> None:
    person = ready(open_chat())
    person.send("hang")
    person.until("reading")
    started = time.monotonic()
    person.type("\x03")
    ready(person)
    assert time.monotonic() - started < 10  # the work would have taken a minute
    assert "(interrupted)" in person.text


def test_errors_and_a_database_that_is_down(open_chat: Open) -> None:
    person = ready(open_chat())
    person.send("broken")
    person.until("hint: try again")
    ready(person)
    person.send("down")
    person.until("error: the database is down")
    person.until("› down")  # nothing was stored, so the words are back in the line
    person.type("\x03")
    ready(person)
    assert person.leave() == 0


def test_nothing_from_outside_acts_on_the_terminal(open_chat: Open) -> None:
    person = ready(open_chat())
    person.send("escape")
    person.until(STATS)
    assert "abcde f" in person.transcript()
    for sequence in (b"\x1b]0;", b"\x1b[31m", b"\x9b2J", "\u202e".encode()):
        assert sequence not in person.raw


ANSWER = (
    "# Title\n\nSome **bold** words.\n\n```python\n\treturn 1\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
)


def test_an_answer_of_two_hundred_lines(open_chat: Open, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text(ANSWER + "\n".join(f"- item {n}" for n in range(200)))
    person = ready(open_chat())
    person.send(f"file {answer}")
    person.until(STATS)
    ready(person)
    lines = person.transcript()
    at = lines.index("Title")
    assert lines[at : at + 8] == [
        "Title",
        "Some bold words.",
        "── python",
        "    return 1",
        "───",
        "a │ b",
        "──┼──",
        "1 │ 2",
    ]
    assert lines[at + 8 : -2] == [f"• item {n}" for n in range(200)]


def test_the_window_is_resized_twenty_times(open_chat: Open, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text("\n".join(f"<{n}>" for n in range(400)))
    person = ready(open_chat(columns=60, rows=30, SCRIPT_PAUSE="0.005"))
    person.send(f"file {answer}")
    person.until("<10>")
    for step in range(20):
        person.resize(20 + 7 * (step % 8), 30)
        person.look(0.08)
    person.until("<399>")
    person.until(lambda: person.at_prompt)
    words = [w for w in " ".join(person.lines).split() if w.startswith("<")]
    assert words == [f"<{n}>" for n in range(400)]


def test_the_history_is_private_and_shared(open_chat: Open, tmp_path: Path) -> None:
    first, second = ready(open_chat()), ready(open_chat())
    first.send("from the first")
    first.until("You said: from the first")
    second.send("from the second")
    second.until("You said: from the second")
    ready(first)
    ready(second)
    assert first.leave() == second.leave() == 0
    history = tmp_path / "home" / "state" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert sorted(history.read_text().splitlines()) == ["from the first", "from the second"]
    third = ready(open_chat())
    third.type("\x1b[A")
    third.until("› from the")


def test_the_editor(open_chat: Open, log: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'written\\nelsewhere\\n' > \"$1\"\n")
    editor.chmod(0o755)
    person = ready(open_chat(EDITOR=str(editor), VISUAL=""))
    person.type("draft\x18\x05")
    person.until("· elsewhere")
    person.type("\r")
    person.until(STATS)
    ready(person)
    person.send("/edit")
    person.until(lambda: person.screen.display[person.screen.cursor.y].startswith("· elsewhere"))
    assert asked(log) == [repr("written\nelsewhere")]


def test_a_private_chat_is_not_in_the_history(open_chat: Open, tmp_path: Path) -> None:
    person = ready(open_chat())
    person.send("/private on")
    person.until("nothing is stored, and this is")
    ready(person)
    person.until("private: nothing is stored ·")
    person.send("my secret")
    person.until("You said: my secret")
    ready(person)
    assert person.leave() == 0
    history = tmp_path / "home" / "state" / "history"
    assert history.read_text().splitlines() == ["/private on"]


def test_a_narrow_window(open_chat: Open) -> None:
    person = ready(open_chat(columns=20))
    person.send("hi")
    person.until("You said: hi")
    ready(person)
    person.send("/help")
    person.until("Ctrl-X Ctrl-E")
    assert person.leave() == 0


@pytest.mark.parametrize(
    "env", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "xterm"}, {"LANG": "C", "LC_ALL": "C"}]
)
def test_environments(open_chat: Open, env: dict[str, str]) -> None:
    person = ready(open_chat(**env))
    person.send("colour")
    person.until(STATS)
    ready(person)
    styled = b"\x1b[2m" in person.raw
    assert styled is ("NO_COLOR" not in env)
    assert person.leave() == 0


def test_ascii_streams(open_chat: Open) -> None:
    person = open_chat(PYTHONIOENCODING="ascii")
    person.until(lambda: person.at_prompt)
    person.send("plain")
    person.until("You said: plain")
    assert all(byte < 128 for byte in person.raw)
    person.until(lambda: person.at_prompt)
    assert person.leave() == 0


def test_a_dumb_terminal_gets_a_plain_line_loop(open_chat: Open, log: Path) -> None:
    person = open_chat(TERM="dumb")
    person.until(lambda: person.at_prompt)
    person.type("hello\n")
    person.until("You said: hello")
    person.look(0.3)
    person.type("slow\n")
    person.until("word3")
    person.type("\x03")
    person.until("(interrupted)")
    person.look(0.3)
    person.type("still there\n")
    person.until("You said: still there")
    person.look(0.3)
    assert b"\x1b" not in person.raw
    assert asked(log) == [repr("hello"), repr("slow"), repr("still there")]
    assert person.leave() == 0


def test_a_home_that_cannot_be_written(open_chat: Open, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("state", "cache"):  # root writes into read-only folders, but not into files
        (home / name).write_text("")
    person = ready(open_chat())
    person.send("hello")
    person.until(STATS)
    ready(person)
    assert person.leave() == 0


def test_the_terminal_is_sane_afterwards(open_chat: Open) -> None:
    import termios

    person = ready(open_chat())
    before = termios.tcgetattr(person.process.child_fd)
    assert not before[3] & termios.ECHO
    person.send("hello")
    person.until(STATS)
    ready(person)
    person.type("\x04")
    person.until("left")
    after = termios.tcgetattr(person.process.child_fd)
    wanted = termios.ECHO | termios.ICANON | termios.ISIG
    assert after[3] & wanted == wanted
    assert person.screen.cursor.hidden is False
