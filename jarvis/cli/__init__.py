"""Parsing and rendering: one module a command group; a body calls one service function."""
