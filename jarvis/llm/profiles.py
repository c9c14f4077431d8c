"""What is known of models by name: prefixes that they were trained with, and good defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """How an embedding model wants its input. Sources: the models' own cards."""

    query_prefix: str = ""
    document_prefix: str = ""
    shortens: bool = False
    """Trained so that the first N dimensions can be used alone (Matryoshka)."""


_SEARCHING = "Represent this sentence for searching relevant passages: "

EMBEDDING_PROFILES: dict[str, EmbeddingProfile] = {
    "nomic-embed-text": EmbeddingProfile("search_query: ", "search_document: ", shortens=True),
    "mxbai-embed-large": EmbeddingProfile(_SEARCHING, shortens=True),
    "snowflake-arctic-embed": EmbeddingProfile(_SEARCHING),
    "snowflake-arctic-embed2": EmbeddingProfile("query: ", shortens=True),
    "embeddinggemma": EmbeddingProfile(
        "task: search result | query: ", "title: none | text: ", shortens=True
    ),
    "qwen3-embedding": EmbeddingProfile(
        "Instruct: Given a question, retrieve the passages that answer it\nQuery: ", shortens=True
    ),
    "bge-m3": EmbeddingProfile(),
    "bge-large": EmbeddingProfile(_SEARCHING),
    "all-minilm": EmbeddingProfile(),
    "granite-embedding": EmbeddingProfile(),
    "paraphrase-multilingual": EmbeddingProfile(),
}
"""By the name without its tag. The order is that of preference on a server that has several."""

OLLAMA_CHAT_DEFAULT = "llama3.1:8b"
OLLAMA_EMBEDDING_DEFAULT = "nomic-embed-text"


def base_name(model: str) -> str:
    """The name without registry, namespace and tag: ``x/all-minilm:33m`` is ``all-minilm``."""
    return model.rpartition("/")[2].partition(":")[0]


def embedding_profile(model: str) -> EmbeddingProfile:
    """How ``model`` wants its input; no prefixes where nothing is known."""
    return EMBEDDING_PROFILES.get(base_name(model), EmbeddingProfile())


def is_embedding_name(model: str) -> bool:
    """Whether the name alone says that this is an embedding model."""
    name = base_name(model)
    return name in EMBEDDING_PROFILES or "embed" in name or "minilm" in name or name[:4] == "bge-"


def same_model(left: str, right: str) -> bool:
    """Whether two names mean the same model: ``:latest`` may be left out."""
    return left.removesuffix(":latest") == right.removesuffix(":latest")
