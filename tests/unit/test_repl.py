"""The parts of the REPL, each by itself: history, Ctrl-C, typing ahead, pastes, commands."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from jarvis.errors import UsageError
from jarvis.repl import actions, commands, loop, talk
from jarvis.repl.chat import Chat
from jarvis.repl.commands import COMMANDS, Call
from jarvis.repl.completer import ChatCompleter
from jarvis.repl.history import MAX_ENTRY, ChatHistory, HistoryFile, decode, encode
from jarvis.repl.interrupts import GRACE, PATIENCE, Interrupts, State
from jarvis.repl.keyboard import TypedAhead
from jarvis.repl.pastes import SHOWN_LINES, Pastes
from jarvis.repl.picker import Chooser
from jarvis.repl.talk import age
from jarvis.repl.terminal import Surface
from jarvis.services.app import App

# History


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_entry_is_one_line_and_comes_back(entry: str) -> None:
    line = encode(entry)
    assert "\n" not in line
    assert decode(line) == entry


def test_the_file_is_private_and_newest_first(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "state" / "history")
    for entry in ("one", "two\nlines", "two\nlines", "three"):
        file.append(entry)
    assert file.newest_first() == ["three", "two\nlines", "one"]
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_what_is_not_stored(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history")
    assert not file.append("  \n")
    assert not file.append("x" * (MAX_ENTRY + 1))
    assert not HistoryFile(tmp_path / "h", limit=0).append("x")


def test_a_history_that_outgrew_its_limit_is_shortened(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history", limit=100)
    file.path.write_text("".join(f"line {n}\n" for n in range(150)))
    assert len(file.newest_first()) == 100
    assert file.path.read_text().splitlines() == [f"line {n}" for n in range(50, 150)]


def test_a_home_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not HistoryFile(blocked / "state" / "history").append("x")


def _write(path: Path, name: int) -> None:
    file = HistoryFile(path)
    for number in range(200):
        file.append(f"chat {name} line {number} " + "x" * 200)


def test_eight_chats_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "history"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, name)) for name in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    entries = HistoryFile(path).newest_first()
    assert sorted(entries) == sorted(
        f"chat {name} line {number} " + "x" * 200 for name in range(8) for number in range(200)
    )


def test_the_chat_loads_old_entries_behind_new_ones(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history")
    file.append("old")
    history = ChatHistory(file)

    async def load() -> list[str]:
        return [entry async for entry in history.load()]

    history.append_string("new")
    assert asyncio.run(load())[:1] == ["new"]
    assert "old" in asyncio.run(load())
    history.append_string(" secret")
    history.store = False
    history.append_string("private")
    assert file.newest_first() == ["new", "old"]
    assert asyncio.run(load())[:3] == ["private", " secret", "new"]


# Ctrl-C


def test_a_press_asks_first_and_breaks_later() -> None:
    machine = Interrupts()
    machine.begin()
    machine.press(10.0)
    assert machine.stopped
    assert not machine.due(10.0 + GRACE / 2)
    assert machine.due(10.1 + GRACE)
    assert machine.state is State.BREAKING
    assert not machine.due(11.0)


def test_ten_presses_break_once() -> None:
    machine = Interrupts()
    machine.begin()
    breaks = 0
    for step in range(100):
        now = step / 50
        if step % 5 == 0 and step < 50:
            machine.press(now)
        breaks += machine.due(now)
    assert breaks == 1


def test_a_clean_up_that_has_begun_is_left_alone() -> None:
    machine = Interrupts()
    machine.begin()
    machine.press(0.0)
    machine.stopping(0.1)
    machine.press(0.2)
    assert machine.stopped
    assert not any(machine.due(step / 10) for step in range(100))


def test_a_clean_up_that_hangs_can_be_broken_out_of() -> None:
    machine = Interrupts()
    machine.begin()
    machine.press(0.0)
    assert machine.due(GRACE)
    machine.press(GRACE + PATIENCE / 2)
    assert not machine.due(GRACE + PATIENCE / 2)
    machine.press(GRACE + PATIENCE)
    assert machine.due(GRACE + PATIENCE)


def test_at_the_prompt_a_press_does_nothing() -> None:
    machine = Interrupts()
    machine.press(1.0)
    assert not machine.stopped
    assert not machine.due(9.0)
    machine.begin()
    machine.end()
    machine.press(2.0)
    assert machine.state is State.IDLE


def typed(*keys: tuple[str, str]) -> TypedAhead:
    ahead = TypedAhead()
    for name, data in keys:
        ahead.key(name, data)
    return ahead


def test_typing_ahead_is_one_message_with_the_usual_keys() -> None:
    ahead = typed(
        *((c, c) for c in "helo"),
        ("c-h", "\x7f"),
        *((c, c) for c in "lo wrld"),
        ("c-w", "\x17"),
        *((c, c) for c in "world"),
        ("c-m", "\r"),
        ("<bracketed-paste>", "a\r\nb"),
        ("up", ""),
        ("c-m", "\r"),
    )
    assert ahead.take() == "hello world\na\nb\n"
    assert ahead.take() == ""
    assert typed(("x", "x"), ("c-u", "")).text == ""


# Pastes


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_long_paste_is_a_mark_and_comes_back(end: str) -> None:
    pastes = Pastes()
    text = end.join(f"line {n}" for n in range(30))
    mark = pastes.mark(text)
    assert mark == "[pasted 30 lines]"
    wanted = "\n".join(f"line {n}" for n in range(30))
    assert pastes.expand(f"look: {mark} ok") == f"look: {wanted} ok"
    assert pastes.mark(text) == "[pasted 30 lines #2]"
    assert pastes.mark_before(f"x {mark}") == mark
    assert pastes.mark_before("x") == ""


def test_a_short_paste_is_text_and_a_typed_mark_stays() -> None:
    pastes = Pastes()
    assert pastes.mark("a\r\nb") == "a\nb"
    assert pastes.mark("\n" * (SHOWN_LINES - 1)) == "\n" * (SHOWN_LINES - 1)
    assert pastes.expand("[pasted 3 lines]") == "[pasted 3 lines]"


# Commands


def test_the_table_is_whole() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert set(names) == set(actions.ACTIONS)
    assert set(names) == set(
        "help new sessions resume rename search model system memory remember forget doc file edit"
        " retry undo copy export stats explain private exit".split()
    )
    assert set(commands.ALIASES.values()) <= set(names)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/help", "help", ""),
        ("  /HELP  new ", "help", "new"),
        ("/resume trip to Oslo", "resume", "trip to Oslo"),
        ("/q", "exit", ""),
    ],
)
def test_calls(text: str, name: str, argument: str) -> None:
    call = commands.parse(text)
    assert isinstance(call, Call)
    assert (call.command.name, call.argument) == (name, argument)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello /new", "hello /new"),
        ("//etc is a folder", "/etc is a folder"),
        ("/usr/bin/python is what?", "/usr/bin/python is what?"),
        ("/new\nsecond line", "/new\nsecond line"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_what_is_text(text: str, message: str) -> None:
    assert commands.parse(text) == message


def test_mistakes_say_what_to_do() -> None:
    with pytest.raises(UsageError) as caught:
        commands.parse("/reneme x")
    assert "/rename" in caught.value.hint
    with pytest.raises(UsageError, match="needs TITLE"):
        commands.parse("/rename")


def completed(text: str, folder: Path) -> list[str]:
    completer = ChatCompleter(
        {
            "session": lambda: [("7", "Trip to Oslo"), ("12", "Budget")],
            "document": lambda: [("3", "my report.pdf"), ("4", "notes.md")],
        }
    )
    before = Path.cwd()
    os.chdir(folder)
    try:
        found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [completion.text for completion in found]
    finally:
        os.chdir(before)


def test_completion(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "folder").mkdir()
    assert completed("/re", tmp_path) == ["resume ", "rename ", "remember ", "retry "]
    assert completed("/resume ", tmp_path) == ["7", "12"]
    assert completed("/resume osl", tmp_path) == ["7"]
    assert completed("/file ", tmp_path) == ["folder/", "notes.md"]
    assert completed("/file no", tmp_path) == ["notes.md"]
    (tmp_path / "my report.pdf").write_text("")
    assert completed("/doc a.md no", tmp_path) == ["notes.md"]
    assert completed("/doc my re", tmp_path) == ["my report.pdf"]
    assert completed("/doc f", tmp_path) == ["forget ", "folder/"]
    assert completed("/docs forget ", tmp_path) == ["3", "4"]
    assert completed("/doc forget 3 note", tmp_path) == ["4"]
    assert completed("hello", tmp_path) == []
    assert completed("//re", tmp_path) == []
    assert completed("/undo ", tmp_path) == []


def test_every_completer_of_the_table_exists() -> None:
    known = {"file", "doc", *loop.sources(Chat(cast(App, None)))}
    assert {command.completes for command in COMMANDS} - {""} <= known


def test_what_was_attached_is_asked_again_with_its_question() -> None:
    chat = Chat(cast(App, None), private=True, files=[("a.txt", "red")])
    chat.asks("What colour?")
    chat.files.clear()
    chat.keep("What colour?", "Blue.")
    talk.retry(chat, cast(Surface, None), "")
    assert chat.queued == "What colour?"
    assert chat.files == [("a.txt", "red")]
    assert not chat.past


def test_the_toolbar_cuts_the_title_and_not_the_rest() -> None:
    chat = Chat(cast(App, None), session_id=7, title="Ferries " * 9, model_name="m", facts=3)
    shown = chat.toolbar(60)
    assert len(shown) <= 60
    assert shown.startswith("7 Ferries")
    assert shown.endswith("… · m · 3 facts known · /help")


def test_a_title_from_a_model_acts_on_no_terminal() -> None:
    completer = ChatCompleter({"session": lambda: [("7", "a\x1b]0;b\x07\u202ec")]})
    found = completer.get_completions(
        Document("/resume "), CompleteEvent(completion_requested=True)
    )
    shown = next(iter(found)).display_meta_text
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


# Choosing


def test_choosing_by_arrows_and_by_words() -> None:
    chooser = Chooser([f"row {n}" for n in range(20)] + ["Trip to Oslo"])
    chooser.move(-1)
    assert chooser.chosen == 20
    assert len(chooser.visible()) == 10
    chooser.filter("oslo trip")
    assert chooser.chosen == 20
    chooser.move(1)
    assert chooser.chosen == 20
    chooser.filter("nothing like it")
    chooser.move(1)
    assert chooser.visible() == []


@pytest.mark.parametrize(
    ("gone", "shown"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=30), "1 d ago"),
        (timedelta(days=70), "2 mo ago"),
        (timedelta(days=800), "2 y ago"),
    ],
)
def test_ages(gone: timedelta, shown: str) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    assert age(now - gone, now) == shown


# The page about the chat


def page_part(name: str) -> str:
    page = (Path(__file__).parents[2] / "docs" / "repl.md").read_text(encoding="utf-8")
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]


def test_the_page_shows_the_tables() -> None:
    """``python -m jarvis.repl.commands`` writes them."""
    assert page_part("commands") == commands.as_markdown(commands.help_lines(), "command")
    assert page_part("keys") == commands.as_markdown(commands.KEYS, "key")
