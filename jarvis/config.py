"""Typed settings: one dataclass a section, each field with its meaning below it.

Read from ``config.toml``; ``JARVIS_<SECTION>_<KEY>`` in the environment overrides the file.
``config.example.toml`` is made from this module (``python -m jarvis.config``) and a test
compares the two. A key that does not exist is an error that names it and the nearest one.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import json
import math
import os
import sys
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jarvis.errors import ConfigError

Provider = Literal["auto", "ollama", "embedded"]
Policy = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Which Postgres. Without ``url`` and ``host`` the embedded one is used."""

    url: str = ""
    """A libpq address, for example postgresql://me@db.example/jarvis."""
    host: str = ""
    """Server name, or the folder of its socket; an alternative to ``url``, part by part."""
    port: int = 5432
    """Server port."""
    user: str = ""
    """Role to connect as."""
    password: str = ""
    """Password; better put it into ``password_file`` or JARVIS_DATABASE_PASSWORD."""
    password_file: str = ""
    """A file whose first line is the password."""
    dbname: str = ""
    """Database name."""
    sslmode: str = ""
    """libpq's sslmode, for example verify-full; empty leaves it to the address."""
    sslrootcert: str = ""
    """File with the certificates to trust; system: those of this machine."""
    sslcert: str = ""
    """File with a certificate of your own, where the server asks for one."""
    sslkey: str = ""
    """File with its key, readable by you alone."""
    schema: str = ""
    """Schema that holds Jarvis's tables; empty: the role's default."""
    prepared_statements: bool = True
    """Set to false behind a transaction pooler such as PgBouncer."""
    connect_timeout: float = 5.0
    """Seconds to wait for a connection."""
    idle_hours: float = 12.0
    """Hours after which an unused embedded server is stopped."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The model that answers."""

    provider: Provider = "auto"
    """auto: an Ollama that answers, else the embedded engine; or exactly one of them."""
    host: str = ""
    """Address of the Ollama server; empty: OLLAMA_HOST, then its default."""
    model: str = ""
    """Model name; empty: the best one this machine can run."""
    num_ctx: int = 0
    """Context window in tokens; 0: chosen from the model and the memory of this machine."""
    temperature: float = 0.2
    """Sampling temperature. Low: what is remembered should be said as it is."""
    connect_timeout: float = 1.5
    """Seconds to wait for the server to accept a connection."""
    read_timeout: float = 600.0
    """Seconds to wait for the next piece of an answer (a model may be loading)."""
    think: bool = False
    """Ask a thinking model to think; its thoughts are shown dimmed and never stored."""
    system: str = ""
    """Replaces the built-in persona."""
    personas: dict[str, str] = field(default_factory=dict)
    """Named system prompts for --system NAME and /system NAME."""


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The model that turns text into vectors."""

    provider: Provider = "auto"
    """auto: an Ollama that has the model, else the embedded engine; or exactly one of them."""
    host: str = ""
    """Address of the Ollama server; empty: the one of the chat model."""
    model: str = ""
    """Model name; empty: the provider's default."""
    dimensions: int = 0
    """Shorten vectors to this length where the model allows it; 0: the model's own."""
    query_prefix: str | None = None
    """What stands before a question; unset: what the model needs."""
    document_prefix: str | None = None
    """What stands before a stored text; unset: what the model needs."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The embedded model server."""

    threads: int = 0
    """Threads for one request; 0: the cores that this process may use."""
    idle_minutes: float = 10.0
    """Minutes without a request after which the engine exits."""
    keep_alive: str = "10m"
    """How long a model stays loaded after its last request."""
    sources: list[str] = field(default_factory=lambda: ["local", "huggingface", "mirror"])
    """Where model files may come from, in order."""


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What is remembered."""

    extract: bool = True
    """Let the worker find facts in what you say."""
    max_facts: int = 3
    """Facts taken from one message at most."""
    extract_timeout: float = 15.0
    """Seconds that one extraction may take from its first token on."""
    hold_secrets: bool = True
    """Hold what looks like a secret for ``memory review``."""


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How memories, past turns and passages are found."""

    facts: int = 5
    """Memories put before the model in one turn at most."""
    turns: int = 3
    """Past turns put before the model at most."""
    chunks: int = 4
    """Passages of documents put before the model at most."""
    min_similarity: float | None = None
    """Cosine that a memory must reach; unset: calibrated for the embedding model."""
    fallback: int = 5
    """Most important memories used when the question asks about the user and nothing fits."""
    importance_weight: float = 0.25
    """How far importance may move a score: 0.25 means ±25 %; at most that."""
    recency_weight: float = 0.1
    """How far age may move a score, likewise."""
    language: str = "english"
    """Snowball stemmer for words: english, german, french …; none: words as they stand."""
    timeout: float = 2.0
    """Seconds that a source of context may take before the turn goes on without it."""


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The prompt of one turn."""

    seconds: float = 5.0
    """How long reading an uncached prompt may take: sets the token budget by measured speed."""
    max_tokens: int = 0
    """Upper bound of the prompt in tokens; 0: from ``seconds`` and the window."""
    answer_tokens: int = 1024
    """Tokens kept free for the answer."""


@dataclass(frozen=True, slots=True)
class DocumentSettings:
    """Documents."""

    chunk_tokens: int = 500
    """Tokens in a passage, bounded by the embedding model's window."""
    overlap_tokens: int = 50
    """Tokens that neighbouring passages share."""
    timeout: float = 60.0
    """Processor seconds that reading one file may take; five times that by the clock."""
    max_memory_mb: int = 1024
    """Memory that reading one file may take, in MiB."""
    max_text_mb: int = 64
    """Text taken out of one file at most, in MiB."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the model may do."""

    enabled: bool = True
    """Offer tools to models that can call them."""
    pure: Policy = "allow"
    """Tools without effects, such as the calculator."""
    reads: Policy = "allow"
    """Tools that read your memories, documents and allowed folders."""
    writes: Policy = "ask"
    """Tools that change something."""
    network: Policy = "ask"
    """Tools that use the network."""
    folders: list[str] = field(default_factory=list)
    """Folders that the read_file tool may read."""
    max_calls: int = 5
    """Calls in one turn at most."""


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """The chat on a terminal."""

    editing: Literal["emacs", "vi"] = "emacs"
    """Key bindings of the input line."""
    code_theme: str = "ansi_dark"
    """Colours of code: a Pygments style."""
    stats: bool = True
    """Show one dim line of figures after an answer."""
    history_entries: int = 100_000
    """Lines kept in the input history."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log files."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is written. No message contents, at any level but debug."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings."""

    user: str = ""
    """Whose rows are used; empty: the login name. ``--user`` and JARVIS_USER override it."""
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    chat: ChatSettings = field(default_factory=ChatSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    documents: DocumentSettings = field(default_factory=DocumentSettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
    log: LogSettings = field(default_factory=LogSettings)


RESERVED_VARIABLES = frozenset({"JARVIS_HOME", "JARVIS_MODELS", "JARVIS_CONFIG", "JARVIS_DEBUG"})
"""``JARVIS_…`` variables that are read elsewhere and are no keys of the configuration."""


def load(path: Path, env: Mapping[str, str] | None = None) -> Config:
    """Reads the configuration. A missing file means the defaults.

    Args:
        path: the TOML file.
        env: the environment; default ``os.environ``.

    Raises:
        ConfigError: the file cannot be read, or a key or value in it or in the environment is
            wrong; the message names the key, and for a misspelt one the nearest.
    """
    env = os.environ if env is None else env
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raw = {}
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", "make it readable, or name another: --config"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "jarvis config edit") from error
    values = _flatten(raw, str(path))
    values |= _from_environment(env)
    return _build(values)


@functools.cache
def keys() -> dict[str, Any]:
    """Every key as ``section.key`` (or ``key``) with its type."""
    found: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(Config).items():
        if dataclasses.is_dataclass(kind):
            for inner, inner_kind in typing.get_type_hints(kind).items():
                found[f"{name}.{inner}"] = inner_kind
        else:
            found[name] = kind
    return found


def value_of(config: Config, key: str) -> Any:
    """The value of ``section.key``.

    Raises:
        ConfigError: there is no such key.
    """
    if key not in keys():
        raise _unknown(key, "no setting")
    section, _, name = key.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def parse_value(key: str, text: str, source: str) -> Any:
    """Turns the text of a variable or of ``config set`` into the type that ``key`` has.

    Raises:
        ConfigError: there is no such key, or the text is no such value.
    """
    if key not in keys():
        raise _unknown(key, source)
    kind = _plain(keys()[key])
    if kind is str or typing.get_origin(kind) is Literal:
        return _check(key, text, source)
    if kind is bool:
        lowered = text.strip().lower()
        if lowered in {"true", "1", "yes", "on"}:
            return True
        if lowered in {"false", "0", "no", "off"}:
            return False
        raise ConfigError(f"{source}: {key} must be true or false, not {text!r}")
    if kind in {int, float}:
        try:
            return _check(key, kind(text), source)
        except ValueError:
            raise ConfigError(f"{source}: {key} must be a number, not {text!r}") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        if typing.get_origin(kind) is not list:
            raise ConfigError(f"{source}: {key} must be a JSON object") from None
        value = [part.strip() for part in text.split(",") if part.strip()]
    return _check(key, value, source)


def _flatten(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    known = keys()
    sections = {key.split(".")[0] for key in known if "." in key}
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name in sections:
            if not isinstance(value, dict):
                raise ConfigError(f"{source}: {name} is a section: write [{name}]")
            entries = {f"{name}.{inner}": item for inner, item in value.items()}
        else:
            entries = {name: value}
        for key, item in entries.items():
            if key not in known:
                raise _unknown(key, source)
            values[key] = _check(key, item, source)
    return values


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    by_variable = {"JARVIS_" + key.replace(".", "_").upper(): key for key in keys()}
    sections = {key.split(".")[0].upper() for key in keys() if "." in key}
    values: dict[str, Any] = {}
    for variable, text in env.items():
        if not variable.startswith("JARVIS_") or variable in RESERVED_VARIABLES:
            continue
        if variable in by_variable:
            key = by_variable[variable]
            values[key] = parse_value(key, text, variable)
            continue
        near = difflib.get_close_matches(
            variable, [*by_variable, *RESERVED_VARIABLES], n=1, cutoff=0.8
        )
        # Another program may own a JARVIS_ name; one that looks like ours is a mistake.
        if near or variable.split("_")[1] in sections:
            hint = f"did you mean {near[0]}?" if near else "jarvis config show lists the keys"
            raise ConfigError(f"{variable} is not a setting of Jarvis", hint)
    return values


def _unknown(key: str, source: str) -> ConfigError:
    near = difflib.get_close_matches(key, list(keys()), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "jarvis config show lists the keys"
    return ConfigError(f"{source}: unknown setting {key}", hint)


def _plain(kind: Any) -> Any:
    """The type without ``None``."""
    if isinstance(kind, types.UnionType):
        return next(arm for arm in typing.get_args(kind) if arm is not type(None))
    return kind


def _check(key: str, value: Any, source: str) -> Any:
    kind = _plain(keys()[key])
    origin = typing.get_origin(kind)
    if origin is Literal:
        allowed = typing.get_args(kind)
        if value not in allowed:
            raise ConfigError(
                f"{source}: {key} cannot be {value!r}", "one of: " + ", ".join(allowed)
            )
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wanted = origin or kind
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise ConfigError(f"{source}: {key} must be {_TYPE_NAMES[wanted]}, not {value!r}")
    if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
        raise ConfigError(f"{source}: {key} must be a number that is not negative, not {value}")
    items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    if not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{source}: {key} may hold text only")
    return value


_TYPE_NAMES: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def _build(values: Mapping[str, Any]) -> Config:
    hints = typing.get_type_hints(Config)
    arguments: dict[str, Any] = {}
    for name, kind in hints.items():
        if dataclasses.is_dataclass(kind):
            prefix = name + "."
            arguments[name] = typing.cast(Any, kind)(
                **{
                    key.removeprefix(prefix): value
                    for key, value in values.items()
                    if key.startswith(prefix)
                }
            )
        elif name in values:
            arguments[name] = values[name]
    return Config(**arguments)


def documentation() -> dict[str, str]:
    """The meaning of every key and section: the strings that stand below the fields."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    meanings: dict[str, str] = {}

    def walk(node: ast.ClassDef, prefix: str) -> None:
        for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(statement, ast.AnnAssign):
                continue
            name = prefix + typing.cast(ast.Name, statement.target).id
            kind = ast.unparse(statement.annotation)
            if kind in classes:
                meanings[name] = ast.get_docstring(classes[kind]) or ""
                walk(classes[kind], name + ".")
            elif isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                meanings[name] = " ".join(str(following.value.value).split())

    walk(classes["Config"], "")
    return meanings


def example() -> str:
    """The text of ``config.example.toml``: every key, commented out, with its default."""
    import tomli_w

    meanings, defaults = documentation(), Config()
    lines = [
        "# Jarvis reads this from the file that `jarvis config path` prints.",
        "# Every setting with its default; a variable JARVIS_<SECTION>_<KEY> overrides it.",
    ]
    for key, meaning in meanings.items():
        if key not in keys():
            lines += ["", f"[{key}]", f"# {meaning.splitlines()[0]}"]
            continue
        name, value = key.rpartition(".")[2], value_of(defaults, key)
        lines += ["", f"# {meaning}"]
        if value is None:
            lines.append(f'# {name} = ""')
        elif isinstance(value, dict):
            lines.append(f'# {name} = {{ pirate = "You are a pirate." }}')
        elif isinstance(value, list):
            lines.append(f"# {name} = {json.dumps(value)}")
        else:
            lines.append("# " + tomli_w.dumps({name: value}).strip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(example())
