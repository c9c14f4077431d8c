"""The tool protocol, the registry, and the built-in tools that need no server."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest

from jarvis.errors import NotFound
from jarvis.tools import BadTool, Effect, ToolContext, ToolError, tool
from jarvis.tools.clock import clock
from jarvis.tools.files import MAX_BYTES, read_file
from jarvis.tools.registry import Registry

NOW = dt.datetime(2026, 11, 30, 14, 5, tzinfo=ZoneInfo("Europe/Oslo"))
CONTEXT = ToolContext(now=NOW)


@tool(Effect.PURE)
def sample(
    context: ToolContext,
    text: str,
    count: int = 1,
    ratio: float | None = None,
    loud: bool = False,
    colour: Literal["red", "green"] = "red",
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Shows every kind
    of parameter.

    More that the model need not read.

    Args:
        text: what to show,
            over two lines
        count: how often

    Raises:
        ToolError: never.
    """
    return {
        "text": text,
        "count": count,
        "ratio": ratio,
        "loud": loud,
        "colour": colour,
        "tags": tags,
        "year": context.now.year,
    }


def test_the_schema_comes_from_the_signature() -> None:
    function = sample.definition()["function"]
    assert function["name"] == "sample"
    assert function["description"] == "Shows every kind of parameter."
    assert function["parameters"] == {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "description": "what to show, over two lines"},
            "count": {"type": "integer", "description": "how often"},
            "ratio": {"type": "number"},
            "loud": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }


def test_what_is_meant_without_doubt_is_accepted() -> None:
    sent = {"text": 5, "count": "3", "ratio": None, "loud": "true", "colour": "Green", "tags": "a"}
    values = sample.check(sent)
    assert values == {"text": "5", "count": 3, "loud": True, "colour": "green", "tags": ["a"]}
    assert sample.check('{"text": "x", "tags": "[\\"a\\", \\"b\\"]"}')["tags"] == ["a", "b"]
    assert '"year": 2026' in sample.call(values, CONTEXT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing text"),
        ({"txt": "x"}, "did you mean text"),
        ({"text": "x", "count": 1.5}, "whole number"),
        ({"text": "x", "count": "many"}, "whole number"),
        ({"text": "x", "count": float("nan")}, "whole number"),
        ({"text": "x", "count": True}, "whole number"),
        ({"text": "x", "count": float("inf")}, "whole number"),
        ({"text": "x", "count": "1e999"}, "whole number"),
        ("[" * 100_000, "not valid JSON"),
        ({"text": ["x"]}, "must be text"),
        ({"text": "x", "colour": "blue"}, "one of: red, green"),
        ({"text": "x", "loud": "perhaps"}, "true or false"),
        ({"text": "x", "context": "y"}, "no parameter 'context'"),
        ("{broken", "not valid JSON"),
        ("[]", "must be an object"),
    ],
)
def test_wrong_arguments_are_said(arguments: object, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        sample.check(arguments)
    assert said in caught.value.message


def test_a_function_that_json_cannot_call_is_refused() -> None:
    def silent(x: str) -> str:
        return x

    def untyped(x):  # type: ignore[no-untyped-def]
        """Has no types."""
        return x

    def complicated(x: Path) -> str:
        """Takes a path."""
        return str(x)

    def starred(*x: str) -> str:
        """Takes any number."""
        return str(x)

    for function in (silent, untyped, complicated, starred):
        with pytest.raises(BadTool):
            tool(Effect.PURE)(function)


def test_any_failure_of_a_tool_is_one_line() -> None:
    @tool(Effect.PURE)
    def broken() -> str:
        """Fails."""
        raise RuntimeError("two\nlines")

    with pytest.raises(ToolError) as caught:
        broken.call({}, CONTEXT)
    assert caught.value.message == "broken failed: RuntimeError: two lines"


def test_built_in_tools_and_their_effects() -> None:
    registry = Registry.load(entry_points=False)
    assert registry.problems == []
    assert {entry.name: entry.effect.value for entry in registry} == {
        "calculator": "pure",
        "datetime": "pure",
        "recall": "reads",
        "search_documents": "reads",
        "remember": "writes",
        "forget": "writes",
        "read_file": "reads",
        "weather": "network",
        "web_search": "network",
        "fetch_page": "network",
    }
    with pytest.raises(NotFound) as caught:
        registry.get("calulator")
    assert "calculator" in caught.value.hint


OWN = '''
from jarvis.tools import Effect, calculator, tool

@tool(Effect.PURE)
def shout(text: str) -> str:
    """Shouts."""
    return text.upper()
'''


def test_tools_of_the_users_own(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir(mode=0o700)
    (folder / "good.py").write_text(OWN)
    (folder / "broken.py").write_text("this is not python")
    (folder / "again.py").write_text(OWN.replace("def shout", "def calculator"))
    (folder / "open.py").write_text(OWN.replace("def shout", "def hidden"))
    (folder / "open.py").chmod(0o666)
    registry = Registry.load(folder, entry_points=False)
    assert registry.get("shout").call({"text": "hi"}, CONTEXT) == "HI"
    assert registry.get("shout").source == str(folder / "good.py")
    assert registry.get("calculator").source == "built-in"
    assert "hidden" not in registry.tools
    assert [Path(line.split(":")[0]).name for line in registry.problems] == [
        "again.py",
        "broken.py",
        "open.py",
    ]


def test_a_broken_file_is_one_line_and_the_others_load(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir(mode=0o700)
    broken = {
        "syntax": "def broken(:\n",
        "leaves": "import sys\nsys.exit('not today')\n",
        "raises": "raise ValueError('one\\ntwo\\x1b[31m')\n",
        "missing": "import no_such_module_anywhere\n",
    }
    for name, text in broken.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "works.py").write_text(OWN)
    found = Registry.load(folder, entry_points=False)
    assert len(found.problems) == len(broken)
    assert all(name in " ".join(found.problems) for name in broken)
    assert not any("\n" in problem or "\x1b" in problem for problem in found.problems)
    assert "shout" in found.tools


def test_tools_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shouting.py").write_text(OWN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[jarvis.tools]\nshouting = shouting\ngone = no_such_module\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry.load()
    assert registry.get("shout").source == "shouting"
    assert any("no_such_module" in line for line in registry.problems)


def say(**arguments: str) -> str:
    return clock.call(clock.check(arguments), CONTEXT)


def test_now_here_and_elsewhere() -> None:
    assert say() == "Monday, 2026-11-30 14:05:00 CET (UTC+01:00)"
    assert say(zone="tokyo").startswith("Monday, 2026-11-30 22:05:00 JST")
    assert say(zone="UTC-05:30").endswith("(UTC-05:30)")
    assert say(zone="new york").startswith("Monday, 2026-11-30 08:05:00 EST")


def test_conversion() -> None:
    said = say(action="convert", when="2026-12-24 18:30", zone="Europe/Oslo", to="Asia/Tokyo")
    assert "2026-12-25 02:30:00 JST" in said


@pytest.mark.parametrize(
    ("when", "until", "expected"),
    [
        ("2026-11-30", "2026-12-24", "24 days"),
        ("2024-02-28", "2024-03-01", "2 days"),
        ("2026-12-24", "2026-11-30", "minus 24 days"),
        ("2026-11-30", "2026-12-07", "5 working days"),
        ("2025-01-31", "2026-03-01", "1 year, 1 month, 1 day"),
        ("today", "tomorrow", "1 day from"),
        ("monday", "friday", "minus 3 days"),
        ("24 December 2026", "December 31st, 2026", "7 days"),
        ("2026-03-28 12:00", "2026-03-29 12:00", "0 days 23 hours"),
    ],
)
def test_difference(when: str, until: str, expected: str) -> None:
    assert expected in say(action="difference", when=when, to=until)


@pytest.mark.parametrize(
    ("when", "amount", "expected"),
    [
        ("2026-01-31", "1 month", "Saturday, 2026-02-28"),
        ("2024-02-29", "1 year", "Friday, 2025-02-28"),
        ("2026-11-30", "3 weeks and 2 days", "Wednesday, 2026-12-23"),
        ("2026-11-30", "-45 days", "Friday, 2026-10-16"),
        ("2026-03-29 01:30", "1 hour", "Sunday, 2026-03-29 03:30:00"),
        ("18:30", "45 minutes", "Monday, 2026-11-30 19:15:00"),
    ],
)
def test_add(when: str, amount: str, expected: str) -> None:
    assert say(action="add", when=when, to=amount).startswith(expected)


@pytest.mark.parametrize(
    ("when", "to", "expected"),
    [
        ("2024-02-01", "2024-03-01", "29 days"),
        ("2026-12-24 18:30", "Asia/Tokyo", "JST"),
        ("2026-11-30", "3 weeks", "2026-12-21"),
        ("now", "now", "14:05:00"),
        ("2026-11-30", "24 December 2026", "24 days"),
    ],
)
def test_an_action_that_is_left_out_shows_in_its_arguments(
    when: str, to: str, expected: str
) -> None:
    assert expected in say(when=when, to=to)


def test_calendar() -> None:
    said = say(action="calendar", when="2026-12-31")
    assert "day 365 of the year, ISO week 53 of 2026" in said
    assert "not a leap year" in said
    assert "28 29 30 31" in said


@pytest.mark.parametrize(
    "arguments",
    [
        {"zone": "Atlantis"},
        {"zone": "UTC+25"},
        {"when": "03/04/2026", "action": "calendar"},
        {"when": "the day after", "action": "calendar"},
        {"when": "25:99", "action": "calendar"},
        {"action": "add", "to": "soon"},
        {"action": "add", "to": "9999999999 days"},
        {"action": "add", "to": "99999999 years"},
        {"action": "explode"},
    ],
)
def test_what_no_clock_can_tell_is_an_error(arguments: dict[str, str]) -> None:
    with pytest.raises(ToolError):
        say(**arguments)


def read(path: str, *folders: Path) -> str:
    return read_file.call({"path": path}, ToolContext(now=NOW, folders=folders))


def test_read_file_inside_allowed_folders(tmp_path: Path) -> None:
    allowed = tmp_path / "notes"
    (allowed / "deep").mkdir(parents=True)
    (allowed / "deep" / "a.txt").write_text("hello ørret", encoding="utf-8")
    (allowed / "old.txt").write_bytes("Grüße aus dem schönen Österreich".encode("latin-1"))
    assert read("deep/a.txt", allowed) == "hello ørret"
    assert read(str(allowed / "deep" / "a.txt"), allowed) == "hello ørret"
    assert "Grüße" in read("old.txt", allowed)
    assert read("deep", allowed) == "a.txt"
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("b")
    assert read("b.txt", allowed, other) == "b"


def test_read_file_escapes_nowhere(tmp_path: Path) -> None:
    allowed, outside = tmp_path / "in", tmp_path / "out"
    allowed.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("s3cret")
    (tmp_path / "in2").mkdir()
    (tmp_path / "in2" / "secret").write_text("s3cret")
    (allowed / "link").symlink_to(outside / "secret")
    (allowed / "folder").symlink_to(outside)
    (allowed / ".env").write_text("s3cret")
    (allowed / ".git").mkdir()
    (allowed / ".git" / "config").write_text("s3cret")
    for path in (
        "link",
        "folder/secret",
        "../out/secret",
        str(outside / "secret"),
        str(tmp_path / "in2" / "secret"),
        "/etc/passwd",
        ".env",
        ".git/config",
        "nothing",
        "a\0b",
        "~/../../etc/passwd",
    ):
        with pytest.raises(ToolError):
            read(path, allowed)
    with pytest.raises(ToolError, match=r"tools\.folders"):
        read("x")


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("fine")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    assert read("link", tmp_path) == "fine"


def test_read_file_is_bounded_and_reads_text_only(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("é" * MAX_BYTES)
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\x01")
    os.mkfifo(tmp_path / "pipe")
    assert len(read("big", tmp_path).encode()) < MAX_BYTES + 100
    assert "first 256 of 512 KiB" in read("big", tmp_path)
    for name in ("binary", "pipe"):
        with pytest.raises(ToolError):
            read(name, tmp_path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("What is the capital of Norway?", set()),
        ("hi", set()),
        ("I moved to Oslo in 2019 and I have 2 cats.", set()),
        ("Please note my new window.", set()),
        ("What is 2847 × 391?", {"calculator"}),
        ("15% of 80", {"calculator"}),
        ("what's 12 plus 30?", {"calculator"}),
        ("the square root of 2", {"calculator"}),
        ("use the calculator", {"calculator"}),
        ("What time is it in Tokyo?", {"datetime"}),
        ("How many days until 2026-12-24?", {"datetime"}),
        ("Will it rain in Bergen tomorrow?", {"weather"}),
        ("search the web for chess players", {"web_search"}),
        ("what does https://example.com/page say?", {"fetch_page"}),
        ("summarise notes.txt", {"read_file"}),
        ("Remember that I am allergic to nuts", {"remember"}),
        ("forget that", {"forget"}),
        ("What does the contract say about notice?", {"search_documents"}),
    ],
)
def test_what_a_message_calls_for(words: str, expected: set[str]) -> None:
    tools = Registry.load(entry_points=False)
    assert {entry.name for entry in tools if entry.called_for(words)} == expected


def test_a_tool_without_a_pattern_is_called_for_by_its_own_words() -> None:
    @tool(Effect.PURE)
    def moon_phase() -> str:
        """Tells the phase of the moon, waxing or waning."""
        return "full"

    assert moon_phase.called_for("what moon phase is it?")
    assert moon_phase.called_for("is it waxing now?")
    assert not moon_phase.called_for("hello there")
