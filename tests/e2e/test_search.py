"""``jarvis search`` and ``jarvis reindex`` as a user calls them."""

from __future__ import annotations

import json

from tests.conftest import Cli


def test_search(cli: Cli, engine: object) -> None:
    assert engine
    for fact in ("I keep [bold] bees", "I live in Ghent", "My goal is to run a marathon"):
        assert cli("memory", "add", fact).returncode == 0
    done = cli("search", "who has bees?", "--json", "--explain")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert first["kind"] == "memory"
    assert first["content"].endswith("[bold] bees")
    assert first["rank"] == 1
    assert {"similarity", "score", "id", "importance", "created_at"} <= set(first)
    assert first["explanation"]["words"] == ["bee"]
    assert json.loads(done.stderr.splitlines()[0])["gate"]["memories"]["cosine"] > 0

    plain = cli("search", "bees", "--explain", "-k", "1")
    assert len(plain.stdout.splitlines()) == 1
    assert "[bold] bees" in plain.stdout
    assert "score" in plain.stderr
    assert "left out" in plain.stderr

    goals = cli("memory", "search", "what do I want", "--type", "goal", "--json")
    assert [json.loads(line)["type"] for line in goals.stdout.splitlines()] == ["GOAL"]
    assert cli("memory", "search", "bees", "--since", "tomorrow").stdout == ""
    assert cli("memory", "search", "bees", "--until", "tomorrow").stdout
    assert cli("session", "search", "bees").returncode == 0
    assert cli("doc", "search", "bees").returncode == 0

    again = cli("reindex", "--words", "--json")
    report = json.loads(again.stdout)
    assert report["worded"] == 3
    assert report["failed"] == {}


def test_mistakes_are_named(cli: Cli) -> None:
    for arguments, fault in (
        (("search", "x", "-k", "0"), "1 to 1,000"),
        (("search", "x", "-k", "-1"), "1 to 1,000"),
        (("search", "x", "--since", "the day of doom"), "no date"),
        (("memory", "search", "x", "--type", "wish"), "no type wish"),
        (("memory", "search", "x", "--min-importance", "7"), "between 0 and 1"),
        (("search", ""), "nothing to search for"),
    ):
        done = cli(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert fault in done.stderr, (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) <= 2
