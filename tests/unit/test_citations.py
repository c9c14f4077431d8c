"""Which citations of an answer were among its passages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jarvis.services.citations import MARK, Given, Marker, check, excerpt, label, source
from jarvis.types import ChunkHit


def hit(
    document: str = "contract.pdf",
    page: int | None = 6,
    page_end: int | None = None,
    page_label: str = "",
    heading: str = "",
) -> ChunkHit:
    return ChunkHit(
        id=1,
        document_id=1,
        document=document,
        page=page,
        page_label=page_label,
        start=0,
        end=5,
        content="words",
        similarity=0.5,
        score=1.0,
        rank=1,
        page_end=page_end or page,
        heading=heading,
    )


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        (hit(), "[contract.pdf, p. 6]"),
        (hit(page_label="6"), "[contract.pdf, p. 6]"),
        (hit(page_label="iv"), "[contract.pdf, p. 6 (iv)]"),
        (hit(page_end=7), "[contract.pdf, p. 6–7]"),
        (hit("notes.md", page=None), "[notes.md]"),
        (hit("a [draft].pdf"), "[a (draft).pdf, p. 6]"),
    ],
)
def test_label(passage: ChunkHit, expected: str) -> None:
    assert label(passage) == expected
    report = check(f"So it is {expected}.", [passage])
    assert [citation.found for citation in report.citations] == [True]
    assert report.marked == f"So it is {expected}."


def test_excerpt_has_the_sections_that_its_words_do_not_have() -> None:
    passage = replace(hit(heading="Agreement > Clause 7"), content="Clause 7\n\nIt ends.")
    assert excerpt(passage) == "[contract.pdf, p. 6] Agreement\nClause 7\n\nIt ends."
    assert excerpt(hit()) == "[contract.pdf, p. 6]\nwords"


@pytest.mark.parametrize(
    "citation",
    [
        "[contract.pdf, p. 6]",
        "[Contract, page 6]",
        "[contract.pdf, pp. 6-7]",
        "[contract.pdf, p. iv]",
        "[contract.pdf, p.6; notes.md]",
        "[p. 6]",
        "[/home/me/contract.pdf, p. 7]",
    ],
)
def test_what_was_there(citation: str) -> None:
    chunks = [hit(page_end=7, page_label="iv")]
    if "notes" in citation:
        chunks.append(hit("notes.md", page=None))
    report = check(f"It ends in May {citation}.", chunks)
    assert report.citations
    assert not report.invented
    assert not report.warnings


@pytest.mark.parametrize(
    "citation",
    [
        "[contract.pdf, p. 9]",
        "[contract.pdf, pp. 6-9]",
        "[other.pdf, p. 6]",
        "[contract.pdf, p. 6; other.pdf, p. 2]",
        "[notes.md, p. 1]",
    ],
)
def test_what_was_made_up_is_marked(citation: str) -> None:
    report = check(f"It ends {citation}. So.", [hit(), hit("notes.md", page=None)])
    assert report.marked == f"It ends {citation[:-1]}{MARK}]. So."
    assert len(report.invented) == 1
    assert len(report.warnings) == 1


@pytest.mark.parametrize(
    "text",
    ["a[0] = b[i, j]", "[see p. 6](https://x.y)", "he said [sic]", "[1] first", "- [ ] todo"],
)
def test_other_brackets_are_left_alone(text: str) -> None:
    report = check(text, [hit()])
    assert report.marked == text
    assert not report.warnings


def test_without_passages_every_page_is_made_up() -> None:
    assert check("It is so [report.pdf, p. 3].", []).invented


def test_what_a_tool_gave_was_not_made_up() -> None:
    answer = "It is so [report.pdf, p. 3]. And [report.pdf, p. 4]."
    report = check(answer, [], ["found: [report.pdf, p. 3] Fees\nThey are 40 euros."])
    assert [citation.text for citation in report.invented] == ["[report.pdf, p. 4]"]


STREAMED = [
    "It ends [contract.pdf, p. 6] or [contract.pdf, p. 9].",
    "a[1], [sic], [a [contract.pdf, p. 9] b], [x](y), [contract.pdf, p. 9](https://x)",
    "open [contract.pdf, p. 9\nand on], [",
    "[contract.pdf, p. 6; contract.pdf, p. 9]",
    "[contract.pdf, p. 9]",
    "[" + "x" * 400 + ", p. 9]",
    "[contract.pdf, p. 9][contract.pdf, p. 6]",
]


@pytest.mark.parametrize("answer", STREAMED)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream_is_marked_as_the_whole_answer_is(answer: str, size: int) -> None:
    marker = Marker(lambda: Given([hit()]))
    pieces = [marker.feed(answer[i : i + size]) for i in range(0, len(answer), size)]
    streamed = "".join(pieces) + marker.flush()
    whole = check(answer, [hit()])
    assert streamed == whole.marked
    assert marker.report(streamed) == whole


def test_a_stream_holds_back_nothing_but_an_open_citation() -> None:
    marker = Marker(lambda: Given([hit()]))
    assert marker.feed("It ends [contract.pdf") == "It ends "
    assert marker.feed(", p. 9]") == ""
    assert marker.feed(".") == f"[contract.pdf, p. 9{MARK}]."
    assert marker.feed("[never closed\n") == "[never closed\n"
    assert marker.feed("[" + "x" * 301) == "[" + "x" * 301


def test_what_a_tool_found_may_be_cited_from_then_on() -> None:
    chunks: list[ChunkHit] = []
    marker = Marker(lambda: Given(chunks))
    assert MARK in marker.feed("[contract.pdf, p. 6] ")
    chunks.append(hit())
    assert marker.feed("[contract, page 6] ") == "[contract, page 6] "


def test_json_stays_json() -> None:
    answer = '{"sources": ["contract.pdf, p. 9"]}'
    marker = Marker(lambda: Given([hit()]), mark=False)
    shown = marker.feed(answer) + marker.flush()
    assert shown == answer
    assert marker.report(shown).warnings


ENDING = replace(
    hit(page=6),
    content="7.1 Either party may end this Agreement by sixty days' written notice, sent by post.",
)
FEES = replace(hit(page=4), content="4.1 The Customer shall pay 48,200 crowns in four instalments.")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It says that either party may end this agreement by written notice of sixty days.", 6),
        ("You pay 48,200 crowns, in four instalments.", 4),
        ("You pay 52,000 crowns in four instalments.", None),
        ("Paris is the capital of France and lies on the Seine.", None),
        ("Sixty days.", None),
        ("Clause 7 is about clause 7.", None),
        ("", None),
    ],
)
def test_the_source_of_an_answer_that_names_none(answer: str, expected: int | None) -> None:
    found = source(answer, "What does clause 7 say?", [FEES, ENDING])
    assert (found.page if found else None) == expected
