"""Faults of chat templates in model files that are known, and what stands for them."""

from __future__ import annotations

import re

_DOUBLED = re.compile(
    r"\{\{(\\?\"name\\?\": <function-name>, \\?\"arguments\\?\": <args-json-object>)\}\}"
)
"""How Qwen2.5-Coder-1.5B's file shows the model what a call looks like. The model writes what it
is shown, doubled braces and all, which is no JSON; its sisters' files have single ones."""


def mended(template: str) -> str:
    """The template to use for a file's own; empty where that is right."""
    right = _DOUBLED.sub(r"{\1}", template)
    return right if right != template else ""
