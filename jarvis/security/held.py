"""Why a fact waits for its user instead of being believed (``jarvis memory review``)."""

from __future__ import annotations

from jarvis.security import injection, secrets

ORDER = "reads like an instruction to the assistant"
_SECRET = "looks like a secret"  # noqa: S105 -- words about one


def reason(text: str) -> str:
    """Why ``text`` has to wait; "" where it need not."""
    return secret(text) or (ORDER if injection.looks_like_instruction(text) else "")


def secret(text: str) -> str:
    """The same for secrets alone, with the kind of the first one."""
    found = secrets.find(text)
    return f"{_SECRET}: {found[0].kind}" if found else ""


def is_secret(why: str) -> bool:
    """Whether a reason is that of a secret."""
    return why.startswith(_SECRET)
