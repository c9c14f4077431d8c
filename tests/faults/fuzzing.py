"""What the fuzz tests share: how much to try, hostile words, and the program run in this process.

What must hold: an exit code of the table, one line that says what is wrong, nothing unexpected,
no control character on the terminal, and a program that goes on working.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jarvis.errors import ExitCode

BUDGET = int(os.environ.get("FUZZ_BUDGET", "1"))
"""How many times more examples ``make fuzz`` tries. (No name of the program's: the tests take
those out of the environment before this is read.)"""

fuzzed = settings(
    max_examples=40 * BUDGET,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
cheap = settings(fuzzed, max_examples=200 * BUDGET)
costly = settings(fuzzed, max_examples=15 * BUDGET)

_OPTIONS = (
    "--json --limit -k -n --type --user --yes --all --at --session --help --since --format -f - -- "
    "-1 0 1 99999999999999999999 1e309 nan FACT 2026-13-99 2026-02-30T25:61 /dev/null "
    "../../etc/passwd %s %(x)s {} {0.__class__} [/] [bold] :smile: * ? \\ \" ' `id` $(id) ;"
)
HOSTILE = [
    *_OPTIONS.split(),
    "",
    " ",
    "\n",
    "'; DROP TABLE users; --",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J\x9b31m",
    "\u202eabc\u2066",
    "\U000e0041\U000e0042",
    "a" * 20_000,
    "\udcff\udc80",
    "👩‍🌾" * 50,
]
words = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\0"), max_size=40),
)


@dataclass
class Ran:
    """One run of the program inside this process."""

    code: int
    stdout: str
    stderr: str


def run(arguments: list[str], stdin: bytes = b"") -> Ran:
    from jarvis.cli.run import run as main

    written = [io.BytesIO(), io.BytesIO()]
    streams = [io.TextIOWrapper(raw, "utf-8") for raw in written]
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                code = main(arguments)
            except SystemExit as left:
                code = int(left.code or 0)
        texts = []
        for stream, raw in zip(streams, written, strict=True):
            stream.flush()
            texts.append(raw.getvalue().decode("utf-8", "replace"))
        return Ran(code, *texts)
    finally:
        sys.stdin = before


def well_behaved(ran: Ran, arguments: object) -> None:
    assert ran.code in set(ExitCode) - {ExitCode.INTERRUPTED}, (arguments, ran)
    assert "error: unexpected " not in ran.stderr, (arguments, ran.stderr)
    assert "Traceback" not in ran.stderr, (arguments, ran.stderr)
    if ran.code:
        assert ran.stderr, (arguments, "failed without a word")
    for stream in (ran.stdout, ran.stderr):
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(stream), (arguments, stream)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Any JSON value."""
