"""Tables of contents: told from text, from tables, and in no time from hostile lines."""

from __future__ import annotations

import time

import pytest

from jarvis.retrieval.contents import lists

NAMES = "Scope Terms Fees Delivery Secrecy Ending Liability Law Notices Staff Audit".split()


@pytest.mark.parametrize(
    "text",
    [
        "Contents\n\n" + "\n\n".join(f"Clause {n} {x} ..... {n}" for n, x in enumerate(NAMES, 1)),
        "\n".join(f"{x} . . . . . . {n}" for n, x in enumerate(NAMES, 1)),
        "\n".join(f"Chapter {n} {x}    {n * 9}" for n, x in enumerate(NAMES, 1)),
        "\n".join(f"{x}\u2026{n}" for n, x in zip("i ii iii iv v".split(), NAMES, strict=False)),
    ],
)
def test_contents(text: str) -> None:
    assert lists(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Clause 7. Ending\n\n7.1 Either party may end this on 60 days' notice.",
        "Oak 45\nPine 12\nBrass 99\nIron 3\nTin 8\nZinc 1\nLead 4\nGold 9\nCork 2\nWax 1",
        "Scope ..... 1\nTerms ..... 2\nFees ..... 3",
        "\n".join(f"In the year that followed, she wrote {n}." for n in range(20)),
        "\n".join(f"step {n} of 5 took 3" for n in range(12)),
    ],
)
def test_no_contents(text: str) -> None:
    assert not lists(text)


def test_hostile_lines_cost_nothing() -> None:
    started = time.process_time()
    for text in ("." * 100_000, "a" + " ." * 50_000, "1" * 100_000, ". 1\n" * 20_000):
        lists(text)
    assert time.process_time() - started < 1
