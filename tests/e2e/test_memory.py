"""``jarvis memory`` as a user and as a script use it."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import Cli


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_life_of_some_memories(cli: Cli) -> None:
    added = cli("memory", "add", "I live in Bergen", "--at", "2026-05-01", "--json")
    assert added.returncode == 0, added.stderr
    (bergen,) = records(added.stdout)
    assert (bergen["id"], bergen["type"], bergen["source"]) == (1, "FACT", "manual")
    assert bergen["valid_from_at"].startswith("2026-05-01T00:00:00")

    moved = cli("memory", "add", "we moved to Oslo", "--at", "2026-06-01")
    assert "takes the place of 1" in moved.stderr

    piped = cli("memory", "add", stdin="- a dash first\nlist[str] [/] :smile:\n\n")
    assert piped.returncode == 0, piped.stderr
    listed = [row["content"] for row in records(cli("memory", "list", "--json").stdout)]
    assert listed == ["we moved to Oslo", "- a dash first", "list[str] [/] :smile:"]
    then = records(cli("memory", "list", "--at", "2026-05-20", "--json").stdout)
    assert [row["content"] for row in then] == ["I live in Bergen"]
    history = records(cli("memory", "history", "2", "--json").stdout)
    assert [(row["id"], row["state"]) for row in history] == [(1, "superseded"), (2, "active")]
    assert history[0]["superseded_by"] == 2

    shown = records(cli("memory", "show", "1", "--json").stdout)[0]
    assert (shown["content"], shown["session"], shown["message"]) == (
        "I live in Bergen",
        None,
        None,
    )
    edited = cli("memory", "edit", "3", "a", "dash", "later", "--importance", "0.9", "--json")
    assert records(edited.stdout)[0]["content"] == "a dash later"
    found = records(cli("memory", "search", "a dash later", "--json").stdout)
    assert found[0]["id"] == 3
    assert found[0]["rank"] == 1

    exported = cli("memory", "export").stdout
    gone = cli("memory", "forget", "1-3", "--yes", "--json")
    assert gone.returncode == 0, gone.stderr
    assert records(gone.stdout)[0]["verified"] is True
    assert records(gone.stdout)[0]["ids"] == [1, 2, 3]
    back = cli("memory", "import", "-", "--json", stdin=exported)
    assert records(back.stdout)[0]["added"] == {"memory": 3}
    assert cli("memory", "export").stdout == exported
    stats = records(cli("memory", "stats", "--json").stdout)[0]
    assert stats["state"] == {"active": 3, "superseded": 1}


def test_what_goes_wrong_says_so(cli: Cli) -> None:
    for arguments, code, words in (
        (["show", "7"], 5, "there is no memory 7"),
        (["forget", "7"], 5, "there is no memory 7"),
        (["forget"], 2, "say what to forget"),
        (["edit", "7", "words"], 5, "there is no memory 7"),
        (["add", "my card is 4111 1111 1111 1111"], 2, "looks like a secret"),
        (["list", "--sort", "beauty"], 2, "cannot sort"),
    ):
        done = cli("memory", *arguments)
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
        assert done.stdout == ""
    assert cli("memory", "add", "my card is 4111 1111 1111 1111", "--yes").returncode == 0
    refused = cli("memory", "forget", "--all")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert cli("memory", "forget", "--all", "--yes").returncode == 0
    assert cli("memory", "list").stdout == ""
