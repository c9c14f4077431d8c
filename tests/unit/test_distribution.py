"""Every query over people's rows names ``user_id`` for every table in it.

So the tables can be distributed by it (Citus sends each query to one node), and no query can see
another user's rows by mistake. The keys are looked at in ``tests/integration/test_schema.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "jarvis"

TABLES = (
    "sessions messages memories tombstones documents document_paths chunks memory_vectors"
    " message_vectors chunk_vectors memory_terms message_terms chunk_terms term_statistics"
    " term_frequencies term_languages counters"
).split()
"""What is distributed. ``users``, ``role_users`` and ``embedding_models`` are everywhere."""

EXEMPT = {"archive.py", "roles.py", "migrations.py"}
"""Whole tables are their business: backups, rights, the schema."""
MODULES = sorted(path for path in (ROOT / "store").rglob("*.py") if path.name not in EXEMPT)

_STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_TABLE = re.compile(
    r"\b(?P<how>FROM|JOIN|UPDATE|INTO|USING)\s+(?P<table>" + "|".join(TABLES) + r")\b"
    r"(?:\s+(?:AS\s+)?(?!(?:WHERE|SET|ON|JOIN|LEFT|CROSS|INNER|GROUP|ORDER|LIMIT|VALUES|SELECT|USING"
    r"|RETURNING|AS|UNION|FOR|TABLESAMPLE|DEFAULT)\b)(?P<alias>[a-z_]\w*))?",
    re.IGNORECASE,
)


_QUERY = re.compile(r"\(\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)


def statements(path: Path) -> Iterator[tuple[int, str]]:
    """The SQL of a module: string constants, joined as Python joins them, and f-strings."""
    tree = ast.parse(path.read_text("utf-8"))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)}
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in inside:
                continue
            text = node.value
        else:
            continue
        if _STATEMENT.match(text):
            yield node.lineno, text


def unfit(sql: str) -> list[str]:
    """The tables of a statement that nothing ties to a user."""
    sql = re.sub(r"--[^\n]*", "", sql)
    found = []
    for match in _TABLE.finditer(sql):
        table, alias = match["table"], match["alias"]
        names = {alias or table}
        if match["how"].upper() == "INTO":
            columns = re.match(r"\s*(?:AS\s+\w+\s*)?\(([^)]*)\)", sql[match.end() :])
            if columns and "user_id" in columns[1]:
                continue
        tied = any(re.search(rf"\b{name}\.user_id\b", sql) for name in names)
        # Without the table's name it counts only in the query that the table stands in.
        bare = re.search(r"(?<![.\w])user_id\b", _query_around(sql, match.start())) is not None
        if not (tied or bare):
            found.append(table)
    return found


def _query_around(sql: str, position: int) -> str:
    """The innermost query that holds ``position``, without the queries inside it."""
    open_, begin, end = 0, 0, len(sql)
    for index in range(position - 1, -1, -1):
        open_ += {"(": 1, ")": -1}.get(sql[index], 0)
        if open_ == 1 and re.match(
            r"\(\s*(?:SELECT|WITH|DELETE|UPDATE|INSERT)\b", sql[index:], re.I
        ):
            begin = index + 1
            break
        open_ = min(open_, 0)
    depth = 0
    for index in range(begin, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[index], 0)
        if depth < 0:
            end = index
            break
    query = sql[begin:end]
    while start := _QUERY.search(query):
        depth, index = 1, start.start() + 1
        while depth and index < len(query):
            depth += {"(": 1, ")": -1}.get(query[index], 0)
            index += 1
        query = query[: start.start()] + " " + query[index:]
    return query


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_query_names_the_user(path: Path) -> None:
    wrong = [f"line {line}: {tables}" for line, sql in statements(path) if (tables := unfit(sql))]
    assert wrong == []


def test_the_check_sees_what_it_is_for() -> None:
    assert unfit("SELECT * FROM memories WHERE id = %s") == ["memories"]
    assert unfit("DELETE FROM messages m USING sessions s WHERE m.user_id = 1 AND s.id = 2") == [
        "sessions"
    ]
    assert unfit("SELECT 1 FROM memories m JOIN messages x ON x.id = m.id AND x.user_id = m.user_id"
                 " WHERE m.user_id = %s") == []  # fmt: skip
    assert unfit("INSERT INTO sessions (user_id, id) VALUES (1, 2)") == []
    assert unfit("INSERT INTO sessions (id) VALUES (2)") == ["sessions"]
    inner = "SELECT 1 FROM memories WHERE user_id = 1 AND id IN (SELECT id FROM messages{})"
    assert unfit(inner.format("")) == ["messages"]
    assert unfit(inner.format(" WHERE user_id = 1 AND length(role) > (SELECT 2)")) == []
    outer = "SELECT 1 FROM memories WHERE id IN (SELECT id FROM messages WHERE user_id = 1)"
    assert unfit(outer) == ["memories"]


def test_there_is_sql_to_look_at() -> None:
    assert sum(1 for path in MODULES for _ in statements(path)) > 50


def test_sql_stands_in_the_store_only() -> None:
    """The design's rule, which the checks above rest on."""
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        if "store" in path.parts or "postgres" in path.parts:
            continue
        for line, sql in statements(path):
            if _TABLE.search(sql):
                wrong.append(f"{path.relative_to(ROOT)}:{line}")
    assert wrong == []
