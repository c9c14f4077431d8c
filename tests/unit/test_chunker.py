"""Passages: exact slices of the text, one page each, within the window, under their headings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis.ingest.assemble import Text, assemble
from jarvis.ingest.chunker import Sizes, embedding_text, passages
from jarvis.ingest.model import Block, Extracted, Kind, Page, Passage
from jarvis.ingest.tokens import MARGIN, TokenCounter
from tests.documents import paragraph

SMALL = Sizes(target=120, overlap=20, window=256)


def document(*pages: list[Block], paged: bool = True) -> Text:
    return assemble(Extracted("text/plain", tuple(Page(tuple(page)) for page in pages), paged))


def heading(text: str, level: int = 1) -> Block:
    return Block(text, Kind.HEADING, level, text)


def cut(text: Text, sizes: Sizes = SMALL) -> list[Passage]:
    found = passages(text, sizes)
    for passage in found:
        assert text.text[passage.start : passage.end] == passage.content
        assert passage.content.strip()
    assert [passage.ordinal for passage in found] == list(range(len(found)))
    covered = "".join(
        char
        for place, char in enumerate(text.text)
        if any(p.start <= place < p.end for p in found) and not char.isspace()
    )
    assert covered == "".join(text.text.split()), "every word is in a passage"
    return found


def test_a_short_document_is_one_passage() -> None:
    (only,) = cut(document([heading("Title"), Block("A few words.")], paged=False))
    assert only.content == "Title\n\nA few words."
    assert (only.page, only.page_end) == (None, None)
    assert only.heading == "Title"


def test_passages_keep_to_their_page() -> None:
    pages = [[Block(paragraph(n, 12))] for n in range(5)]
    text = document(*pages)
    for passage in cut(text):
        assert passage.page is not None
        span = text.pages[passage.page - 1]
        assert span.start <= passage.start
        assert passage.end <= span.end


def test_a_sentence_is_finished_on_the_next_page() -> None:
    first = "The first sentence is here. The second goes on"
    text = document([Block(first)], [Block("over the page. And a third.")])
    one, two = cut(text)
    assert one.content.endswith("The second goes on\n\nover the page.")
    assert (one.page, one.page_end) == (1, 2)
    assert two.content == "over the page. And a third."
    assert (two.page, two.page_end) == (2, 2)


def test_empty_pages_are_counted() -> None:
    text = document([Block("one")], [], [Block("three")])
    assert text.empty_pages == (2,)
    assert [passage.page for passage in cut(text)] == [1, 3]


def test_a_section_begins_a_passage_and_gives_its_path() -> None:
    text = document(
        [
            heading("Agreement"),
            heading("Clause 6. Payment", 2),
            Block(paragraph(1, 8)),
            heading("Clause 7. Termination", 2),
            Block(paragraph(2, 8)),
        ],
        paged=False,
    )
    found = cut(text)
    seven = [passage for passage in found if "Clause 7" in passage.content]
    assert seven[0].content.startswith("Clause 7. Termination")
    assert {p.heading for p in found if p.start >= seven[0].start} == {
        "Agreement > Clause 7. Termination"
    }


def test_no_heading_ends_a_passage() -> None:
    blocks = [b for n in range(12) for b in (heading(f"Part {n}"), Block(paragraph(n, 5)))]
    for passage in cut(document(blocks, paged=False)):
        assert not passage.content.splitlines()[-1].startswith("Part")


def test_parts_of_a_section_share_sentences() -> None:
    sizes = Sizes(target=200, overlap=40, window=512)
    found = cut(document([Block(paragraph(3, 40))], paged=False), sizes)
    assert len(found) > 2
    counter = TokenCounter()
    for before, after in itertools.pairwise(found):
        shared = before.end - after.start
        assert shared > 0
        assert counter.count(before.content[-shared:]) <= sizes.overlap
        assert after.content[0].isupper(), "begins with a sentence"


def test_small_sections_are_joined() -> None:
    blocks = [b for n in range(6) for b in (heading(f"Q{n}"), Block("Yes."))]
    assert len(cut(document(blocks, paged=False))) == 1


def test_a_table_and_code_stay_whole_where_they_fit() -> None:
    table = Block("\n".join(f"row {n} | {n}" for n in range(9)), Kind.TABLE)
    code = Block("def f():\n    x = 1\n\n    return x", Kind.CODE)
    blocks = [Block(paragraph(1, 6)), table, Block(paragraph(2, 6)), code, Block(paragraph(3, 6))]
    found = cut(document(blocks, paged=False))
    assert any(table.text in passage.content for passage in found)
    assert any(code.text in passage.content for passage in found)


def test_a_long_table_is_parted_between_rows() -> None:
    table = Block("\n".join(f"row {n} | value {n} | note {n}" for n in range(200)), Kind.TABLE)
    for passage in cut(document([table], paged=False)):
        assert all(line.startswith("row ") for line in passage.content.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "9" * 9000,
        "QUJD" * 3000,
        "\U0001f600" * 3000,
        "=====\n" * 1500,
        "a,b;c|" * 2000,
        "語" * 5000,
    ],
    ids=["digits", "base64", "emoji", "yaml", "csv", "cjk"],
)
def test_text_without_words_is_parted_too(text: str) -> None:
    for passage in cut(document([Block(text)], paged=False), Sizes()):
        assert passage.tokens <= Sizes().limit * MARGIN


def test_nothing_is_over_the_window_even_with_headings() -> None:
    blocks = [heading("A heading that says a lot " * 6, 1), Block(paragraph(1, 80))]
    sizes = Sizes(target=500, overlap=50, window=256)
    counter = TokenCounter()
    for passage in cut(document(blocks, paged=False), sizes):
        text = embedding_text(passage.heading, passage.content)
        assert counter.count(text) * MARGIN <= sizes.window


@given(
    st.lists(
        st.lists(
            st.builds(
                Block,
                st.text(st.characters(codec="utf-8"), min_size=1, max_size=300),
                st.sampled_from([Kind.PARAGRAPH, Kind.TABLE, Kind.CODE, Kind.LIST]),
            )
            | st.builds(heading, st.text(min_size=1, max_size=40), st.integers(1, 6)),
            max_size=6,
        ),
        max_size=5,
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_document_is_covered(pages: list[list[Block]], paged: bool) -> None:
    cut(document(*pages, paged=paged), Sizes(target=40, overlap=8, window=64))
