"""Global options anywhere, free text that begins with a dash."""

from __future__ import annotations

import pytest
import typer
import typer.main

from jarvis.cli.arguments import protect_free_text, split_globals


def tree() -> typer.Typer:
    root = typer.Typer()
    group = typer.Typer()

    @root.callback()
    def main() -> None: ...

    @root.command()
    def ask(
        prompt: list[str],
        system: str = typer.Option("", "--system"),
        json: bool = typer.Option(False, "--json"),
        file: str = typer.Option("", "-f", "--file"),
        continue_: bool = typer.Option(False, "-c", "--continue"),
    ) -> None: ...

    @group.command()
    def add(text: str, type_: str = typer.Option("", "--type")) -> None: ...

    @group.command()
    def show(number: int) -> None: ...

    root.add_typer(group, name="memory")
    return root


ROOT = typer.main.get_command(tree())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["ask", "hi", "--json"], ["ask", "hi", "--json"]),
        (["ask", "- is this a list?", "--json"], ["ask", "--json", "--", "- is this a list?"]),
        (["ask", "-5 degrees, is that cold?"], ["ask", "--", "-5 degrees, is that cold?"]),
        (["ask", "-f is a flag?"], ["ask", "--", "-f is a flag?"]),
        (["ask", "--", "-x"], ["ask", "--", "-x"]),
        (["ask", "--system", "- be brief", "hi"], ["ask", "--system", "- be brief", "hi"]),
        (["ask", "--jsn", "hi"], ["ask", "--jsn", "hi"]),
        (["ask", "-cf", "x", "hi"], ["ask", "-cf", "x", "hi"]),
        (["ask", "-"], ["ask", "-"]),
        (
            ["memory", "add", "--- three dashes ---"],
            ["memory", "add", "--", "--- three dashes ---"],
        ),
        (
            ["memory", "add", "-1", "--type", "FACT"],
            ["memory", "add", "--type", "FACT", "--", "-1"],
        ),
        (["nothing", "- x"], ["nothing", "- x"]),
    ],
)
def test_free_text(given: list[str], expected: list[str]) -> None:
    assert protect_free_text(ROOT, given) == expected


@pytest.mark.parametrize(
    "given",
    [
        ["--user", "ada", "memory", "list"],
        ["memory", "--user=ada", "list"],
        ["memory", "list", "--user", "ada"],
    ],
)
def test_global_options_anywhere(given: list[str]) -> None:
    found = split_globals(given)
    assert (found.user, found.rest, found.command) == ("ada", ["memory", "list"], "memory")


def test_nothing_is_an_option_after_two_dashes() -> None:
    found = split_globals(["ask", "--", "--user", "is", "an", "option"])
    assert found.user == ""
    assert found.rest == ["ask", "--", "--user", "is", "an", "option"]


def test_a_global_option_without_its_value_is_named() -> None:
    assert split_globals(["memory", "list", "--user"]).missing_value == "--user"
