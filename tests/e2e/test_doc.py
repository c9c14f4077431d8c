"""``jarvis doc`` as a user meets it: lines, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import documents as make
from tests.conftest import Cli

FIELDS = [
    "path",
    "id",
    "status",
    "pages",
    "empty_pages",
    "chunks",
    "warnings",
    "error",
    "elapsed_ms",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "papers"
    made.mkdir()
    (made / "contract.pdf").write_bytes(
        make.pdf(["Clause 6. Payment is due in May.", "Clause 7. Either party may end this."])
    )
    (made / "scan.pdf").write_bytes(make.pdf([make.image_page] * 3))
    (made / "broken\tname.pdf").write_bytes(b"%PDF-1.7 nothing")
    (made / ".hidden.md").write_text("hidden")
    return made


@pytest.mark.usefixtures("engine")
def test_a_folder_from_ingest_to_forget(cli: Cli, folder: Path) -> None:
    done = cli("doc", "ingest", str(folder), "--json")
    assert done.returncode == 6
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(record) for record in records] == [FIELDS] * 3
    by_name = {Path(record["path"]).name: record for record in records}
    contract = by_name["contract.pdf"]
    assert (contract["status"], contract["pages"], contract["error"]) == ("added", 2, None)
    scan = by_name["scan.pdf"]
    assert (scan["status"], scan["id"], scan["pages"]) == ("failed", None, 3)
    assert "3 pages" in scan["error"]
    assert "2 of 3 files could not be read" in done.stderr
    assert "Traceback" not in done.stderr

    again = cli("doc", "ingest", str(folder))
    assert again.returncode == 6
    lines = again.stdout.splitlines()
    assert len(lines) == 3, "one line a file, whatever its name holds"
    assert f"unchanged\t{contract['id']}\t{folder}/contract.pdf\t2 pages, 2 passages" in lines
    assert any("broken\\tname.pdf" in line for line in lines)

    (listed,) = [json.loads(line) for line in cli("doc", "list", "--json").stdout.splitlines()]
    assert listed["name"] == "contract.pdf"
    assert listed["paths"] == [str(folder / "contract.pdf")]

    shown = cli("doc", "show", str(listed["id"]), "--page", "2")
    assert shown.stdout == "Clause 7. Either party may end this.\n"
    assert cli("doc", "show", "contract.pdf", "--page", "3").returncode == 5
    assert cli("doc", "show", "nothing.pdf").returncode == 5

    found = cli("doc", "search", "What does clause 7 say?", "--json")
    hit = json.loads(found.stdout.splitlines()[0])
    assert (hit["document"], hit["page"]) == ("contract.pdf", 2)
    assert "Clause 7" in hit["content"]
    assert hit["end"] - hit["start"] == len(hit["content"])

    gone = cli("doc", "forget", "contract.pdf", "--json")
    assert gone.returncode == 0
    report = json.loads(gone.stdout)
    assert report["verified"] is True
    assert report["rows"]["chunk_vectors"] == report["rows"]["chunks"] == 2
    assert cli("doc", "list").stdout == ""
    assert cli("doc", "forget", "contract.pdf").returncode == 5


@pytest.mark.usefixtures("engine")
def test_stdin_and_usage(cli: Cli) -> None:
    done = cli(
        "doc", "ingest", "-", "--name", "notes.md", stdin="# Notes\n\nThe ferry leaves at nine."
    )
    assert done.returncode == 0
    assert done.stdout.startswith("added\t1\tstdin:notes.md\t")
    assert cli("doc", "ingest").returncode == 2
    assert cli("doc", "ingest", "a.pdf", "--name", "x").returncode == 2
    assert cli("doc", "forget").returncode == 2
    missing = cli("doc", "ingest", "/nowhere/at/all.pdf")
    assert missing.returncode == 6
    assert "No such file" in missing.stdout
    wrong = cli(
        "doc", "ingest", "-", "--name", "notes.pdf", stdin="<html><body>log in</body></html>"
    )
    assert wrong.returncode == 6
    assert "it holds an HTML page" in wrong.stdout


@pytest.mark.usefixtures("engine")
def test_a_password_from_a_pipe(cli: Cli, tmp_path: Path) -> None:
    vault = tmp_path / "vault.pdf"
    vault.write_bytes(make.pdf(["The word is heliotrope."], encrypt=("owner", "s3cret")))
    ingest = ("doc", "ingest", str(vault), "--password")
    assert cli(*ingest, "-", stdin="").returncode == 2
    assert cli(*ingest, "-", stdin="wrong\n").returncode == 6
    done = cli(*ingest, "-", stdin="s3cret\n")
    assert done.stdout.startswith("added\t1\t")
    assert "echo" not in done.stderr
    assert cli("doc", "ingest", "-", "--password", "-", stdin="s3cret\n").returncode == 2
