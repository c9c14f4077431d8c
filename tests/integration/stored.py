"""Rows for the tests of the search: memories, messages, vectors that need no model."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from jarvis.config import RetrievalSettings
from jarvis.retrieval import Query, index
from jarvis.retrieval.search import Retriever
from jarvis.store import memories, sessions, vectors
from jarvis.store.database import Connection, Database
from jarvis.store.memories import NewMemory
from jarvis.types import EmbeddingModel, MemoryType, Role, User, Vector

NOW = datetime(2026, 5, 13, 12, 0, tzinfo=UTC)

PLAIN = RetrievalSettings(importance_weight=0.0, recency_weight=0.0)


def model(tx: Connection, dimensions: int = 64, name: str = "made-up") -> EmbeddingModel:
    """A model of that many dimensions, with a threshold."""
    key = (name, "digest", dimensions, "", "")
    vectors.add_model(tx, *key)
    found = vectors.find_model(tx, *key)
    assert found is not None
    vectors.save_calibration(tx, found.id, 0.3, {})
    found = vectors.find_model(tx, *key)
    assert found is not None
    return found


def vector(seed: int, dimensions: int = 64) -> list[float]:
    """A random direction."""
    chance = random.Random(seed)
    return [chance.gauss(0, 1) for _ in range(dimensions)]


def near(target: Vector, seed: int, distance: float = 0.3) -> list[float]:
    """A direction close to ``target``."""
    noise = vector(seed, len(target))
    scale = distance * math.dist(target, [0.0] * len(target)) / math.dist(noise, [0.0] * len(noise))
    return [a + scale * b for a, b in zip(target, noise, strict=True)]


def remember(
    database: Database,
    user: User,
    texts: Sequence[str],
    made: Mapping[int, Vector] | None = None,
    by: EmbeddingModel | None = None,
    type_: MemoryType = MemoryType.FACT,
) -> list[int]:
    """Stores memories; ``made`` are vectors by place in ``texts``."""
    ids = []
    with database.transaction() as tx:
        for text in texts:
            memory, _ = memories.add(tx, user.id, NewMemory(content=text, type=type_))
            ids.append(memory.id)
        index.write_many_terms(tx, "memory", user.id, dict(zip(ids, texts, strict=True)))
        if made and by:
            index.write_vectors(
                tx, "memory", user.id, by.id, {ids[place]: v for place, v in made.items()}
            )
    return ids


def say(
    database: Database, user: User, texts: Sequence[str], session: int | None = None
) -> list[int]:
    """A conversation: user and assistant in turn; returns the messages' ids."""
    ids: list[int] = []
    with database.transaction() as tx:
        session = session or sessions.create(tx, user.id).id
        for place, text in enumerate(texts):
            role = Role.ASSISTANT if place % 2 else Role.USER
            reply_to = ids[-1] if place % 2 else None
            message = sessions.add_message(tx, user.id, session, role, text, reply_to=reply_to)
            ids.append(message.id)
            index.write_terms(tx, "turn", user.id, message.id, text)
    return ids


def ask(text: str, vector: Vector | None = None) -> Query:
    """A question asked at ``NOW``."""
    return Query(text, vector, NOW)


def retriever(database: Database) -> Retriever:
    """A search without weights of importance and age."""
    return Retriever(database, PLAIN)
