"""Vectors of passages: made in batches by an ingest, or later by the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jarvis import log
from jarvis.errors import ModelUnavailable, ProviderUnavailable
from jarvis.retrieval import index
from jarvis.store import vectors

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.indexing import EmbedJob

EMBED_BATCH = 32
"""Passages in one request: as many as the embedder sends at once."""

RETRY_S = 60.0
"""Seconds until a passage that could not be embedded is tried again; doubled each time."""


class Embedding:
    """Embeds and stores passages as long as there is a model.

    Attributes:
        failed: why it gave up; empty while it works.
        left: whether passages were left for the worker.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.failed = ""
        self.left = False

    def window(self) -> int:
        """Tokens that fit into the embedding model beside its prefix; 0: it cannot be asked."""
        try:
            embedder = self.app.embedder()
            return embedder.max_tokens - len(embedder.document_prefix)
        except ModelUnavailable as error:
            self.failed = error.message
            return 0

    def write(self, texts: Mapping[int, str]) -> None:
        """Embeds passages (id to text) and stores their vectors in one transaction.

        Never raises for the model's sake: passages that it cannot embed are noted, and when it
        is not there at all ``failed`` says why.
        """
        if self.failed:
            self.left = True
            return
        ids = list(texts)
        try:
            model = self.app.embedding_model()
            made = self.app.embedder().embed_documents([texts[i] for i in ids])
        except ProviderUnavailable as error:
            self.failed, self.left = error.message, True
            return
        except ModelUnavailable as error:
            self._one_by_one(texts, error)
            return
        with self.app.database.transaction() as tx:
            index.write_vectors(
                tx, "chunk", self.app.user.id, model.id, dict(zip(ids, made, strict=True))
            )

    def _one_by_one(self, texts: Mapping[int, str], error: ModelUnavailable) -> None:
        """Finds out which passage of a batch it is that the model cannot embed."""
        if len(texts) > 1:
            for owner, text in texts.items():
                self.write({owner: text})
            return
        log.get("documents").warning("a passage could not be embedded: %s", error.message)
        try:
            model = self.app.embedding_model()
        except ModelUnavailable as gone:
            self.failed, self.left = gone.message, True
            return
        with self.app.database.transaction() as tx:
            vectors.put_failures(
                tx, "chunk", self.app.user.id, model.id, list(texts), error.message, RETRY_S
            )


def embed_job() -> EmbedJob:
    """The worker's part: vectors that an ingest did not make."""
    from jarvis.services.indexing import EmbedJob

    return EmbedJob("embed documents", "chunk")
