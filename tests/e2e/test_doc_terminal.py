"""``jarvis doc ingest`` on a terminal: bars while it works, nothing of them afterwards."""

from __future__ import annotations

from pathlib import Path

import pexpect
import pyte
import pytest

from tests import documents as make
from tests.conftest import Cli


def screen_after(raw: str, columns: int = 100, lines: int = 30) -> list[str]:
    screen = pyte.Screen(columns, lines)
    pyte.Stream(screen).feed(raw)
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.mark.usefixtures("engine")
def test_bars_come_and_go(cli: Cli, tmp_path: Path) -> None:
    import sys

    for number in range(3):
        (tmp_path / f"{number} [bold].pdf").write_bytes(make.pdf([make.paragraph(number)] * 2))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "jarvis", "doc", "ingest", str(tmp_path), "--glob", "*.pdf"],
        env={**cli.environment, "TERM": "xterm-256color", "COLUMNS": "100"},
        dimensions=(30, 100),
        timeout=240,
        encoding="utf-8",
    )
    child.expect(pexpect.EOF)
    child.close()
    raw = child.before
    assert raw is not None
    assert "all files" in raw, "a bar for all of them"
    assert "embedding" in raw, "a bar for each"
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l"), "the cursor is back"
    shown = screen_after(raw)
    assert not any("━" in line for line in shown)
    lines = [line for line in shown if line.startswith(("added", "failed"))]
    assert [line.split()[0] for line in lines] == ["added"] * 3 + ["failed"]
    assert all("[bold].pdf" in line for line in lines[:3])
    assert child.exitstatus == 6
