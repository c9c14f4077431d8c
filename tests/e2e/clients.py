"""The engine under clients that others wrote: ``python -m tests.e2e.clients [NAME …]``.

Starts ``jarvis engine serve --host 127.0.0.1`` in a home of its own, installs each client from
its registry into a scratch folder, and prints what it checked with each:

- ``python``: the official Python client, every call that it has for what the engine serves
- ``javascript``: the official JavaScript client, under node (tests/e2e/clients.mjs)
- ``llm``: the llm command with the llm-ollama plugin: list, prompt, conversation, schema, embed
- ``openai``: OpenAI's Python client on the engine's ``/v1`` routes
- ``oterm``: a terminal client, driven in a pseudo-terminal through a talk: it lists the models,
  makes a chat, asks twice, shows both answers with their tokens, and leaves

Models come from ``JARVIS_MODELS`` (all-minilm and qwen2.5-coder:0.5b). ``JARVIS_E2E_FOLDER``
keeps the installed clients for the next time. Exits 1 when a check fails.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ollama

from jarvis.engine import launcher
from jarvis.paths import Paths
from tests.e2e.driver import Person

CHAT = "qwen2.5-coder:0.5b"
HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Runs the clients that are named, or all."""
    unknown = set(names) - set(CLIENTS)
    if unknown:
        sys.exit(f"no such client: {', '.join(sorted(unknown))}")
    failed = []
    with serving() as address, scratch() as folder:
        for name in names or list(CLIENTS):
            print(f"{name}:", flush=True)
            try:
                CLIENTS[name](address, folder)
            except (AssertionError, subprocess.SubprocessError, OSError) as error:
                print(f"  FAILED  {error!r}"[:2000], flush=True)
                failed.append(name)
    return 1 if failed else 0


@contextmanager
def serving() -> Iterator[str]:
    """The engine on a free TCP port; yields its address."""
    models = Paths.from_environment().models
    with tempfile.TemporaryDirectory(prefix="je", ignore_cleanup_errors=True) as home:
        environment = {**os.environ, "JARVIS_HOME": home, "JARVIS_MODELS": str(models)}
        paths = Paths.from_environment({"JARVIS_HOME": home, "JARVIS_MODELS": str(models)})
        command = [sys.executable, "-m", "jarvis", "engine", "serve", "--host", "127.0.0.1"]
        process = subprocess.Popen(
            [*command, "--port", "0"], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            while not launcher.answers(launcher.socket_path(paths)):
                assert process.poll() is None, "the engine did not start"
                time.sleep(0.1)
            yield launcher.status(paths).address
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def scratch() -> Iterator[Path]:
    """Where clients are installed."""
    kept = os.environ.get("JARVIS_E2E_FOLDER")
    if kept:
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def ok(what: str) -> None:
    """Says that a check passed."""
    print(f"  ok  {what}", flush=True)


def run(command: list[str], **more: Any) -> str:
    """Runs a client's command and returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **more)
    assert done.returncode == 0, f"{command[:4]}: {done.stderr[-1500:]}"
    return str(done.stdout)


def environment_of(folder: Path, *packages: str) -> Path:
    """A virtual environment with the packages; returns its bin folder."""
    target = folder / "-".join(packages)
    if not (target / "bin" / "pip").exists():
        venv.create(target, with_pip=True)
        run([str(target / "bin" / "pip"), "install", "--quiet", *packages])
    return target / "bin"


def python(address: str, _: Path) -> None:
    """The official Python client."""
    client = ollama.Client(host=address, timeout=300)
    assert CHAT in [model.model for model in client.list().models]
    ok("list")
    shown = client.show(CHAT)
    assert "tools" in (shown.capabilities or [])
    assert shown.modelinfo and shown.modelinfo["general.architecture"] == "qwen2"
    ok("show")
    ask = [{"role": "user", "content": "Say hello."}]
    answer = client.chat(CHAT, messages=ask, options={"num_predict": 12})
    assert answer.message.content and answer.done and answer.prompt_eval_count
    ok("chat")
    parts = list(client.chat(CHAT, messages=ask, stream=True, options={"num_predict": 12}))
    assert len(parts) > 2 and parts[-1].done
    ok("chat, streamed")

    def weather(city: str) -> str:
        """Tells the weather.

        Args:
            city: name of the city
        """
        return f"sunny in {city}"

    question = [{"role": "user", "content": "What is the weather in Oslo? Use the tool."}]
    called = client.chat(CHAT, messages=question, tools=[weather], options={"temperature": 0})
    assert called.message.tool_calls, called.message
    assert called.message.tool_calls[0].function.name == "weather"
    result = {"role": "tool", "tool_name": "weather", "content": "sunny"}
    talk: list[Any] = [*question, called.message, result]
    final = client.chat(CHAT, messages=talk, options={"num_predict": 40})
    assert final.message.content
    ok("tools: a Python function, its call, its result")
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 30}},
        "required": ["name"],
    }
    shaped = client.chat(CHAT, messages=ask, format=schema, options={"num_predict": 60})
    assert list(json.loads(shaped.message.content or "")) == ["name"]
    ok("format with a schema")
    written = client.generate(CHAT, "def add(a, b):\n    return", options={"num_predict": 6})
    assert written.response and written.context
    filled = client.generate(
        CHAT, "def add(a, b):\n", suffix="\n\nprint(add(1, 2))", options={"num_predict": 16}
    )
    assert "return" in (filled.response or ""), filled.response
    ok("generate, and with a suffix")
    assert len(client.embed("all-minilm", ["a", "b"]).embeddings) == 2
    assert len(client.embeddings("all-minilm", "a").embedding) == 384
    ok("embed, embeddings")
    assert {model.model for model in client.ps().models} >= {CHAT, "all-minilm:latest"}
    ok("ps")
    assert [line.status for line in client.pull("all-minilm", stream=True)][-1] == "success"
    for call in (lambda: client.delete("nope"), lambda: client.show("nope")):
        try:
            call()
        except ollama.ResponseError as error:
            assert error.status_code == 404
        else:
            raise AssertionError("an unknown model was accepted")
    ok("pull, delete and errors")


def javascript(address: str, folder: Path) -> None:
    """The official JavaScript client."""
    npm, node = shutil.which("npm"), shutil.which("node")
    assert npm and node, "node and npm are needed"
    target = folder / "javascript"
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "node_modules" / "ollama").exists():
        run([npm, "install", "--silent", "--no-audit", "--no-fund", "ollama"], cwd=target)
    # Beside node_modules, where the import is looked for.
    script = Path(shutil.copy(HERE / "clients.mjs", target))
    print(run([node, str(script), address, CHAT]), end="", flush=True)


def llm(address: str, folder: Path) -> None:
    """The llm command with its Ollama plugin."""
    command = str(environment_of(folder, "llm", "llm-ollama") / "llm")
    user = folder / "llm-user"
    user.mkdir(exist_ok=True)
    variables = {**os.environ, "OLLAMA_HOST": address, "LLM_USER_PATH": str(user)}

    def call(*arguments: str) -> str:
        return run([command, *arguments], env=variables, stdin=subprocess.DEVNULL)

    assert CHAT in call("models")
    ok("models")
    assert call("-m", f"ollama/{CHAT}", "Say hello.", "-o", "num_predict", "12").strip()
    ok("a prompt, streamed, with an option")
    assert call(
        "-m", f"ollama/{CHAT}", "--no-stream", "-c", "Say it again.", "-o", "num_predict", "12"
    ).strip()
    ok("the conversation goes on, not streamed")
    shaped = call(
        "-m",
        f"ollama/{CHAT}",
        "--schema",
        "name, age int",
        "Invent a dog.",
        "-o",
        "num_predict",
        "80",
    )
    assert set(json.loads(shaped)) == {"name", "age"}
    ok("a schema")
    vector = json.loads(call("embed", "-m", "ollama/all-minilm", "-c", "hello"))
    assert len(vector) == 384
    ok("embed")


OPENAI_SCRIPT = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="unused", max_retries=0)
chat, ask = sys.argv[2], [{"role": "user", "content": "Say hello."}]
assert chat in [model.id for model in client.models.list()]
assert client.models.retrieve(chat).object == "model"
print("  ok  models")
answer = client.chat.completions.create(model=chat, messages=ask, max_tokens=12)
assert answer.choices[0].message.content and answer.usage.total_tokens > 12
stream = client.chat.completions.create(model=chat, messages=ask, max_tokens=12, stream=True)
parts = [part.choices[0].delta.content for part in stream]
assert len(parts) > 2 and "".join(part or "" for part in parts)
print("  ok  a chat, whole and streamed")
shape = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tool = {"type": "function", "function": {"name": "weather", "parameters": shape}}
question = [{"role": "user", "content": "What is the weather in Oslo? Use the tool."}]
called = client.chat.completions.create(
    model=chat, messages=question, tools=[tool], temperature=0, max_tokens=80
).choices[0]
assert called.finish_reason == "tool_calls", called
(call,) = called.message.tool_calls
assert call.function.name == "weather", call
result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
final = client.chat.completions.create(
    model=chat, messages=[*question, called.message, result], tools=[tool], max_tokens=40
)
assert final.choices[0].message.content or final.choices[0].message.tool_calls
print("  ok  a tool call and its result")
form = {"type": "json_schema", "json_schema": {"name": "x", "schema": shape}}
shaped = client.chat.completions.create(
    model=chat, messages=question, response_format=form, max_tokens=60
)
assert shaped.choices[0].message.content.startswith("{")
print("  ok  a schema")
vectors = client.embeddings.create(model="all-minilm", input=["a", "b"]).data
assert [len(each.embedding) for each in vectors] == [384, 384]
print("  ok  embeddings")
try:
    client.chat.completions.create(model="nope", messages=ask)
except openai.NotFoundError as error:
    assert "nope" in str(error)
    print("  ok  an unknown model is a NotFoundError")
"""


def openai(address: str, folder: Path) -> None:
    """OpenAI's Python client."""
    interpreter = environment_of(folder, "openai") / "python"
    print(run([str(interpreter), "-c", OPENAI_SCRIPT, address, CHAT]), end="", flush=True)


CTRL_N, CTRL_Q, TAB, SHIFT_TAB, ENTER = "\x0e", "\x11", "\t", "\x1b[Z", "\r"
STATISTICS = re.compile(r"↑ +\S+ +↓ +[1-9]\d*")


def oterm(address: str, folder: Path) -> None:
    """A terminal client, in a pseudo-terminal."""
    command = str(environment_of(folder, "oterm") / "oterm")
    data = folder / "oterm-data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    (data / "config.json").write_text(json.dumps({"splash-screen": False}))
    variables = {"OLLAMA_URL": address, "OTERM_DATA_DIR": str(data)}
    client = ollama.Client(host=address, timeout=300)
    client.generate(CHAT)  # loads it: the person below has little patience
    client._client.close()
    person = Person(program=command, env=variables, columns=120, rows=60)

    def press(*keys: str) -> None:
        for key in keys:
            person.type(key)
            person.look(0.3)

    def answered(turn: int) -> bool:
        return len(STATISTICS.findall(person.text)) == turn

    try:
        person.until("Ctrl+N")
        press(CTRL_N)
        person.until("all-minilm:latest")
        person.until(CHAT)
        ok("lists the engine's models")
        press(TAB, CHAT, TAB)
        person.until("0.49 GB")
        ok("shows what the model is")
        press(*[SHIFT_TAB] * 4, ENTER)  # from the list of models back over the edge to "Save"
        person.until(f"model: {CHAT}")
        ok("makes a chat")
        for turn, question in enumerate(("Say hello in five words.", "Say it again."), 1):
            press(question)
            person.until(question)
            press(ENTER)
            person.until(functools.partial(answered, turn))
            ok(f"shows the answer to question {turn}: {STATISTICS.findall(person.text)[-1]}")
        for answer in STATISTICS.split(person.text)[:2]:
            assert re.search(r"[a-z]{2}", answer.rpartition("❯")[2]), person.text
        press(CTRL_Q)
        person.until(lambda: not person.process.isalive())
        ok("leaves")
    finally:
        person.kill()


CLIENTS: dict[str, Callable[[str, Path], None]] = {
    "python": python,
    "javascript": javascript,
    "llm": llm,
    "openai": openai,
    "oterm": oterm,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
