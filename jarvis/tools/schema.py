"""JSON schemas from signatures, and arguments checked against them.

Small models send numbers as text, lists as JSON text and nulls for defaults; what is meant
without doubt is accepted, everything else is an error that the model can act on.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from jarvis.errors import JarvisError

_SIMPLE: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


class ToolError(JarvisError):
    """A tool cannot do what it was asked to. The model reads the message."""


class BadTool(JarvisError):
    """A function that cannot be a tool: its author must change it."""


def describe(function: Callable[..., Any], injected: type) -> tuple[str, dict[str, Any], str]:
    """Reads a tool's description, parameters and context parameter from a function.

    Args:
        function: every parameter annotated with str, int, float, bool, ``Literal``, ``list[…]``,
            ``dict[str, …]`` or one of them ``| None``; a docstring whose first paragraph says
            what it does and whose ``Args:`` section says what the parameters mean.
        injected: a parameter annotated with this type is filled in by the caller.

    Returns:
        The description, the JSON schema of the parameters, the injected parameter's name or "".

    Raises:
        BadTool: no docstring, or a parameter that JSON cannot carry.
    """
    name = getattr(function, "__name__", "tool")
    text = inspect.getdoc(function) or ""
    if not text:
        raise BadTool(f"the tool {name} has no docstring", "say in it what the tool does")
    summary, meanings = _read_docstring(text)
    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    context = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise BadTool(f"the tool {name} takes *{parameter.name}", "name its parameters")
        kind = hints.get(parameter.name)
        if kind is injected:
            context = parameter.name
            continue
        schema = _schema_of(kind, f"{name}({parameter.name})")
        if meanings.get(parameter.name):
            schema["description"] = meanings[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        properties[parameter.name] = schema
    parameters = {"type": "object", "properties": properties, "required": required}
    return summary, parameters, context


def validate(name: str, parameters: Mapping[str, Any], arguments: object) -> dict[str, Any]:
    """Checks a call's arguments against the tool's parameters, and returns them as values.

    Args:
        name: the tool, for messages.
        parameters: its schema, from ``describe``.
        arguments: what the model sent: an object, or its JSON text.

    Raises:
        ToolError: something is missing, unknown or of the wrong type; the message says what.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise ToolError(f"{name}: the arguments are not valid JSON") from None
    if not isinstance(arguments, Mapping):
        raise ToolError(f"{name}: the arguments must be an object")
    properties: Mapping[str, Any] = parameters["properties"]
    values: dict[str, Any] = {}
    for key, value in arguments.items():
        if key not in properties:
            near = difflib.get_close_matches(str(key), list(properties), n=1)
            known = f"did you mean {near[0]}?" if near else "it takes: " + _names(properties)
            raise ToolError(f"{name}: no parameter {key!r}; {known}")
        if value is None and key not in parameters["required"]:
            continue
        values[key] = _value(value, properties[key], f"{name}: {key}")
    missing = [key for key in parameters["required"] if key not in values]
    if missing:
        raise ToolError(f"{name}: missing {', '.join(missing)}")
    return values


def _names(properties: Mapping[str, Any]) -> str:
    return ", ".join(properties) or "none"


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and the entries of the ``Args:`` section."""
    summary = " ".join(text.split("\n\n", 1)[0].split())
    meanings: dict[str, str] = {}
    current, inside = "", False
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.strip() == "Args:" or (inside and not line.strip())
            current = ""
        elif inside:
            indent = len(line) - len(line.lstrip())
            head, colon, rest = line.strip().partition(":")
            if indent <= 4 and colon and head.isidentifier():
                current = head
                meanings[current] = rest.strip()
            elif current:
                meanings[current] += " " + line.strip()
    return summary, meanings


def _schema_of(kind: Any, where: str) -> dict[str, Any]:
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin is Literal and all(isinstance(choice, str) for choice in arguments):
        return {"type": "string", "enum": list(arguments)}
    if origin in {types.UnionType, typing.Union}:
        arms = [arm for arm in arguments if arm is not type(None)]
        if len(arms) == 1:
            return _schema_of(arms[0], where)
    if origin is list and len(arguments) == 1:
        return {"type": "array", "items": _schema_of(arguments[0], where)}
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], where)}
    raise BadTool(
        f"{where} has no type that a tool can take",
        "annotate it with str, int, float, bool, Literal, list, dict or one of them | None",
    )


def _value(value: Any, schema: Mapping[str, Any], where: str) -> Any:
    kind = schema["type"]
    if kind == "string":
        return _text(value, schema, where)
    if kind == "boolean":
        return _truth(value, where)
    if kind in {"integer", "number"}:
        return _number(value, kind, where)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value] if kind == "array" else None
    if kind == "array":
        if not isinstance(value, (list, tuple)):
            value = [value]
        return [_value(item, schema["items"], where) for item in value]
    if not isinstance(value, Mapping):
        raise ToolError(f"{where} must be an object")
    inner = schema["additionalProperties"]
    return {str(key): _value(item, inner, where) for key, item in value.items()}


def _text(value: Any, schema: Mapping[str, Any], where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ToolError(f"{where} must be text")
    text = value if isinstance(value, str) else repr(value)
    choices = schema.get("enum")
    if not choices:
        return text
    for choice in choices:
        if text.strip().casefold() == choice.casefold():
            return str(choice)
    raise ToolError(f"{where} must be one of: {', '.join(choices)}; not {text!r}")


def _truth(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise ToolError(f"{where} must be true or false, not {value!r}")


def _number(value: Any, kind: str, where: str) -> int | float:
    what = "a whole number" if kind == "integer" else "a number"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ToolError(f"{where} must be {what}")
    try:
        if isinstance(value, str):
            value = float(value) if kind == "number" or "." in value else int(value)
        whole = kind != "integer" or value == int(value)
        number = int(value) if kind == "integer" else float(value)
    except (ValueError, OverflowError):  # infinity is no integer, a long integer no float
        raise ToolError(f"{where} must be {what}, not {str(value)[:80]!r}") from None
    if not whole or not (isinstance(number, int) or math.isfinite(number)):
        raise ToolError(f"{where} must be {what}, not {str(value)[:80]!r}")
    return number
