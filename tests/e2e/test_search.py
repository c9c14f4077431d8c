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
    everything = ("--min-importance", "0", "--min-confidence", "0.1", "--type", "fact")
    among = cli("search", "bees", *everything, "--json")
    assert [json.loads(line)["kind"] for line in among.stdout.splitlines()] == ["memory"] * 2
    assert "conversations and passages of documents are left out" in among.stderr
    for group in ("session", "doc"):
        shared = ("--since", "last week", "--until", "tomorrow", "-k", "3", "--explain")
        done = cli(group, "search", "bees", *shared, "--min-similarity", "0.1", "--json")
        assert done.returncode == 0, done.stderr

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
        (("session", "search", "x", "--type", "goal"), "--type cannot be asked of conversations"),
        (("session", "search", "x", "--category", "work"), "--category cannot be asked of"),
        (("doc", "search", "x", "--min-importance", "0.5"), "--min-importance cannot be asked of"),
        (("doc", "search", "x", "--min-confidence", "0.5"), "passages of documents"),
        (("session", "search", "x", "-k", "1000000"), "1 to 1,000"),
        (("search", ""), "nothing to search for"),
    ):
        done = cli(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert fault in done.stderr, (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) <= 2
