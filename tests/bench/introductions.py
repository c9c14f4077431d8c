"""Twenty introductions through the program, each by a user of its own.

``python -m tests.bench.introductions`` says each with ``jarvis chat``, asks its question with
``jarvis ask`` in another process, and prints a line each: whether the facts are in ``memory
list``, whether the one that answers was put before the model, and whether the answer has the
word. The last depends on the model; JARVIS_CHAT_MODEL chooses it.

It uses the data folder of the environment (JARVIS_HOME) and leaves its users there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid

from tests.e2e.introductions import INTRODUCTIONS, Introduction


def jarvis(user: str, *arguments: str, stdin: str | None = None) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "jarvis", "--user", user, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"jarvis {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def measure(user: str, introduction: Introduction) -> tuple[bool, bool, bool]:
    """Whether the facts are known, the right one is put before the model, and the answer right."""
    jarvis(user, "chat", stdin="\n".join(introduction.lines) + "\n")
    listed = jarvis(user, "memory", "list")
    asked = json.loads(jarvis(user, "ask", "--json", introduction.question))
    return (
        all(word in listed for word in introduction.known),
        any(introduction.answer in hit["content"] for hit in asked["memories"]),
        introduction.answer.casefold() in asked["answer"].casefold(),
    )


def main() -> None:
    run = uuid.uuid4().hex[:6]
    sums = [0, 0, 0]
    for number, introduction in enumerate(INTRODUCTIONS, 1):
        found = measure(f"bench-{run}-{number}", introduction)
        sums = [total + held for total, held in zip(sums, found, strict=True)]
        marks = "\t".join("yes" if held else "no" for held in found)
        print(f"{number}\t{marks}\t{introduction.question}", flush=True)
    print("\t".join(["sum", *map(str, sums), "known, injected, answered"]))


if __name__ == "__main__":
    main()
