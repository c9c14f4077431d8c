"""The search on a real Postgres, with vectors that need no model."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis.errors import ModelUnavailable, UsageError
from jarvis.retrieval import index
from jarvis.retrieval.words import words
from jarvis.security.text import clean
from jarvis.store import memories, search_function, upkeep, users, vectors
from jarvis.store.database import Database
from jarvis.types import EmbeddingModel, Filters, MemoryState, MemoryType, User
from tests.integration.stored import (
    NOW,
    ask,
    model,
    near,
    remember,
    retriever,
    say,
    vector,
)


def found(database: Database, user: User, text: str, **more: object) -> list[int]:
    """Ids of the memories found by words alone."""
    results = retriever(database).memories(user.id, ask(text), None, limit=10, gate=False)
    assert not more
    return [hit.memory.id for hit in results]


def test_a_memory_is_found_by_its_words_at_once(database: Database, user: User) -> None:
    ids = remember(database, user, ["User keeps bees in Ghent", "User rows on Tuesdays"])
    assert found(database, user, "who has a bee?") == ids[:1]
    assert found(database, user, "ROWING") == ids[1:]
    assert found(database, user, "chess") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日、駅前でたこ焼きを食べた", "たこ焼き"),
        ("User wrote C++ for ten years", "c++"),
        ("never run rm -rf in src/x, said the user", "rm -rf"),
        ("never run rm -rf in src/x, said the user", "src/x"),
        ("The cat's name is Tom", "cat's"),
        ("User must re-run the tests of v1.2.3", "v1.2.3"),
        (
            "User's grandfather repaired church organs in Bohemia",
            "can you please tell me again what my grandfather used to repair back then",
        ),
    ],
)
def test_is_found_by(database: Database, user: User, text: str, query: str) -> None:
    remember(database, user, ["User rides a bicycle", "User has a garden"])
    ids = remember(database, user, [text])
    assert found(database, user, query)[:1] == ids


@pytest.mark.parametrize("query", ["& | ! ( :*", "''\"\\", "%_", "\x00", "(", "a" * 100_000])
def test_any_question_is_answered(database: Database, user: User, query: str) -> None:
    remember(database, user, ["User rides a bicycle"])
    assert found(database, user, query) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.text(st.characters() | st.sampled_from("&|!():*'\"\\%_<>-+#. \x00\ud800字ก🍕"), max_size=40)
)
def test_any_string_is_a_legal_question_and_finds_itself(
    database: Database, user: User, text: str
) -> None:
    """A row is found by its own text wherever that holds a word; nothing is an error."""
    stored = clean(text).strip()
    results = retriever(database).memories(user.id, ask(text), None, limit=5, gate=False)
    assert len(results) <= 5
    if not list(words(stored)):
        return
    (owner,) = remember(database, user, [stored])
    again = retriever(database).memories(
        user.id, ask(stored), None, limit=1_000, gate=False, collapse=False
    )
    assert owner in [hit.memory.id for hit in again]


def test_a_question_of_100_kilobytes(database: Database, user: User) -> None:
    ids = remember(database, user, ["User rides a bicycle", "User has a garden"])
    query = "bicycle " + " ".join(f"word{i}" for i in range(12_000))
    assert len(query) > 100_000
    assert found(database, user, query) == ids[:1]


@pytest.mark.parametrize("limit", [0, -1, 1_000_000])
def test_a_number_of_results_out_of_range(database: Database, user: User, limit: int) -> None:
    with pytest.raises(UsageError, match="1 to 1,000"):
        retriever(database).memories(user.id, ask("x"), None, limit=limit)


def test_nothing_to_search_for(database: Database, user: User) -> None:
    results = retriever(database).memories(user.id, ask(""), None, limit=5)
    assert not results.hits
    assert results.notes == ("there is nothing to search for",)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ([0.0] * 64, "zeros"),
        ([float("nan")] + [1.0] * 63, "not finite"),
        ([float("inf")] + [1.0] * 63, "not finite"),
        ([1.0] * 63, "63 numbers instead of 64"),
    ],
)
def test_what_is_no_vector_is_not_stored(
    database: Database, user: User, bad: list[float], fault: str
) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = remember(database, user, ["User rides a bicycle"])
    with pytest.raises(ModelUnavailable, match=f"made-up.*{fault}"), database.transaction() as tx:
        index.write_vectors(tx, "memory", user.id, made_up.id, {ids[0]: bad})
    with pytest.raises(ModelUnavailable, match=fault):
        retriever(database).memories(user.id, ask("bicycle", bad), made_up, limit=5)
    with database.connection() as connection:
        assert upkeep.count_waiting(connection, "memory", user.id, made_up.id) == 1


@pytest.mark.parametrize("dimensions", [64, 384, 1_900, 4_096])
def test_any_dimension(database: Database, user: User, dimensions: int) -> None:
    with database.transaction() as tx:
        made_up = model(tx, dimensions)
    target = vector(1, dimensions)
    ids = remember(
        database,
        user,
        ["User rides a bicycle", "User has a garden"],
        {0: vector(2, dimensions), 1: target},
        made_up,
    )
    results = retriever(database).memories(
        user.id, ask("", near(target, 3)), made_up, limit=1, gate=False
    )
    assert [hit.memory.id for hit in results] == ids[1:]
    assert results.hits[0].similarity == pytest.approx(0.96, abs=0.03)
    assert any("more than an index can hold" in note for note in results.notes) == (
        dimensions > 4_000
    )


def test_vectors_lie_in_the_row(database: Database, user: User) -> None:
    """An exact scan must not fetch each vector from a second table."""
    with database.transaction() as tx:
        made_up = model(tx, 1_900)
    remember(database, user, ["User has a garden"], {0: vector(1, 1_900)}, made_up)
    with database.connection() as connection:
        toast = connection.execute(
            "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'memory_vectors'"
        ).fetchone()
    assert toast == (0,)


def test_words_alone_can_win(database: Database, user: User) -> None:
    """The only row that holds the name wins against rows whose vectors are a little nearer."""
    with database.transaction() as tx:
        made_up = model(tx)
    target = vector(1)
    texts = [f"User met somebody on day {i}" for i in range(8)] + [
        "User met Zebedee at the station"
    ]
    made = {i: near(target, 10 + i, 0.5) for i in range(8)} | {8: near(target, 99, 0.9)}
    ids = remember(database, user, texts, made, made_up)
    results = retriever(database).memories(
        user.id, ask("where did Zebedee wait?", target), made_up, limit=3
    )
    assert results.hits[0].memory.id == ids[-1]
    assert results.hits[0].explanation["words"] == ["zebede"]


def test_a_row_without_a_vector_is_found_by_words_beside_others(
    database: Database, user: User
) -> None:
    """As after a switch of the model: old rows have no vector of the new one."""
    with database.transaction() as tx:
        old, new = model(tx, 64, "old"), model(tx, 128, "new")
    target = vector(1, 128)
    ids = remember(
        database, user, ["User plays the cello", "User has a garden"], {0: vector(5)}, old
    )
    with database.transaction() as tx:
        index.write_vectors(tx, "memory", user.id, new.id, {ids[1]: near(target, 2)})
    search = retriever(database)
    results = search.memories(user.id, ask("the cello", target), new, limit=5, gate=False)
    assert {hit.memory.id: hit.similarity is None for hit in results} == {
        ids[0]: True,
        ids[1]: False,
    }
    assert results.hits[0].memory.id == ids[0]
    back = search.memories(user.id, ask("music", vector(5)), old, limit=1, gate=False)
    assert [hit.memory.id for hit in back] == ids[:1]


@pytest.mark.owner
def test_twenty_rows_of_one_type_among_many(database: Database, user: User) -> None:
    """With an index that reads the nearest first, a filter must not leave fewer than there are."""
    with database.transaction() as tx:
        made_up = model(tx)
    many = [f"fact number {i}" for i in range(2_500)]
    remember(database, user, many, {i: vector(i) for i in range(len(many))}, made_up)
    goals = [f"goal number {i}" for i in range(20)]
    ids = remember(
        database, user, goals, {i: vector(9_000 + i) for i in range(20)}, made_up, MemoryType.GOAL
    )
    build(database, made_up)
    results = retriever(database).memories(
        user.id,
        ask("", vector(77)),
        made_up,
        filters=Filters(types=(MemoryType.GOAL,)),
        limit=20,
        gate=False,
    )
    assert sorted(hit.memory.id for hit in results) == ids

    other = memory_user(database, "somebody else")
    few = remember(
        database, other, ["one", "two", "three"], {i: vector(50 + i) for i in range(3)}, made_up
    )
    results = retriever(database).memories(
        other.id, ask("", vector(77)), made_up, limit=5, gate=False
    )
    assert sorted(hit.memory.id for hit in results) == few
    everything = retriever(database).memories(
        user.id, ask("", vector(78)), made_up, limit=1_000, gate=False, collapse=False
    )
    assert len(everything) == 1_000
    check_function(database, user, made_up.id)


def build(database: Database, made_up: EmbeddingModel) -> None:
    with database.connection() as connection:
        assert upkeep.wants_index(connection, "memory", made_up)
    owner = database.connect_as_owner()
    try:
        upkeep.build_index(owner, "memory", made_up)
        search_function.make_function(owner, made_up)
    finally:
        owner.close()
    with database.connection() as connection:
        assert not upkeep.wants_index(connection, "memory", made_up)
        assert search_function.function_model(connection) == made_up.id


def memory_user(database: Database, name: str) -> User:
    with database.transaction() as tx:
        return users.ensure(tx, name)


def check_function(database: Database, user: User, model_id: int) -> None:
    """``search_memories`` is inlined: the plan of a call shows the index, and no function."""
    target = vectors.vector_text(vector(7))
    call = "SELECT * FROM search_memories(%s, %s::vector, 5, -1)"
    with database.connection() as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_sort = off")
        plan = "\n".join(
            row[0] for row in connection.execute(f"EXPLAIN {call}".encode(), (user.name, target))
        )
        rows = connection.execute(call.encode(), (user.name, target)).fetchall()
        like = connection.execute(
            "SELECT id, similarity FROM search_memories(%s, 8, 3, -1)", (user.name,)
        ).fetchall()
        typed = connection.execute(
            f"SELECT id FROM search_memories('{user.name}', '{target}', 5, -1)".encode()  # noqa: S608
        ).fetchall()
        connection.execute("RESET enable_seqscan")
        connection.execute("RESET enable_sort")
    assert f"Index Scan using memory_vectors_of_model_{model_id}" in plan
    assert "Function Scan" not in plan
    # Row 8 holds vector(7): its nearest is itself, and as a start it is left out.
    assert rows[0][0] == 8
    assert rows[0][6] == pytest.approx(1, abs=0.001)
    assert [row[0] for row in typed] == [row[0] for row in rows]
    assert len(rows) == 5
    assert len(like) == 3
    assert 8 not in [row[0] for row in like]


def test_two_users_never_see_each_other(database: Database, user: User) -> None:
    other = memory_user(database, "somebody else")
    with database.transaction() as tx:
        made_up = model(tx)
    mine = remember(database, user, ["User keeps bees"], {0: vector(1)}, made_up)
    theirs = remember(database, other, ["User keeps bees too"], {0: vector(1)}, made_up)
    say(database, other, ["my bees are asleep", "good"])
    search = retriever(database)
    for owner, expected in ((user, mine), (other, theirs)):
        results = search.memories(owner.id, ask("bees", vector(1)), made_up, limit=10, gate=False)
        assert [hit.memory.id for hit in results] == expected
    assert not search.turns(user.id, ask("bees", vector(1)), made_up, limit=10, gate=False).hits


# --- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), {"garden", "goal"}),
        (Filters(types=(MemoryType.GOAL,)), {"goal"}),
        (Filters(category="HOBBY"), {"garden"}),
        (Filters(min_importance=0.8), {"goal"}),
        (Filters(min_confidence=0.9), {"garden"}),
        (Filters(since=datetime(2026, 2, 1, tzinfo=UTC)), {"goal"}),
        (Filters(until=datetime(2026, 2, 1, tzinfo=UTC)), {"garden"}),
        (Filters(states=(MemoryState.SUPERSEDED,)), {"old"}),
        (Filters(at=datetime(2025, 6, 1, tzinfo=UTC)), {"old"}),
        (Filters(states=()), {"garden", "goal", "old"}),
    ],
)
def test_filters(database: Database, user: User, filters: Filters, expected: set[str]) -> None:
    rows = {
        "garden": memories.NewMemory(
            content="User has a garden",
            category="hobby",
            importance=0.4,
            confidence=0.95,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        "goal": memories.NewMemory(
            content="User wants a garden",
            type=MemoryType.GOAL,
            importance=0.9,
            confidence=0.5,
            created_at=datetime(2026, 3, 1, tzinfo=UTC),
        ),
        "old": memories.NewMemory(
            content="User has no garden",
            created_at=datetime(2025, 1, 1, tzinfo=UTC),
        ),
    }
    names = {}
    with database.transaction() as tx:
        made_up = model(tx)
        for place, (name, row) in enumerate(rows.items()):
            memory, _ = memories.add(tx, user.id, row)
            names[memory.id] = name
            index.write_terms(tx, "memory", user.id, memory.id, row.content)
            index.write_vectors(tx, "memory", user.id, made_up.id, {memory.id: vector(place)})
        old = next(owner for owner, name in names.items() if name == "old")
        memories.supersede(tx, user.id, old, None, datetime(2026, 1, 1, tzinfo=UTC))
    for query in (ask("garden"), ask("", vector(9)), ask("garden", vector(9))):
        results = retriever(database).memories(
            user.id,
            query,
            made_up if query.vector else None,
            filters=filters,
            limit=10,
            gate=False,
            collapse=False,
        )
        assert {names[hit.memory.id] for hit in results} == expected


def test_a_question_with_a_date_finds_what_held_then(database: Database, user: User) -> None:
    with database.transaction() as tx:
        bergen, _ = memories.add(
            tx,
            user.id,
            memories.NewMemory(
                content="User lives in Bergen", created_at=datetime(2025, 1, 1, tzinfo=UTC)
            ),
        )
        oslo, _ = memories.add(
            tx,
            user.id,
            memories.NewMemory(
                content="User lives in Oslo",
                valid_from_at=datetime(2026, 3, 1, tzinfo=UTC),
                created_at=datetime(2026, 3, 1, tzinfo=UTC),
            ),
        )
        memories.supersede(tx, user.id, bergen.id, oslo.id, datetime(2026, 3, 1, tzinfo=UTC))
        for memory in (bergen, oslo):
            index.write_terms(tx, "memory", user.id, memory.id, memory.content)
    search = retriever(database)
    now = search.memories(user.id, ask("where does the user live now?"), None, limit=5)
    then = search.memories(user.id, ask("where did the user live in January?"), None, limit=5)
    assert [hit.memory.id for hit in now] == [oslo.id]
    assert then.hits[0].memory.id == bergen.id
    assert any("January" in note for note in then.notes)


def test_min_similarity(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = remember(database, user, ["User keeps bees"], {0: vector(1)}, made_up)
    search = retriever(database)
    same = search.memories(user.id, ask("bees", vector(1)), made_up, limit=5, min_similarity=0.99)
    stranger = search.memories(
        user.id, ask("bees", vector(2)), made_up, limit=5, min_similarity=0.99, explain=True
    )
    assert [hit.memory.id for hit in same] == ids
    assert not stranger.hits
    assert stranger.dropped[0]["reason"] == "similarity below 0.99"


# --- gate, weights, collapsing ------------------------------------------------------------------


def test_the_gate_drops_what_is_far_and_says_why(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    target = vector(1)
    ids = remember(
        database,
        user,
        ["User keeps bees", "User has a garden"],
        {0: near(target, 2), 1: vector(3)},
        made_up,
    )
    results = retriever(database).memories(
        user.id, ask("my hives", target), made_up, limit=5, explain=True
    )
    assert [hit.memory.id for hit in results] == ids[:1]
    assert results.hits[0].explanation["gate"] == "meaning"
    assert [entry["id"] for entry in results.dropped] == ids[1:]
    assert results.dropped[0]["reason"].startswith("gate: cosine")


def test_importance_and_recency_stay_within_their_bounds(database: Database, user: User) -> None:
    from jarvis.config import RetrievalSettings
    from jarvis.retrieval.search import Retriever

    with database.transaction() as tx:
        for place, importance in enumerate((0.0, 1.0)):
            memory, _ = memories.add(
                tx,
                user.id,
                memories.NewMemory(
                    content=f"User keeps bees number {place}",
                    importance=importance,
                    created_at=NOW if place else datetime(2001, 1, 1, tzinfo=UTC),
                ),
            )
            index.write_terms(tx, "memory", user.id, memory.id, memory.content)
    extreme = RetrievalSettings(importance_weight=9.0, recency_weight=9.0)
    results = Retriever(database, extreme).memories(
        user.id, ask("bees"), None, limit=5, collapse=False
    )
    factors = [(hit.explanation["importance"], hit.explanation["recency"]) for hit in results]
    assert factors == [(1.25, 1.25), (0.75, 0.75)]


def test_one_fact_in_many_words_is_shown_once(database: Database, user: User) -> None:
    ids = remember(
        database,
        user,
        [
            "User keeps seven bee hives in Ghent",
            "The user keeps seven bee hives, in Ghent",
            "User keeps eight bee hives in Ghent",
        ],
    )
    results = retriever(database).memories(
        user.id, ask("bee hives in Ghent"), None, limit=5, gate=False, explain=True
    )
    assert sorted(hit.memory.id for hit in results) in ([ids[0], ids[2]], [ids[1], ids[2]])
    assert "says the same" in results.dropped[0]["reason"]


# --- past turns ---------------------------------------------------------------------------------


def test_a_turn_is_found_by_its_neighbours_words_with_its_answer(
    database: Database, user: User
) -> None:
    ids = say(
        database,
        user,
        [
            "We saw a heron by the lake",
            "How lovely!",
            "Yes, it was the first of the year",
            "I see.",
        ],
    )
    say(database, user, ["Something about trains", "Trains are fine."])
    results = retriever(database).turns(user.id, ask("heron"), None, limit=5, gate=False)
    assert [hit.id for hit in results] == [ids[0], ids[2]]
    assert results.hits[0].reply == "How lovely!"


def test_a_question_asked_before_is_not_put_beside_itself(database: Database, user: User) -> None:
    (told,) = say(database, user, ["My boat is moored at the eastern pier"])
    (asked,) = say(database, user, ["Where is my boat moored?"])
    again = ask("where is my boat moored")
    search = retriever(database)
    everything = search.turns(user.id, again, None, limit=5, gate=False)
    beside = search.turns(
        user.id, again, None, limit=5, gate=False, explain=True, beside_question=True
    )
    assert {hit.id for hit in everything} == {told, asked}
    assert [hit.id for hit in beside] == [told]
    assert [(row["id"], row["reason"]) for row in beside.dropped] == [
        (asked, "is the question itself")
    ]


def test_a_barred_message_leaves_its_neighbours_keys(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = say(database, user, ["The code is swordfish", "Noted.", "Thanks a lot", "Sure."])
    with database.transaction() as tx:
        index.write_vectors(tx, "turn", user.id, made_up.id, {i: vector(i) for i in ids})
    search = retriever(database)
    before = search.turns(user.id, ask("swordfish", vector(ids[0])), made_up, limit=5)
    assert ids[2] in [hit.id for hit in before]
    with database.transaction() as tx:
        index.remove(tx, "turn", user.id, [ids[0]])
        tx.execute("UPDATE messages SET barred = true WHERE id = %s", (ids[0],))
    after = search.turns(user.id, ask("swordfish", vector(ids[0])), made_up, limit=5)
    assert not after.hits
    with database.connection() as connection:
        left = connection.execute(
            "SELECT key, 1 - (embedding <=> %s::vector) FROM message_vectors WHERE message_id = %s"
            " ORDER BY key",
            (vectors.vector_text(vector(ids[0])), ids[2]),
        ).fetchall()
    assert [key for key, _ in left] == [0, 1]
    assert all(abs(cosine) < 0.35 for _, cosine in left), "the key still holds the barred vector"


def test_the_session_of_the_turn_is_left_out(database: Database, user: User) -> None:
    ids = say(database, user, ["I bought a canoe", "Nice."])
    with database.connection() as connection:
        row = connection.execute(
            "SELECT session_id FROM messages WHERE id = %s", ids[:1]
        ).fetchone()
    assert row is not None
    search = retriever(database)
    assert search.turns(user.id, ask("canoe"), None, limit=5, gate=False).hits
    assert not search.turns(
        user.id, ask("canoe"), None, filters=Filters(exclude_session=row[0]), limit=5, gate=False
    ).hits


def test_the_facts_of_a_message_are_a_key_of_it(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = say(database, user, ["Guess what I paddle on the river", "A canoe?"])
    fact = vector(500)
    with database.transaction() as tx:
        index.write_vectors(tx, "turn", user.id, made_up.id, {ids[0]: vector(1), ids[1]: vector(2)})
        memory, _ = memories.add(
            tx, user.id, memories.NewMemory(content="User owns a canoe", message_id=ids[0])
        )
        index.write_vectors(tx, "memory", user.id, made_up.id, {memory.id: fact})
    results = retriever(database).turns(user.id, ask("", fact), made_up, limit=1, gate=False)
    assert [hit.id for hit in results] == ids[:1]
    with database.connection() as connection:
        keys = connection.execute(
            "SELECT message_id, key FROM message_vectors ORDER BY 1, 2"
        ).fetchall()
    assert keys == [(ids[0], 0), (ids[0], 1), (ids[0], 2), (ids[1], 0)]


# --- upkeep -------------------------------------------------------------------------------------


def test_counted_statistics_change_no_result(database: Database, user: User) -> None:
    words = ["bee", "garden", "train", "canoe", "cello"]
    remember(
        database, user, [f"User has {words[i % 5]} {i} {'rarely' * (i == 7)}" for i in range(60)]
    )

    def results() -> list[tuple[int, float]]:
        found = retriever(database).memories(
            user.id, ask("a rarely seen garden"), None, limit=20, gate=False, collapse=False
        )
        return [(hit.memory.id, hit.explanation["bm25"]) for hit in found]

    live = results()
    assert live
    with database.transaction() as tx:
        upkeep.recount(tx, "memory", user.id)
        assert upkeep.changed_share(tx, "memory", user.id) == (60, 0.0)
    assert results() == live
    remember(database, user, [f"User has a new canoe {i}" for i in range(3)])
    with database.transaction() as tx:
        assert upkeep.changed_share(tx, "memory", user.id) == (63, 0.05)
        memories.delete(tx, user.id, [1, 2, 3])
        assert upkeep.changed_share(tx, "memory", user.id) == (60, 0.1)
        index.recount(tx, "memory", user.id)
        assert not upkeep.has_statistics(tx, "memory", user.id)


def test_terms_written_side_by_side_do_not_deadlock(database: Database, user: User) -> None:
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for round_ in range(5):
                remember(database, user, [f"User did {number} of {round_} {i}" for i in range(8)])
        except BaseException as error:  # noqa: BLE001 -- told to the main thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with database.connection() as connection:
        assert upkeep.changed_share(connection, "memory", user.id)[0] == 6 * 5 * 8


def test_a_text_that_changed_meanwhile_gets_no_vector(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = remember(database, user, ["User keeps bees", "User has a garden", "User rows"])
    with database.connection() as connection:
        rows = upkeep.waiting(connection, "memory", user.id, made_up.id, 10)
    assert [row.id for row in rows] == ids
    with database.transaction() as tx:
        memories.update(tx, user.id, ids[0], content="User keeps wasps")
        memories.delete(tx, user.id, ids[1:2])
    with database.transaction() as tx:
        assert upkeep.unchanged(tx, "memory", user.id, rows) == {ids[2]}
        written = index.write_vectors(
            tx, "memory", user.id, made_up.id, {owner: vector(owner) for owner in ids[1:]}
        )
    assert written == ids[2:]


def test_failures_are_retried_later_and_not_for_ever(database: Database, user: User) -> None:
    with database.transaction() as tx:
        made_up = model(tx)
    ids = remember(database, user, ["User keeps bees"])
    with database.connection() as connection:
        for attempt in range(1, upkeep.MAX_ATTEMPTS + 1):
            vectors.put_failures(connection, "memory", user.id, made_up.id, ids, "no", -1.0)
            waits = upkeep.count_waiting(connection, "memory", user.id, made_up.id)
            assert waits == (1 if attempt < upkeep.MAX_ATTEMPTS else 0)
        assert upkeep.failures(connection, "memory", user.id, made_up.id) == 1
        assert upkeep.count_waiting(connection, "memory", user.id, made_up.id, again=True) == 1
        index.write_vectors(connection, "memory", user.id, made_up.id, {ids[0]: vector(1)})
        assert upkeep.failures(connection, "memory", user.id, made_up.id) == 0


def test_an_unknown_model_is_refused(database: Database, user: User) -> None:
    ids = remember(database, user, ["User keeps bees"])
    with pytest.raises(ModelUnavailable, match="999"), database.transaction() as tx:
        index.write_vectors(tx, "memory", user.id, 999, {ids[0]: vector(1)})


def test_a_fixed_threshold_overrides_the_calibration(database: Database, user: User) -> None:
    from jarvis.retrieval.search import Retriever
    from tests.integration.stored import PLAIN

    with database.transaction() as tx:
        made_up = model(tx)
    target = vector(1)
    remember(database, user, ["User keeps bees"], {0: near(target, 2)}, made_up)
    strict = Retriever(database, replace(PLAIN, min_similarity=0.99))
    assert not strict.memories(user.id, ask("my hives", target), made_up, limit=5).hits
    assert retriever(database).memories(user.id, ask("my hives", target), made_up, limit=5).hits
