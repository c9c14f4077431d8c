"""What must hold whatever was killed, asked of the database itself."""

from __future__ import annotations

import psycopg

CHECKS: dict[str, str] = {
    "a document that is not whole": """
        SELECT d.name FROM documents d
        LEFT JOIN LATERAL (
            SELECT count(*) AS n, min(ordinal) AS low, max(ordinal) AS high,
                   bool_or(content LIKE '%BEGIN-MARK%') AS first,
                   bool_or(content LIKE '%END-MARK%') AS last
            FROM chunks c WHERE c.user_id = d.user_id AND c.document_id = d.id) c ON true
        WHERE c.n = 0 OR c.high - c.low + 1 <> c.n OR NOT c.first OR NOT c.last""",
    "a document without a path": """
        SELECT d.name FROM documents d WHERE NOT EXISTS (
            SELECT FROM document_paths p WHERE p.user_id = d.user_id AND p.document_id = d.id)""",
    "a message that was stored twice": """
        SELECT content FROM messages WHERE role = 'user'
        GROUP BY user_id, content HAVING count(*) > 1""",
    "two answers to one message": """
        SELECT reply_to::text FROM messages WHERE role = 'assistant' AND reply_to IS NOT NULL
        GROUP BY user_id, reply_to HAVING count(*) > 1""",
    "an answer to nothing": """
        SELECT a.id::text FROM messages a WHERE a.reply_to IS NOT NULL AND NOT EXISTS (
            SELECT FROM messages q WHERE q.user_id = a.user_id AND q.id = a.reply_to)""",
    "an active memory that is there twice": """
        SELECT content FROM memories WHERE state = 'active'
        GROUP BY user_id, content HAVING count(*) > 1""",
    "a memory superseded by nothing": """
        SELECT m.id::text FROM memories m WHERE m.superseded_by IS NOT NULL AND NOT EXISTS (
            SELECT FROM memories n WHERE n.user_id = m.user_id AND n.id = m.superseded_by)""",
    "a memory without words": """
        SELECT m.content FROM memories m WHERE m.state = 'active' AND NOT EXISTS (
            SELECT FROM memory_terms t WHERE t.user_id = m.user_id AND t.memory_id = m.id)""",
    "a passage without words": """
        SELECT c.id::text FROM chunks c WHERE NOT EXISTS (
            SELECT FROM chunk_terms t WHERE t.user_id = c.user_id AND t.chunk_id = c.id)""",
    "a counter below its ids": """
        SELECT kind FROM counters c WHERE last_id < coalesce(CASE kind
            WHEN 'memory' THEN (SELECT max(id) FROM memories m WHERE m.user_id = c.user_id)
            WHEN 'message' THEN (SELECT max(id) FROM messages m WHERE m.user_id = c.user_id)
            WHEN 'session' THEN (SELECT max(id) FROM sessions s WHERE s.user_id = c.user_id)
            WHEN 'document' THEN (SELECT max(id) FROM documents d WHERE d.user_id = c.user_id)
            WHEN 'chunk' THEN (SELECT max(id) FROM chunks k WHERE k.user_id = c.user_id)
            END, 0)""",
}
"""What is wrong, and a query that finds cases of it."""

SETTLED: dict[str, str] = {
    "a message still to be read for facts": """
        SELECT id::text FROM messages WHERE extract_state = 'pending'""",
    "a memory without a vector": """
        SELECT m.content FROM memories m WHERE m.state = 'active' AND NOT EXISTS (
            SELECT FROM memory_vectors v WHERE v.user_id = m.user_id AND v.memory_id = m.id)""",
    "a passage without a vector": """
        SELECT c.id::text FROM chunks c WHERE NOT EXISTS (
            SELECT FROM chunk_vectors v WHERE v.user_id = c.user_id AND v.chunk_id = c.id)""",
    "a memory still to be compared": """
        SELECT id::text FROM memories WHERE check_state = 'pending' AND state = 'active'""",
}
"""What is wrong once the worker has nothing left to do."""


def broken(connection: psycopg.Connection, *, settled: bool = False) -> list[str]:
    """Everything that does not hold, as sentences."""
    found = []
    for what, query in {**CHECKS, **(SETTLED if settled else {})}.items():
        rows = connection.execute(query.encode()).fetchall()
        if rows:
            found.append(f"{what}: {len(rows)}, for example {str(rows[0][0])[:80]!r}")
    return found


def orphans(connection: psycopg.Connection) -> list[str]:
    """Rows whose foreign key points at nothing: what a crash may never leave."""
    found = []
    keys = connection.execute(_KEYS).fetchall()
    for child, columns, parent, targets in keys:
        names, others = columns.split(","), targets.split(",")
        pairs = zip(names, others, strict=True)
        joined = " AND ".join(f"p.{other} = c.{name}" for name, other in pairs)
        filled = " AND ".join(f"c.{name} IS NOT NULL" for name in names)
        row = connection.execute(
            f"SELECT count(*) FROM {child} c WHERE {filled}"  # noqa: S608 -- names of the catalogue
            f" AND NOT EXISTS (SELECT FROM {parent} p WHERE {joined})".encode()
        ).fetchone()
        if row is not None and row[0]:
            found.append(f"orphan rows: {row[0]} in {child} without {parent}")
    return found


_KEYS = """
SELECT k.conrelid::regclass::text,
       (SELECT string_agg(a.attname, ',' ORDER BY o.n) FROM unnest(k.conkey)
        WITH ORDINALITY AS o (num, n) JOIN pg_attribute a
        ON a.attrelid = k.conrelid AND a.attnum = o.num),
       k.confrelid::regclass::text,
       (SELECT string_agg(a.attname, ',' ORDER BY o.n) FROM unnest(k.confkey)
        WITH ORDINALITY AS o (num, n) JOIN pg_attribute a
        ON a.attrelid = k.confrelid AND a.attnum = o.num)
FROM pg_constraint k
WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace
"""
