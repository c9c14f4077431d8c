"""Jarvis: a terminal-first personal assistant that remembers.

Nothing is imported here: ``jarvis --version`` and shell completion must start with the
standard library alone.
"""

__version__ = "0.1.0"
