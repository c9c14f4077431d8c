"""The write side of the search: what is stored beside a memory, a message, a passage.

Terms are written in the transaction of the row itself, so that it is found by words at once.
Vectors follow when the model has made them. A message's words and vector also go into the keys
of the messages up to two places away from it; of a turn that somebody waits for, the worker
writes those (``message_terms``, ``renew_keys``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jarvis.errors import ModelUnavailable
from jarvis.retrieval import terms, tuning
from jarvis.store import message_keys, upkeep
from jarvis.store import vectors as store
from jarvis.store.message_keys import MessageTerms
from jarvis.store.vectors import Kind
from jarvis.types import EmbeddingModel, Role, Vector

if TYPE_CHECKING:
    from jarvis.llm.protocols import Embedder
    from jarvis.store.database import Connection


def write_terms(tx: Connection, kind: Kind, user_id: int, owner_id: int, text: str) -> None:
    """Makes one row findable by its words. Call it in the transaction that writes the row."""
    write_many_terms(tx, kind, user_id, {owner_id: text})


def write_many_terms(
    tx: Connection, kind: Kind, user_id: int, texts: Mapping[int, str], language: str | None = None
) -> None:
    """Makes rows findable by their words.

    For messages (kind ``turn``) the rows must be stored already: their places in the session
    decide whose neighbours they are. Barred messages and tools' results are left out.

    Args:
        tx: the transaction of the rows.
        kind: what they are.
        user_id: whose they are.
        texts: id of the row to its text.
        language: the stemmer's language; None: the one of the user's other rows.
    """
    if kind == "turn":
        message_keys.lock(tx, user_id)
    language = store.language(tx, user_id) if language is None else language
    count = terms.count_passage if kind == "chunk" else terms.count
    counts = {owner: count(user_id, text, language) for owner, text in texts.items()}
    if kind != "turn":
        weights = {owner: terms.weigh(kind, found) for owner, found in counts.items()}
        store.put_terms(tx, kind, user_id, language, weights)
        return
    allowed = message_keys.searchable_messages(tx, user_id, list(counts))
    if allowed:
        message_keys.put_counts(tx, user_id, language, {owner: counts[owner] for owner in allowed})
        _rebuild_keys(tx, user_id, message_keys.messages_around(tx, user_id, allowed))


def message_terms(user_id: int, role: Role, text: str, language: str) -> MessageTerms:
    """What makes a new message findable by its own words, and no more: somebody waits for the turn.

    The keys with its neighbours, its own and theirs, are the worker's to make (``renew_keys``).

    Args:
        language: the stemmer's.
    """
    counts = terms.count(user_id, text, language)
    key = None
    if role is Role.USER:
        key = terms.weigh("turn", terms.pool([(counts, tuning.NEIGHBOURS[0])]))
    return MessageTerms(language, counts, key)


def renew_keys(tx: Connection, user_id: int, limit: int) -> int:
    """Makes the keys anew that messages with ``message_terms`` take part in.

    Returns:
        how many such messages, at most ``limit``, are done.
    """
    message_keys.lock(tx, user_id)
    stale = message_keys.stale_messages(tx, user_id, limit)
    if stale:
        _rebuild_keys(tx, user_id, message_keys.messages_around(tx, user_id, stale))
        message_keys.mark_renewed(tx, user_id, stale)
    return len(stale)


def write_vectors(
    tx: Connection, kind: Kind, user_id: int, model_id: int, vectors: Mapping[int, Vector]
) -> list[int]:
    """Stores vectors that ``model_id`` made; returns the ids of the rows that still exist.

    Raises:
        ModelUnavailable: a vector is no vector of this model; nothing is stored.
    """
    if not vectors:
        return []
    if kind == "turn":
        message_keys.lock(tx, user_id)
    model = store.model(tx, model_id)
    if model is None:
        raise ModelUnavailable(f"there is no embedding model with the number {model_id}")
    for vector in vectors.values():
        check_vector(vector, model)
    written = store.put_vectors(tx, kind, user_id, model_id, vectors)
    if kind == "turn" and written:
        around = message_keys.messages_around(tx, user_id, written)
        message_keys.put_windows(tx, user_id, model_id, around, tuning.NEIGHBOURS)
        write_fact_keys(tx, user_id, model_id, written)
    elif kind == "memory" and written:
        told = message_keys.sources(tx, user_id, written)
        if told:
            write_fact_keys(tx, user_id, model_id, told)
    return written


def write_fact_keys(
    tx: Connection, user_id: int, model_id: int, message_ids: Iterable[int] | None = None
) -> None:
    """Makes the keys of messages with the facts taken from them anew; None: of all messages."""
    ids = None if message_ids is None else list(message_ids)
    message_keys.put_fact_keys(tx, user_id, model_id, ids, tuning.FACT)


def check_vector(vector: Vector, model: EmbeddingModel) -> None:
    """Refuses what cannot be compared: another length, zeros, NaN, infinity.

    Raises:
        ModelUnavailable: naming the model and what is wrong.
    """
    if len(vector) != model.dimensions:
        fault = f"{len(vector)} numbers instead of {model.dimensions}"
    else:
        length = math.hypot(*vector)
        if math.isfinite(length) and length > 0:
            return
        fault = "zeros only" if length == 0 else "numbers that are not finite"
    raise ModelUnavailable(
        f"the embedding model {model.name} gave a vector of {fault}",
        "choose another one: jarvis model list",
    )


def remove(tx: Connection, kind: Kind, user_id: int, ids: Iterable[int]) -> None:
    """Takes rows that stay (barred messages, superseded text) out of every search.

    Their words and vectors also leave the keys of their neighbours. Rows that are deleted need
    this only for messages, and before they go.
    """
    ids = list(ids)
    around: list[int] = []
    if kind == "turn":
        message_keys.lock(tx, user_id)
        around = [i for i in message_keys.messages_around(tx, user_id, ids) if i not in set(ids)]
    store.remove_vectors(tx, kind, user_id, ids)
    store.remove_terms(tx, kind, user_id, ids)
    if around:
        _rebuild_keys(tx, user_id, around)
        for model in store.models(tx):
            message_keys.put_windows(tx, user_id, model.id, around, tuning.NEIGHBOURS)


def recount(tx: Connection, kind: Kind, user_id: int) -> None:
    """Counts a user's terms now, as after forgetting; a small store needs no counts."""
    total, _ = upkeep.changed_share(tx, kind, user_id)
    if total < upkeep.COUNT_FROM:
        upkeep.forget_statistics(tx, kind, user_id)
    else:
        upkeep.recount(tx, kind, user_id)


def register_model(tx: Connection, embedder: Embedder) -> EmbeddingModel:
    """The stored model that ``embedder`` is; added and calibrated when it is new.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    key = (
        embedder.name,
        embedder.digest,
        embedder.dimensions,
        embedder.query_prefix,
        embedder.document_prefix,
    )
    found = store.find_model(tx, *key)
    if found is None:
        store.add_model(tx, *key)
        found = store.find_model(tx, *key)
    assert found is not None  # noqa: S101 -- added above, by us or by another process
    return calibrate(tx, embedder, found) if found.threshold is None else found


def calibrate(tx: Connection, embedder: Embedder, model: EmbeddingModel) -> EmbeddingModel:
    """Finds the gate's threshold for a model anew and keeps it.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    from jarvis.retrieval import calibration

    found = calibration.calibrate(embedder)
    store.save_calibration(tx, model.id, found.threshold, found.details())
    return replace(model, threshold=found.threshold)


def _rebuild_keys(tx: Connection, user_id: int, message_ids: list[int]) -> None:
    parts: dict[int, list[tuple[terms.Counts, float]]] = {owner: [] for owner in message_ids}
    for neighbour in message_keys.neighbours(tx, user_id, message_ids):
        weight = tuning.NEIGHBOURS[neighbour.distance]
        parts[neighbour.centre].append((neighbour.counts, weight))
    keys = {owner: terms.weigh("turn", terms.pool(found)) for owner, found in parts.items()}
    message_keys.put_keys(tx, user_id, keys)
