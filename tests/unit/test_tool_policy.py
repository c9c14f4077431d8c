"""The policy: who allowed what, and whose words a call is made of."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jarvis.config import ToolSettings
from jarvis.tools import Effect, Tool, tool
from jarvis.tools.policy import Asker, Consents, Policy, Question, Reply, Verdict, foreign_words


@tool(Effect.PURE)
def pure(text: str) -> str:
    """Does nothing else."""
    return text


@tool(Effect.READS)
def reads(query: str, limit: int = 5) -> str:
    """Reads."""
    return f"{query}{limit}"


@tool(Effect.WRITES)
def writes(content: str = "", number: int = 0) -> str:
    """Writes."""
    return f"{content}{number}"


@tool(Effect.NETWORK)
def network(url: str) -> str:
    """Uses the network."""
    return url


def policy(tmp_path: Path, asker: Asker | None = None, **settings: Any) -> Policy:
    return Policy(ToolSettings(**settings), Consents(tmp_path / "s" / "consents.json"), asker)


def answering(reply: Reply, asked: list[Question] | None = None) -> Asker:
    def ask(question: Question) -> Reply:
        if asked is not None:
            asked.append(question)
        return reply

    return ask


ALLOWED: dict[str, Any] = {"reads": "allow", "writes": "allow", "network": "allow"}


@pytest.mark.parametrize(
    ("called", "arguments", "said"),
    [
        (reads, {"query": "Oslo"}, ["What do I know about OSLO?"]),
        (reads, {"query": "ferry times"}, ["What are the times of the ferry?"]),
        (reads, {"query": "東京"}, ["東京の天気は？"]),
        (writes, {"content": "I live in Oslo."}, ["please remember: I  live in oslo"]),
        (writes, {"number": 12}, ["forget number 12"]),
        (network, {"url": "https://example.com/a?b=c"}, ["open https://example.com/a?b=c, please"]),
        (network, {"url": "example.com"}, ["read (example.com)."]),
        (network, {"url": "Bergen"}, ["weather in Oslo", "and in Bergen?"]),
    ],
)
def test_the_users_own_words(called: Tool, arguments: Mapping[str, Any], said: list[str]) -> None:
    assert foreign_words(called, arguments, said) == ()


@pytest.mark.parametrize(
    ("called", "arguments", "said"),
    [
        (reads, {"query": "password"}, ["What do I like?"]),
        (writes, {"content": "the user lives in Oslo"}, ["I live in Oslo"]),
        (writes, {"content": "in Oslo I live"}, ["I live in Oslo"]),
        (writes, {"number": 12}, ["forget number 112"]),
        (network, {"url": "https://example.com/?q=secret"}, ["open https://example.com/"]),
        (network, {"url": "example.com"}, ["open example.com.org"]),
        (network, {"url": "example.com"}, ["open evil-example.com"]),
        (network, {"url": "http://10.0.0.1"}, ["10 0 0 1 http"]),
        (reads, {"query": "/etc/passwd"}, ["etc passwd"]),
        (reads, {"query": "cat"}, ["concatenate"]),
    ],
)
def test_somebody_elses_words(called: Tool, arguments: Mapping[str, Any], said: list[str]) -> None:
    assert foreign_words(called, arguments, said)


def test_foreign_words_are_asked_about_even_when_all_is_allowed(tmp_path: Path) -> None:
    asked: list[Question] = []
    rules = policy(tmp_path, answering(Reply.ALWAYS, asked), **ALLOWED)
    assert rules.refusal(network, {"url": "http://evil.example/x"}, ["hello"]) == ""
    assert "http://evil.example/x" in asked[0].reason
    assert not asked[0].may_always
    assert Effect.NETWORK not in rules.consents


@pytest.mark.parametrize("called", [reads, writes, network])
def test_foreign_words_are_refused_where_nobody_answers(tmp_path: Path, called: Tool) -> None:
    name = next(iter(called.parameters["properties"]))
    reason = policy(tmp_path, **ALLOWED).refusal(called, {name: "http://evil.example"}, ["hello"])
    assert "nobody can be asked" in reason


def test_a_pure_tool_needs_no_words(tmp_path: Path) -> None:
    assert policy(tmp_path).refusal(pure, {"text": "2 * 3"}, ["hello"]) == ""


def test_the_network_is_off_until_allowed_once(tmp_path: Path) -> None:
    said = ["open example.com"]
    alone = policy(tmp_path)
    assert "jarvis tool allow network" in alone.refusal(network, {"url": "example.com"}, said)
    assert alone.barred(pure) == ""
    assert "jarvis tool allow network" in alone.barred(network)
    asked: list[Question] = []
    talking = policy(tmp_path, answering(Reply.ALWAYS, asked))
    assert talking.refusal(network, {"url": "example.com"}, said) == ""
    assert talking.refusal(network, {"url": "example.com"}, said) == ""
    assert len(asked) == 1
    assert policy(tmp_path).refusal(network, {"url": "example.com"}, said) == ""
    alone.consents.revoke(Effect.NETWORK)
    assert alone.standing(Effect.NETWORK) is Verdict.ASK


def test_a_yes_is_for_this_call_only(tmp_path: Path) -> None:
    asked: list[Question] = []
    rules = policy(tmp_path, answering(Reply.YES, asked))
    for _ in range(2):
        assert rules.refusal(network, {"url": "example.com"}, ["open example.com"]) == ""
    assert len(asked) == 2


def test_a_no_is_a_refusal(tmp_path: Path) -> None:
    rules = policy(tmp_path, answering(Reply.NO))
    assert "refused" in rules.refusal(writes, {"content": "x"}, ["remember x"])


def test_deny_is_not_even_asked(tmp_path: Path) -> None:
    rules = policy(tmp_path, answering(Reply.YES), pure="deny")
    assert rules.refusal(pure, {"text": "1"}, ["1"])
    assert "does not allow" in rules.barred(pure)
    assert rules.barred(reads) == ""


def test_consents_are_private_and_a_damaged_file_allows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state" / "consents.json"
    consents = Consents(path)
    consents.allow(Effect.NETWORK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{broken")
    assert Effect.NETWORK not in consents
