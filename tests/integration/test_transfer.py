"""What is exported, wiped, imported and exported again is the same, byte for byte."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jarvis.errors import ModelUnavailable, UsageError
from jarvis.retrieval import Query, index
from jarvis.services import forget, memory, transfer
from jarvis.services.app import App
from jarvis.store import memories, sessions, tombstones, users
from jarvis.types import Memory, MemoryState, Role
from tests.conftest import Cli

Imported = transfer.Imported


@pytest.fixture
def rules(app: App, monkeypatch: pytest.MonkeyPatch) -> App:
    """Services without models and without a worker."""
    return without_models(app, monkeypatch.setattr)


def without_models(app: App, patch: Callable[..., None]) -> App:
    def unavailable(*_: object) -> None:
        raise ModelUnavailable("no model in this test")

    patch(app, "embedder", unavailable)
    patch(app, "chat_model", unavailable)
    patch(app, "wake_worker", lambda: None)
    return app


def add(app: App, *texts: str) -> list[Memory]:
    added = memory.add(app, [memory.describe(text) for text in texts]).added
    return [entry.memory for entry in added]


def exported(app: App) -> list[str]:
    return list(transfer.export_memories(app))


def wipe(app: App) -> None:
    rows = forget.everything(app)
    if rows:
        forget.forget(app, rows)


def filled(app: App) -> None:
    """Memories of every state, with dates, links and signs that want escaping."""
    first, second, third = add(
        app, "User lives in Bergen", "User moved to Oslo", 'User says "a\\b" 日本 [/x] :smile:'
    )
    with app.database.transaction() as tx:
        user_id = app.user.id
        session = sessions.create(tx, user_id, title="hello")
        said = sessions.add_message(tx, user_id, session.id, Role.USER, "I moved to Oslo")
        tx.execute(
            "UPDATE memories SET session_id = %s, message_id = %s WHERE id = %s",
            (session.id, said.id, second.id),
        )
        memories.supersede(tx, user_id, first.id, second.id, datetime(2026, 5, 1, tzinfo=UTC))
        memories.update(tx, user_id, third.id, state=MemoryState.HELD, held_reason="why")
        memories.touch(tx, user_id, [second.id])


def test_export_wipe_import_export_is_byte_equal(rules: App) -> None:
    filled(rules)
    before = exported(rules)
    wipe(rules)
    assert exported(rules) == before[:1]
    done = transfer.import_lines(rules, before)
    assert done.added == {"memory": 3}
    assert exported(rules) == before
    query = Query("Oslo", None, datetime.now(UTC))
    assert len(rules.retriever.memories(rules.user.id, query, None, limit=5)) == 1


def test_ids_go_on_after_the_largest_imported(rules: App) -> None:
    filled(rules)
    before = exported(rules)
    wipe(rules)
    transfer.import_lines(rules, before)
    (row,) = add(rules, "User keeps newts")
    assert row.id == 4


def test_importing_twice_changes_nothing(rules: App) -> None:
    filled(rules)
    before = exported(rules)
    done = transfer.import_lines(rules, before)
    assert (done.added, done.known) == ({}, {"memory": 3})
    assert exported(rules) == before


def test_an_id_that_is_taken_is_given_anew_and_links_follow(rules: App) -> None:
    filled(rules)
    lines = exported(rules)
    wipe(rules)
    with rules.database.transaction() as tx:
        tx.execute("UPDATE counters SET last_id = 0 WHERE kind = 'memory'")
    add(rules, "User keeps newts", "User keeps toads")
    done = transfer.import_lines(rules, lines)
    assert done.renumbered == 2
    rows = {row.content: row for row in memory.select(rules, states=())}
    old, new = rows["User lives in Bergen"], rows["User moved to Oslo"]
    assert old.superseded_by == new.id
    assert {old.id, new.id}.isdisjoint({1, 2})
    assert rows["User keeps newts"].id == 1


def test_the_same_words_under_another_id_are_merged(rules: App) -> None:
    (row,) = add(rules, "User keeps newts")
    line = json.dumps({"kind": "memory", "id": 40, "content": "user keeps NEWTS"})
    done = transfer.import_lines(rules, [line])
    assert (done.merged, done.added) == (1, {})
    assert [r.id for r in memory.select(rules, states=())] == [row.id]


def test_everything_comes_back(rules: App, database_name: str) -> None:
    filled(rules)
    with rules.database.transaction() as tx:
        index.write_terms(tx, "turn", rules.user.id, 1, "I moved to Oslo")
        tx.execute("UPDATE sessions SET summary = 's', summary_message_id = 1")
    (gone,) = add(rules, "User keeps newts")
    forget.forget(rules, [gone])
    before = list(transfer.export_everything(rules))
    assert not any("tester" in line for line in before)
    with rules.database.transaction() as tx:
        tx.execute("DELETE FROM users")
    del rules.__dict__["user"]
    transfer.import_lines(rules, before)
    assert list(transfer.export_everything(rules)) == before
    query = Query("Oslo", None, datetime.now(UTC))
    assert len(rules.retriever.turns(rules.user.id, query, None, limit=5, gate=False)) == 1
    with rules.database.transaction() as tx:
        assert tombstones.is_buried(tx, rules.user.id, memories.content_hash("User keeps newts"))


def test_a_secret_in_plain_text_waits_for_the_user(rules: App) -> None:
    done = transfer.import_lines(rules, ["I keep newts", "my wifi password is Tr0ub4dor&3"])
    assert done.added == {"memory": 2}
    assert "memory review" in done.notes[0]
    rows = memory.select(rules, states=())
    assert [row.state for row in rows] == [MemoryState.ACTIVE, MemoryState.HELD]
    assert rows[1].held_reason == "looks like a secret: password"


def test_plain_text_is_one_fact_a_line(rules: App) -> None:
    done = transfer.import_lines(rules, ["User keeps newts", "", "User keeps  newts", "I row"])
    assert (done.added, done.known) == ({"memory": 2}, {"memory": 1})
    assert {row.source for row in memory.select(rules)} == {"import"}


def test_a_dry_run_stores_nothing(rules: App) -> None:
    done = transfer.import_lines(rules, ["User keeps newts"], dry_run=True)
    assert done.added == {"memory": 1}
    assert memory.select(rules) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        ('{"kind":"memory"}', "needs content"),
        ('{"kind":"memory","content":"\\u0000"}', "needs content"),
        ('{"kind":"nonsense"}', "no records of kind"),
        ('{"kind":"memory","content":"x","type":"WISH"}', "no type"),
        ('{"kind":"memory","content":"x","id":-1}', "no positive number"),
        ('{"kind":"memory","content":"x","id":1e30}', "no positive number"),
        ('{"kind":"memory","content":"x","importance":7}', "line 2"),
        ('{"kind":"memory","content":"x","created_at":"soon"}', "line 2"),
        ('{"kind":"jarvis","format":99}', "another version"),
        ('{"kind":"message","id":1,"session_id":5,"role":"user","content":"x"}', "line 2"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_stored(rules: App, line: str, why: str) -> None:
    good = json.dumps({"kind": "memory", "id": 1, "content": "User keeps newts"})
    with pytest.raises(UsageError, match=why):
        transfer.import_lines(rules, [good, line])
    assert memory.select(rules, states=()) == []


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
fields = st.sampled_from(
    ["kind", "id", "content", "type", "state", "importance", "created_at", "superseded_by",
     "valid_from_at", "session_id", "subject", "details", "user_id", "sha256", "key"]
)  # fmt: skip
kinds = st.sampled_from([*transfer._KINDS, "jarvis", "tombstone_key", "x"])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.dictionaries(fields, json_values, max_size=5).flatmap(
            lambda row: kinds.map(lambda kind: {**row, "kind": kind})
        ),
        max_size=3,
    )
)
def test_any_file_is_imported_or_refused(rules: App, records: list[dict[str, Any]]) -> None:
    lines = [json.dumps({"kind": "jarvis", "format": 1}), *map(json.dumps, records)]
    try:
        transfer.import_lines(rules, lines, dry_run=True)
    except UsageError as error:
        assert error.message.startswith("line ")


def test_a_file_is_private_and_never_overwritten_by_chance(cli: Cli, tmp_path: Path) -> None:
    assert cli("memory", "add", "User keeps newts").returncode == 0
    target = tmp_path / "out.ndjson"
    assert cli("memory", "export", str(target)).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o600
    again: subprocess.CompletedProcess[str] = cli("memory", "export", str(target))
    assert (again.returncode, "exists" in again.stderr) == (2, True)
    piped = cli("export")
    assert json.loads(piped.stdout.splitlines()[0])["content"] == "everything"
    done = cli("memory", "import", "-", stdin="User keeps toads\n")
    assert done.returncode == 0
    assert "User keeps toads" in cli("memory", "list").stdout


# --- any sequence of changes keeps the promises -----------------------------------------------

WORDS = st.sampled_from(
    ["User keeps newts", "User keeps toads", "User rows", "User hates olives", "user keeps newts"]
)


class Store(RuleBasedStateMachine):
    """Adds, edits, supersedes, forgets and imports in any order."""

    app: App
    taken = 0

    def __init__(self) -> None:
        super().__init__()
        Store.taken += 1
        with self.app.database.transaction() as tx:
            person = users.ensure(tx, f"person {Store.taken}")
        self.app.__dict__["user"] = person
        self.app.user_name = person.name
        self.forgotten: set[bytes] = set()

    def rows(self, *states: MemoryState) -> list[Memory]:
        return memory.select(self.app, states=states)

    def active(self) -> list[Memory]:
        return self.rows(MemoryState.ACTIVE)

    @rule(text=WORDS)
    def adds(self, text: str) -> None:
        (row,) = add(self.app, text)
        self.forgotten.discard(memories.content_hash(text))
        assert row.state is MemoryState.ACTIVE

    @precondition(lambda self: self.active())
    @rule(data=st.data(), text=WORDS)
    def edits(self, data: st.DataObject, text: str) -> None:
        row = data.draw(st.sampled_from(self.active()))
        try:
            memory.edit(self.app, row.id, content=text)
        except UsageError:
            return
        self.forgotten.discard(memories.content_hash(text))

    @precondition(lambda self: len(self.active()) > 1)
    @rule(data=st.data())
    def supersedes(self, data: st.DataObject) -> None:
        old, new = data.draw(st.permutations(self.active()))[:2]
        with self.app.database.transaction() as tx:
            memories.supersede(tx, self.app.user.id, old.id, new.id, datetime.now(UTC))

    @precondition(lambda self: self.rows())
    @rule(data=st.data())
    def forgets(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows()))
        done = forget.forget(self.app, [row])
        assert done.verified, done.found
        self.forgotten.add(memories.content_hash(row.content))

    @rule()
    def goes_round(self) -> None:
        before = exported(self.app)
        kept = {memories.content_hash(row.content) for row in self.rows()}
        wipe(self.app)
        transfer.import_lines(self.app, before)
        assert exported(self.app) == before
        self.forgotten -= kept

    @invariant()
    def at_most_one_active_row_has_a_content(self) -> None:
        digests = [memories.content_hash(row.content) for row in self.active()]
        assert len(digests) == len(set(digests))

    @invariant()
    def what_is_forgotten_is_nowhere(self) -> None:
        stored = {memories.content_hash(row.content) for row in self.rows()}
        assert not stored & self.forgotten

    @invariant()
    def what_is_not_forgotten_is_found(self) -> None:
        for row in self.active():
            query = Query(row.content, None, datetime.now(UTC))
            hits = self.app.retriever.memories(
                self.app.user.id, query, None, limit=50, gate=False, collapse=False
            )
            assert row.id in {hit.memory.id for hit in hits}


def test_any_sequence_keeps_the_promises(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Store.app = without_models(app, monkeypatch.setattr)
    run_state_machine_as_test(
        Store, settings=settings(max_examples=12, stateful_step_count=12, deadline=None)
    )
