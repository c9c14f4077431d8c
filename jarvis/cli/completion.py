"""``jarvis completion``: scripts that complete without starting Python.

The script holds the whole command tree, read once when it is printed, and reads ids, titles and
model names from the private cache that ``jarvis.services.completions`` keeps. Pressing Tab costs
a few milliseconds of the shell's own time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of
from jarvis.errors import UsageError

SHELLS = ("bash", "zsh", "fish")

OPTION_KINDS = {"--session": "session", "--model": "model", "--user": "user"}
"""Options whose values the cache knows."""

ARGUMENT_KINDS = {
    "session show": "session",
    "session rename": "session",
    "session export": "session",
    "session delete": "session",
    "memory show": "memory",
    "memory edit": "memory",
    "memory forget": "memory",
    "memory history": "memory",
    "doc show": "document",
    "doc forget": "document",
    "model use": "model",
    "model rm": "model",
    "model calibrate": "model",
}
"""Commands whose arguments the cache knows; other arguments are files."""


def completion(
    context: typer.Context,
    shell: Annotated[
        str, typer.Argument(metavar="[bash|zsh|fish]", help="Default: your login shell.")
    ] = "",
) -> None:
    """Prints the completion script for a shell; the examples say where it belongs."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise UsageError(f"there is no completion for {name or 'an unknown shell'}",
                         "one of: " + ", ".join(SHELLS))  # fmt: skip
    tree = list(walk())
    cache = str(state_of(context).paths.completions)
    output.emit_text(_SCRIPTS[name](tree, cache))


@dataclass(frozen=True, slots=True)
class Node:
    """One command: its path, what may follow, its options and the kinds of its values."""

    path: str
    children: list[tuple[str, str]] = field(default_factory=list)
    options: list[tuple[str, str]] = field(default_factory=list)
    with_value: dict[str, str] = field(default_factory=dict)
    kind: str = ""


def walk() -> Iterator[Node]:
    """The command tree, each command once."""
    import typer.main

    from jarvis.cli import app as tree

    overview = typer.main.get_command(tree.build(None))
    globals_ = _options(overview)
    children = [(name, entry.help) for name, entry in tree.ENTRIES.items()]
    yield Node("", children, *globals_)
    for name in tree.ENTRIES:
        root: Any = typer.main.get_command(tree.build(name))
        yield from _walk(root.commands[name], name, globals_)


def _walk(
    command: Any, path: str, globals_: tuple[list[tuple[str, str]], dict[str, str]]
) -> Iterator[Node]:
    options, with_value = _options(command)
    named = [(name, text) for name, text in globals_[0] if name not in {"--version", "-V"}]
    own = {name for name, _ in options}
    options += [option for option in named if option[0] not in own]
    children = getattr(command, "commands", {})
    yield Node(
        path,
        [(name, _line(child)) for name, child in children.items()],
        options,
        globals_[1] | with_value,
        ARGUMENT_KINDS.get(path, ""),
    )
    for name, child in children.items():
        yield from _walk(child, f"{path} {name}", globals_)


def _options(command: Any) -> tuple[list[tuple[str, str]], dict[str, str]]:
    options = [("--help", "Show this message and exit.")]
    with_value: dict[str, str] = {}
    for parameter in command.params:
        for name in (*parameter.opts, *parameter.secondary_opts):
            if not name.startswith("-") or name in {"--help", "-h"}:
                continue
            options.append((name, getattr(parameter, "help", "") or ""))
            if not getattr(parameter, "is_flag", False):
                with_value[name] = OPTION_KINDS.get(name, "file")
    return options, with_value


def _line(command: Any) -> str:
    return " ".join((command.help or "").strip().split("\n\n")[0].split())


def _patterns(tree: list[Node], what: str) -> Iterator[tuple[str, str]]:
    """The arms of a ``case`` over the command path: quoted pattern, quoted words."""
    for node in tree:
        if what == "kind":
            words = node.kind
        elif what == "children":
            words = " ".join(name for name, _ in node.children)
        else:
            words = " ".join(name for name, _ in node.options)
        if words:
            yield shlex.quote(node.path), shlex.quote(words)


def _value_kinds(tree: list[Node]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for node in tree:
        for name, kind in node.with_value.items():
            kinds[f"{node.path} {name}"] = kind
    return kinds


def _arms(rows: Iterator[tuple[str, str]], template: str) -> str:
    return "\n".join("    " + template.format(pattern, words) for pattern, words in rows)


def _bash(tree: list[Node], cache: str) -> str:
    values = sorted(_value_kinds(tree).items())
    return _BASH.format(
        cache=shlex.quote(cache),
        commands=shlex.quote(" " + "|".join(node.path for node in tree if node.path) + "|"),
        children=_arms(_patterns(tree, "children"), "{}) words={} ;;"),
        options=_arms(_patterns(tree, "options"), "{}) words={} ;;"),
        kinds=_arms(_patterns(tree, "kind"), "{}) kind={} ;;"),
        values=_arms(((shlex.quote(k), shlex.quote(v)) for k, v in values), "{}) kind={} ;;"),
    )


def _zsh(tree: list[Node], cache: str) -> str:
    values = sorted(_value_kinds(tree).items())

    def escaped(what: str) -> Iterator[tuple[str, str]]:
        for node in tree:
            rows = node.children if what == "children" else node.options
            if rows:
                lines = " ".join(
                    shlex.quote(f"{name}:{text.replace(':', ' ')}") for name, text in rows
                )
                yield shlex.quote(node.path), lines

    return _ZSH.format(
        cache=shlex.quote(cache),
        commands=shlex.quote("|" + "|".join(node.path for node in tree if node.path) + "|"),
        children=_arms(escaped("children"), "{}) rows=({}) ;;"),
        options=_arms(escaped("options"), "{}) rows=({}) ;;"),
        kinds=_arms(_patterns(tree, "kind"), "{}) kind={} ;;"),
        values=_arms(((shlex.quote(k), shlex.quote(v)) for k, v in values), "{}) kind={} ;;"),
    )


def _fish(tree: list[Node], cache: str) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def rows(what: str) -> str:
        lines = []
        for node in tree:
            found = node.children if what == "children" else node.options
            if found:
                words = " ".join(quoted(f"{name}\t{text}") for name, text in found)
                lines.append(f"    case {quoted(node.path)}\n      printf '%s\\n' {words}")
        return "\n".join(lines)

    kinds = "\n".join(
        f"    case {quoted(node.path)}\n      echo {node.kind}" for node in tree if node.kind
    )
    values = "\n".join(
        f"    case {quoted(name)}\n      echo {kind}"
        for name, kind in sorted(_value_kinds(tree).items())
    )
    return _FISH.format(
        cache=quoted(cache),
        commands=" ".join(quoted(node.path) for node in tree if node.path),
        children=rows("children"),
        options=rows("options"),
        kinds=kinds,
        values=values,
    )


_BASH = r"""# bash completion for jarvis; made by: jarvis completion bash
_jarvis() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local commands={commands} cache={cache}
  local where='' word='' words='' kind='' k v d i whole=${{COMP_LINE:0:COMP_POINT}}
  # A model name holds a colon, which bash takes for the border of a word: put it together again.
  whole=${{whole##*[[:space:]]}}
  if [[ $whole == *:* ]]; then
    for ((i = COMP_CWORD; i > 0; i--)); do
      words=${{COMP_WORDS[i]}}$words
      [[ $words == "$whole" ]] && break
    done
    cur=$whole words=''
    (( i > 0 )) && prev=${{COMP_WORDS[i-1]}}
  fi
  [[ -n $JARVIS_HOME ]] && cache=$JARVIS_HOME/cache/completions.tsv
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    [[ $word == -* ]] && continue
    [[ $commands == *[\ \|]"${{where:+$where }}$word|"* ]] && where="${{where:+$where }}$word"
  done
  COMPREPLY=()
  case "$where $prev" in
{values}
  esac
  if [[ -z $kind && $cur == -* ]]; then
    case "$where" in
{options}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [[ -z $kind ]]; then
    case "$where" in
{children}
    esac
    if [[ -n $words ]]; then
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      return
    fi
    case "$where" in
{kinds}
    esac
  fi
  [[ -z $kind || $kind == file || ! -r $cache ]] && return
  while IFS=$'\t' read -r k v d; do
    [[ $k == "$kind" && $v == "$cur"* ]] && COMPREPLY+=("$v")
  done < "$cache"
  # And what stands before the colon is there already.
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#"${{cur%"${{cur##*:}}"}}"}}")
  fi
  return 0
}}
complete -o default -F _jarvis jarvis
"""

_ZSH = r"""#compdef jarvis
# zsh completion for jarvis; made by: jarvis completion zsh
_jarvis() {{
  local where='' word kind='' k v d commands={commands} cache={cache}
  local -a rows
  [[ -n $JARVIS_HOME ]] && cache=$JARVIS_HOME/cache/completions.tsv
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word == -* ]] && continue
    [[ $commands == *"|${{where:+$where }}$word|"* ]] && where="${{where:+$where }}$word"
  done
  case "$where ${{words[CURRENT-1]}}" in
{values}
  esac
  if [[ -z $kind && $PREFIX == -* ]]; then
    case "$where" in
{options}
    esac
    _describe -o option rows
    return
  fi
  if [[ -z $kind ]]; then
    case "$where" in
{children}
    esac
    if (( $#rows )); then
      _describe command rows
      return
    fi
    case "$where" in
{kinds}
    esac
  fi
  if [[ -z $kind || $kind == file || ! -r $cache ]]; then
    _files
    return
  fi
  while IFS=$'\t' read -r k v d; do
    [[ $k == $kind ]] && rows+=("${{v//:/\\:}}:$d")
  done < "$cache"
  _describe $kind rows
}}
if [[ $funcstack[1] == _jarvis ]]; then _jarvis "$@"; else compdef _jarvis jarvis; fi
"""

_FISH = r"""# fish completion for jarvis; made by: jarvis completion fish
function __jarvis_children
  switch "$argv[1]"
{children}
  end
end
function __jarvis_options
  switch "$argv[1]"
{options}
  end
end
function __jarvis_kind
  switch "$argv[1]"
{kinds}
  end
end
function __jarvis_value
  switch "$argv[1]"
{values}
  end
end
function __jarvis_complete
  set -l commands {commands}
  set -l cache {cache}
  test -n "$JARVIS_HOME"; and set cache "$JARVIS_HOME/cache/completions.tsv"
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l where ''
  for word in $words[2..]
    string match -q -- '-*' $word; and continue
    set -l next (string trim -- "$where $word")
    contains -- $next $commands; and set where $next
  end
  set -l kind (__jarvis_value "$where $words[-1]")
  if test -z "$kind"
    if string match -q -- '-*' $current
      __jarvis_options $where
      return
    end
    set -l rows (__jarvis_children $where)
    if test (count $rows) -gt 0
      printf '%s\n' $rows
      return
    end
    set kind (__jarvis_kind $where)
  end
  if test -z "$kind" -o "$kind" = file -o ! -r "$cache"
    __fish_complete_path $current
    return
  end
  while read -l -d \t k v d
    test "$k" = "$kind"; and printf '%s\t%s\n' $v $d
  end < $cache
end
complete -c jarvis -f -a '(__jarvis_complete)'
"""

_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
