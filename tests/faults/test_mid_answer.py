"""SIGKILL in the middle of an answer: the message is there, and the next command works."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REAL_PATHS
from tests.faults.home import Home, home, kill

VICTIMS = ("client", "engine", "worker", "postgres")


@pytest.fixture(scope="module")
def place(engine: Path) -> Iterator[Home]:
    assert engine.exists()  # the models are there
    with home(REAL_PATHS.models) as made:
        yield made


@pytest.mark.model
@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_in_the_middle_of_an_answer(place: Home, victim: str) -> None:
    words = f"Count slowly from one to eighty in words, for the {victim}."
    if victim == "worker":
        place.run("ask", "--no-tools", "I keep bees in Ljubljana and I sing in a choir.")
    process = place.start("ask", "--no-tools", words)
    until = time.monotonic() + 120
    while not place.stdout and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert place.stdout, f"no answer began: {place.stderr}"
    pid = process.pid if victim == "client" else place.pids().get(victim)
    if victim != "worker":
        assert pid is not None, f"{victim} does not run"
    if pid is not None:  # a worker that has nothing left to do is gone already
        kill(pid)
    process.wait(120)

    listed = place.run("session", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    said = ""
    for line in listed.stdout.splitlines():
        said += place.run("session", "show", str(json.loads(line)["id"]), "--json").stdout
    assert words in said
    asked = place.run("ask", "--no-tools", "--json", "hi")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["answer"]
