"""Hostile input to the parsers: of what models write, of addresses, of backup files."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.config import DatabaseSettings
from jarvis.engine.toolcalls import Call, ToolCallFilter
from jarvis.errors import ConfigError, JarvisError
from jarvis.llm.protocols import ChatChunk
from jarvis.llm.thinking import ThinkingSplitter, split_text
from jarvis.services import backup, changes, citations, digest
from jarvis.services.compare import Relation
from jarvis.services.extraction.parse import UnreadableReply, parse_reply
from jarvis.store.address import conninfo
from jarvis.tools.schema import ToolError, validate
from tests.faults.fuzzing import anything, cheap, fuzzed

PIECES = ['{"facts":[', "]}", '"a"', ",", "```json\n", "<think>", "</think>", "1. ", "- ", "\n"]
PIECES += ['{"answer":', "1e999", "</tool_call>", "<tool_call>", '{"name":"add","arguments":']
PIECES += ["\\u65", "\ud800", "[[", "{", "}", '"', "[", "]", "null", "7"]
"""What replies of small models are made of."""


replies = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(PIECES)).map("".join),
    st.sampled_from("[{").map(lambda bracket: bracket * 3_000),
    anything.map(json.dumps),
)
OFFERED = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "number"},
                "names": {"type": "array", "items": {"type": "string"}},
                "more": {"type": "object", "additionalProperties": {"type": "boolean"}},
            },
        },
    },
}


class _Saying:
    """A chat model that gives one reply to everything."""

    name = "saying"

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def stream(self, *_: object, **__: object) -> Iterator[ChatChunk]:
        yield ChatChunk(self.reply)


def _filtered(pieces: Sequence[str]) -> tuple[str, list[Call]]:
    sieve = ToolCallFilter([OFFERED])
    found = [*map(sieve.feed, pieces), sieve.finish()]
    return "".join(one.text for one in found), [call for one in found for call in one.calls]


class TestFuzz:
    """Named so that ``make fuzz`` finds it."""

    @cheap
    @given(reply=replies)
    def test_replies_of_an_extraction(self, reply: str) -> None:
        try:
            facts = parse_reply(reply)
        except UnreadableReply:
            return
        assert all(fact.strip() for fact in facts)

    @cheap
    @given(reply=replies)
    def test_replies_about_a_change(self, reply: str) -> None:
        model: Any = _Saying(reply)
        relation = changes.by_model(model)("I live in Oslo", "I live in Lima")
        try:
            known = int(json.loads(reply)["answer"]) in {1, 2, 3}
        except Exception:  # noqa: BLE001 -- whatever is wrong with it
            known = False
        # Asked the other way round, the same reply: it agrees with itself.
        assert (relation is Relation.OPEN) == (not known)

    @cheap
    @given(reply=replies, cut=st.integers(0, 300))
    def test_calls_written_as_text(self, reply: str, cut: int) -> None:
        text, calls = _filtered([reply])
        assert _filtered([reply[:cut], reply[cut:]]) == (text, calls)
        if not calls:
            assert text == reply
        for call in calls:
            assert call.name == "add"

    @cheap
    @given(arguments=st.one_of(replies, anything, st.fixed_dictionaries({"a": anything})))
    def test_arguments_of_a_call(self, arguments: Any) -> None:
        parameters = dict(OFFERED["function"]["parameters"])  # type: ignore[index]
        try:
            values = validate("add", parameters, arguments)
        except ToolError as error:
            assert error.message.startswith("add")
            return
        assert type(values["a"]) is int
        assert set(values) <= set(parameters["properties"])

    @cheap
    @given(reply=replies, cut=st.integers(0, 300))
    def test_thoughts(self, reply: str, cut: int) -> None:
        splitter = ThinkingSplitter()
        parts = [splitter.feed(reply[:cut]), splitter.feed(reply[cut:]), splitter.finish()]
        thinking, answer = ("".join(column) for column in zip(*parts, strict=True))
        assert len(thinking) + len(answer) <= len(reply)
        if thinking:
            assert split_text(reply) == (thinking, answer)

    @cheap
    @given(reply=replies)
    def test_citations_and_summaries(self, reply: str) -> None:
        report = citations.check(reply, [])
        assert report.marked.replace(citations.MARK, "") == reply.replace(citations.MARK, "")
        for line in digest.grounded_lines(reply, "user: I moved to Oslo in May 2020."):
            assert line in reply
            assert set(re.findall(r"[0-9]+", line)) <= {"2020"}

    @cheap
    @given(url=st.one_of(st.text(max_size=80), st.text(max_size=80).map("postgresql://".__add__)))
    def test_database_addresses(self, url: str) -> None:
        try:
            info = conninfo(DatabaseSettings(url=url or "x", host="h"))
        except ConfigError as error:
            assert "\n" not in error.message
            return
        assert isinstance(info["port"], int)

    @cheap
    @given(password=st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
    def test_any_password_survives_the_address(self, password: str) -> None:
        from urllib.parse import quote

        url = f"postgresql://me:{quote(password, safe='')}@db.example:6000/mine"
        info = conninfo(DatabaseSettings(url=url))
        assert (info["user"], info["password"]) == ("me", password)
        assert (info["host"], info["port"], info["dbname"]) == ("db.example", 6000, "mine")

    @fuzzed
    @given(data=st.data())
    def test_backup_files(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        path = tmp_path_factory.mktemp("fuzz") / "b.zip"
        manifest = data.draw(
            st.one_of(anything, st.just({"format": 1, "tables": [{"name": "users"}]}))
        )
        with zipfile.ZipFile(path, "w") as pack:
            pack.writestr("manifest.json", json.dumps(manifest))
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        with pytest.raises(JarvisError):
            backup.verify(path)
