"""Exact arithmetic: whole numbers, fractions and decimals, never floats and never ``eval``.

This module reads expressions; ``jarvis.tools.arithmetic`` computes.
"""

from __future__ import annotations

import ast
import decimal
import math
import re
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from jarvis.tools.arithmetic import (
    DIGITS,
    MAX_DIGITS,
    Number,
    alike,
    call,
    checked,
    constant,
    modulo,
    power,
    to_decimal,
)
from jarvis.tools.protocol import Effect, tool
from jarvis.tools.schema import ToolError

MAX_LENGTH = 1000
"""Characters in an expression."""
MAX_SECONDS = 1.0
"""Time for one expression."""

_SHOWN = 20
"""Digits shown of a value that is not exact."""
_CONTEXT = decimal.Context(
    prec=DIGITS,
    Emax=MAX_DIGITS,
    Emin=-MAX_DIGITS,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)

_SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_WIDE = {0xFF01 + offset: 0x21 + offset for offset in range(94)}
"""Full-width forms, as East Asian keyboards write them."""
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED = re.compile(f"⁻?[{_SUPERSCRIPTS}]+")
_PERCENT_OF = re.compile(r"(\d+(?:\.\d+)?)\s*%\s*of\b", re.I)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%(?=\s*(?:[-+*/)]|$))")
_TIMES = re.compile(r"(?<=[\d)])(?:\s+[xX]\s*|[xX]\s+|(?<!\b0)[xX])(?=[\d(])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_MODULO = re.compile(r"(?<=[\d)\s])(?:mod|modulo)(?=[\s(])", re.I)
_FACTORIAL = re.compile(r"(\b\d+|\([^()]*\))\s*!(?!=)")


@tool(
    Effect.PURE,
    when=r"\d\s*(?:[+*/×·÷^%!−]|x\s*\d|plus|minus|times|divided|modulo|mod\b|percent|to the power)"
    r"|\d\s+-\s*\d|(?<![\d-])\d+-\d+(?![\d-])"  # not a date
    r"|√|\b(?:calculat|comput|squared?|cube|root|sqrt|log|factorial|average|mean|median|sum"
    r"|product|gcd|lcm|percent)\w*\b.*\d",
)
def calculator(expression: str) -> str:
    """Computes exactly; use it for every calculation.

    Args:
        expression: e.g. 2847 * 391, 15% of 80, sqrt(2)
    """
    return calculate(expression)


def calculate(expression: str) -> str:
    """Evaluates ``expression``; returns ``expression = value``.

    Raises:
        ToolError: it cannot be read, is not defined, or is too large.
    """
    # Before anything reads it: rewriting takes time that grows faster than the length.
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"the expression is longer than {MAX_LENGTH} characters")
    source = _normalise(expression)
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolError(f"cannot read {expression.strip()!r} as arithmetic") from None
    evaluator = _Evaluator(source)
    try:
        with decimal.localcontext(_CONTEXT):
            value = evaluator.value(tree.body)
            shown = _show(value)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except (decimal.InvalidOperation, ValueError):
        raise ToolError("that is not defined for these numbers") from None
    except (decimal.Overflow, OverflowError):
        raise ToolError(f"a number has more than {MAX_DIGITS:,} digits") from None
    except RecursionError:
        raise ToolError("the expression is nested too deeply") from None
    return f"{' '.join(expression.split())} {shown}"


def _normalise(expression: str) -> str:
    plain = _RAISED.sub(_exponent, expression.translate(_WIDE))
    text = " ".join(plain.replace("√", " sqrt ").replace("π", " pi ").split())
    text = re.sub(r"sqrt (\d+(?:\.\d+)?|\()", _root, text).rstrip("=? ").translate(_SIGNS)
    text = _PERCENT_OF.sub(r"(\1/100)*", text)
    text = _PERCENT.sub(r"(\1/100)", text)
    text = _MODULO.sub("%", _TIMES.sub("*", text))
    # In max(1,234) the comma separates arguments; without a call it groups digits.
    if not re.search(r"[A-Za-z_]\s*\(", text):
        text = _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    return _FACTORIAL.sub(r"factorial(\1)", text)


def _exponent(match: re.Match[str]) -> str:
    digits = "".join("-" if sign == "⁻" else str(_SUPERSCRIPTS.index(sign)) for sign in match[0])
    return f"**({digits})"


def _root(match: re.Match[str]) -> str:
    return "sqrt(" if match[1] == "(" else f"sqrt({match[1]})"


class _Evaluator:
    """Walks the syntax tree. Knows numbers, operators and the functions below, nothing else."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._deadline = time.monotonic() + MAX_SECONDS

    def value(self, node: ast.expr) -> Number:
        if time.monotonic() > self._deadline:
            raise ToolError(f"the calculation takes longer than {MAX_SECONDS:g} s")
        match node:
            case ast.Constant(value=bool() | str() | bytes() | complex() | None):
                raise ToolError("only numbers can be computed with")
            case ast.Constant():
                return self._literal(node)
            case ast.Name(id=name):
                return constant(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                return checked(self._binary(operator, self.value(left), self.value(right)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return checked(call(name, self._arguments(arguments)))
            case _:
                part = ast.get_source_segment(self._source, node) or "that"
                raise ToolError(f"cannot compute {part!r}: use numbers, + - * / // % ** and names")

    def _arguments(self, nodes: list[ast.expr]) -> list[Number]:
        if len(nodes) == 1 and isinstance(nodes[0], (ast.List, ast.Tuple)):
            nodes = nodes[0].elts
        return [self.value(node) for node in nodes]

    def _literal(self, node: ast.Constant) -> Fraction:
        # The text, not the float that Python made of it: 0.1 is one tenth.
        text = (ast.get_source_segment(self._source, node) or repr(node.value)).replace("_", "")
        exponent = re.search(r"[eE]([-+]?\d+)$", text)
        if exponent and not text.lower().startswith("0x") and abs(int(exponent[1])) > MAX_DIGITS:
            raise ToolError(f"a number has more than {MAX_DIGITS:,} digits")
        return Fraction(node.value) if isinstance(node.value, int) else Fraction(text)

    def _binary(self, operator: ast.operator, left: Number, right: Number) -> Number:
        if isinstance(operator, ast.Pow):
            return power(left, right)
        compute = _OPERATORS.get(type(operator))
        if compute is None:
            raise ToolError("use + - * / // % and **")
        result: Number = compute(*alike(left, right))
        return result


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(math.floor(a / b)),
    ast.Mod: modulo,
}


def _show(value: Number) -> str:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return f"= {value.numerator}"
        exact = _terminating(value)
        if exact:
            return f"= {exact}"
        if max(value.numerator.bit_length(), value.denominator.bit_length()) < 200:
            return f"= {value.numerator}/{value.denominator} ≈ {_rounded(to_decimal(value))}"
        return f"≈ {_rounded(to_decimal(value))}"
    return f"≈ {_rounded(value)}"


def _terminating(value: Fraction) -> str:
    """The value as a decimal number when it ends within 60 places, else empty."""
    rest = value.denominator
    places = 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest //= prime
            count += 1
        places = max(places, count)
    if rest != 1 or places > DIGITS:
        return ""
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _rounded(value: Decimal) -> str:
    short = decimal.Context(prec=_SHOWN, Emax=MAX_DIGITS, Emin=-MAX_DIGITS).plus(value)
    text = format(short, "f") if -7 <= short.adjusted() <= _SHOWN else str(short)
    if "." in text and "E" not in text:
        text = text.rstrip("0").rstrip(".")
    return text
