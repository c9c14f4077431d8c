"""Tools called by real models, through the program."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Cli

pytestmark = pytest.mark.model

MODELS = ("qwen2.5-coder:0.5b", "qwen2.5-coder:1.5b")
STEADY = {"JARVIS_CHAT_TEMPERATURE": "0"}


def ask(cli: Cli, *arguments: str, **environment: str) -> dict[str, Any]:
    done = cli("ask", "--json", "--no-memory", *arguments, env={**STEADY, **environment})
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("model", MODELS)
def test_a_calculation_goes_through_the_calculator(cli: Cli, engine: object, model: str) -> None:
    answer = ask(cli, "What is 2847 × 391?", JARVIS_CHAT_MODEL=model)
    good = [call for call in answer["tools"] if not call["error"]]
    assert [call["name"] for call in good] == ["calculator"]
    assert good[0]["result"].endswith("= 1113177")
    assert "1113177" in answer["answer"].replace(",", "").replace(" ", "")
    shown = cli("session", "show", str(answer["session_id"]), "--json")
    assert "1113177" in shown.stdout


def test_no_tools_means_none_and_other_questions_call_none(cli: Cli, engine: object) -> None:
    plain = ask(cli, "--no-tools", "What is 2 + 2?")
    assert plain["tools"] == []
    assert plain["answer"]
    other = ask(cli, "What is the capital of Norway?")
    assert other["tools"] == []
    assert "Oslo" in other["answer"]


def test_the_network_is_off_and_the_turn_goes_on(cli: Cli, engine: object) -> None:
    answer = ask(cli, "What is the weather in Oslo?")
    assert answer["tools"] == []
    assert answer["answer"]


def test_an_allowed_tool_without_a_network_says_so_and_the_turn_goes_on(
    cli: Cli, engine: object
) -> None:
    # A proxy that nobody listens on: no packet leaves the machine.
    answer = ask(
        cli,
        "What is the weather in Oslo?",
        JARVIS_TOOLS_NETWORK="allow",
        HTTPS_PROXY="http://127.0.0.1:9",
        https_proxy="http://127.0.0.1:9",
    )
    assert answer["answer"]
    called = [call for call in answer["tools"] if call["name"] == "weather"]
    assert called
    # The model may ask again; a call that failed is not made twice.
    reasons = ("network", "words", "failed before")
    assert all(any(reason in call["error"] for reason in reasons) for call in called), called


def test_a_scripted_chat_calls_tools_too(cli: Cli, engine: object) -> None:
    done = cli("chat", "--private", stdin="What is 2847 × 391?\n", env=STEADY)
    assert done.returncode == 0, done.stderr
    assert "tool: calculator" in done.stderr
    assert len(done.stdout.splitlines()) == 1
