"""``--help``: commands in groups, whole sentences, and examples that can be typed as they are."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "jarvis                              talk",
        'jarvis ask "what is my sister called?"',
        'git diff | jarvis ask "explain this change"',
        "jarvis memory add I live in Bergen",
        "jarvis doc ingest ~/papers",
    ),
    "chat": (
        "jarvis chat --continue",
        "printf 'hello\\nwhat is 2+2?\\n' | jarvis chat --private",
    ),
    "ask": (
        'jarvis ask "plan a weekend in Oslo"',
        'jarvis ask -c "and if it rains?"',
        "jarvis ask --file notes.md summarise this",
        'jarvis ask --json "who am I?" | jq .memories',
        'jarvis ask --format \'{"type": "object", "properties": {"year": {"type": "integer"}}}\' '
        '"when was Bach born?"',
        'jarvis ask --dry-run "what do you know about me?"',
    ),
    "session": (
        "jarvis session list",
        "jarvis session export 3 trip.md",
        "jarvis session search ferry to Oslo",
    ),
    "memory": (
        "jarvis memory add --type PREFERENCE I prefer tea over coffee",
        "jarvis memory search what do I drink --explain",
        "jarvis memory list --json | jq -r .content",
        "jarvis memory forget 12 15",
    ),
    "doc": (
        "jarvis doc ingest report.pdf notes/",
        "jarvis doc search battery life -k 3",
    ),
    "search": ("jarvis search the ferry to Oslo", "jarvis search --since 2026-05-01 budget"),
    "model": ("jarvis model list", "jarvis model pull qwen2.5:1.5b", "jarvis model use llama3.1"),
    "config": (
        "jarvis config show",
        "jarvis config set chat.model llama3.1:8b",
        "jarvis config edit",
    ),
    "completion": (
        "jarvis completion bash > ~/.local/share/bash-completion/completions/jarvis",
        "jarvis completion zsh > ~/.zfunc/_jarvis",
        "jarvis completion fish > ~/.config/fish/completions/jarvis.fish",
    ),
    "export": ("jarvis export > everything.ndjson",),
    "import": ("jarvis import everything.ndjson",),
    "setup": ("jarvis setup", "jarvis setup --yes"),
    "doctor": ("jarvis doctor", "jarvis doctor --json | jq 'select(.level != \"ok\")'"),
    "db": ("jarvis db psql -c 'SELECT count(*) FROM memories'", "jarvis db backup"),
}
"""Examples by command, without the program's name; "" is the overview."""


class Group(TyperGroup):
    """A group whose help lists commands by panel, unshortened, with examples."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands, under the name of their panel where they have one."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Commands"
            line = command.short_help or (command.help or "").strip().split("\n\n")[0]
            panels.setdefault(title, []).append((name, " ".join(line.split())))
        widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, line in rows])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples."""
        write_examples(ctx, formatter)


class Command(TyperCommand):
    """A command whose help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples."""
        write_examples(ctx, formatter)


def write_examples(ctx: Any, formatter: Any) -> None:
    """Writes the examples of a command, each in a line of its own, never folded."""
    name = ctx.command_path.partition(" ")[2]
    examples = EXAMPLES.get(name, ())
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(" " * formatter.current_indent + example + "\n")
