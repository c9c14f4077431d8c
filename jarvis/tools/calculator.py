"""Exact arithmetic: whole numbers, fractions and decimals, never floats and never ``eval``.

Values are ``Fraction`` as long as they are exact, and ``Decimal`` with 60 digits once a root, a
logarithm or an angle is involved. Sizes are checked before anything is computed.
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

from jarvis.tools.protocol import Effect, tool
from jarvis.tools.schema import ToolError
from jarvis.tools.series import arctangent, cosine, pi, sine

Number = Fraction | Decimal

MAX_LENGTH = 1000
"""Characters in an expression."""
MAX_DIGITS = 4000
"""Digits in any number; Python itself prints no more than 4,300."""
MAX_SECONDS = 1.0
"""Time for one expression."""

_DIGITS = 60
_SHOWN = 20
"""Digits shown of a value that is not exact."""
_MAX_BITS = int(MAX_DIGITS * math.log2(10))
_CONTEXT = decimal.Context(
    prec=_DIGITS,
    Emax=MAX_DIGITS,
    Emin=-MAX_DIGITS,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)

_SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_PERCENT_OF = re.compile(r"(\d+(?:\.\d+)?)\s*%\s*of\b", re.I)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%(?=\s*(?:[-+*/)]|$))")
_TIMES = re.compile(r"(?<=[\d)])(?:\s+[xX]\s*|[xX]\s+|(?<!\b0)[xX])(?=[\d(])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
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
    source = _normalise(expression)
    if len(source) > MAX_LENGTH:
        raise ToolError(f"the expression is longer than {MAX_LENGTH} characters")
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
    text = " ".join(expression.replace("√", " sqrt ").replace("π", " pi ").split())
    text = re.sub(r"sqrt (\d+(?:\.\d+)?|\()", _root, text).rstrip("=? ").translate(_SIGNS)
    text = _PERCENT_OF.sub(r"(\1/100)*", text)
    text = _PERCENT.sub(r"(\1/100)", text)
    text = _TIMES.sub("*", text)
    # In max(1,234) the comma separates arguments; without a call it groups digits.
    if not re.search(r"[A-Za-z_]\s*\(", text):
        text = _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    return _FACTORIAL.sub(r"factorial(\1)", text)


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
                return _constant(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                return _checked(self._binary(operator, self.value(left), self.value(right)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return _checked(_call(name, self._arguments(arguments)))
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
            return _power(left, right)
        compute = _OPERATORS.get(type(operator))
        if compute is None:
            raise ToolError("use + - * / // % and **")
        result: Number = compute(*_alike(left, right))
        return result


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(math.floor(a / b)),
    # As in Python: the result has the divisor's sign.
    ast.Mod: lambda a, b: a - b * math.floor(a / b),
}


def _alike(left: Number, right: Number) -> tuple[Any, Any]:
    """Both exact, or both decimal: the two kinds do not mix by themselves."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left, right
    return _decimal(left), _decimal(right)


def _decimal(value: Number) -> Decimal:
    if isinstance(value, Decimal):
        return value
    return Decimal(value.numerator) / Decimal(value.denominator)


def _checked(value: Number) -> Number:
    if isinstance(value, Fraction):
        size = max(value.numerator.bit_length(), value.denominator.bit_length())
        if size > _MAX_BITS:
            raise OverflowError
    return value


def _whole(value: Number, what: str) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ToolError(f"{what} needs whole numbers")
    return value.numerator


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            power = exponent.numerator
            size = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
            if base not in {0, 1, -1} and (size - 1) * abs(power) > _MAX_BITS:
                raise OverflowError
            return base**power  # a Fraction; dividing by zero raises by itself
        if exponent.denominator <= 64:
            root = _exact_root(base, exponent.denominator)
            if root is not None:
                return _power(root, Fraction(exponent.numerator))
    return _decimal(base) ** _decimal(exponent)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The root of a fraction when it is a fraction itself."""
    sign = -1 if value < 0 else 1
    if sign < 0 and degree % 2 == 0:
        raise ToolError("an even root of a negative number is not a real number")
    top = _integer_root(abs(value.numerator), degree)
    bottom = _integer_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(sign * top, bottom)


def _integer_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    return root if root**degree == value else None


def _nth_root(value: Number, degree: int) -> Number:
    if isinstance(value, Fraction):
        root = _exact_root(value, degree)
        if root is not None:
            return root
    number = _decimal(value)
    if degree == 2:
        return number.sqrt()
    magnitude = abs(number) ** (Decimal(1) / degree)
    return magnitude.copy_sign(number)


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if value <= 0:
        raise ToolError("a logarithm needs a positive number")
    if base is None:
        return Fraction(0) if value == 1 else _decimal(value).ln()
    if base <= 0 or base == 1:
        raise ToolError("the base of a logarithm must be positive and not 1")
    result = _decimal(value).ln() / _decimal(base).ln()
    nearest = Fraction(round(result))
    if isinstance(value, Fraction) and isinstance(base, Fraction) and abs(nearest) < _MAX_BITS:
        near = abs(result - round(result)) < Decimal("1e-40")
        if near and _power(base, nearest) == value:
            return nearest
    return result


def _factorial(value: Number) -> Fraction:
    number = _whole(value, "a factorial")
    if not 0 <= number <= 1500:
        raise ToolError("a factorial is computed from 0 to 1,500")
    return Fraction(math.factorial(number))


def _choose(compute: Callable[[int, int], int], n: Number, k: Number) -> Fraction:
    whole, part = _whole(n, "a choice"), _whole(k, "a choice")
    if whole < 0 or part < 0 or whole > 100_000 or min(part, abs(whole - part)) > 1500:
        raise OverflowError
    return Fraction(compute(whole, part))


def _round(value: Number, digits: Number = Fraction(0)) -> Number:
    places = _whole(digits, "rounding")
    if abs(places) > 1000:
        raise OverflowError
    unit = Fraction(10) ** -places
    # Halves away from zero, as people round.
    scaled = abs(Fraction(value)) / unit + Fraction(1, 2)
    return (1 if value >= 0 else -1) * math.floor(scaled) * unit


def _mean(*values: Number) -> Number:
    if not values:
        raise ToolError("no numbers to take the mean of")
    return _divide(_sum(*values), Fraction(len(values)))


def _median(*values: Number) -> Number:
    if not values:
        raise ToolError("no numbers to take the median of")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return _divide(_sum(ordered[middle - 1], ordered[middle]), Fraction(2))


def _divide(left: Number, right: Number) -> Number:
    a, b = _alike(left, right)
    quotient: Number = a / b
    return quotient


def _sum(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        a, b = _alike(total, value)
        total = a + b
    return total


def _trigonometric(compute: Callable[[Decimal], Decimal], value: Number) -> Number:
    if value == 0 and compute is not cosine:
        return Fraction(0)
    if _decimal(value).copy_abs() > 10**15:
        raise ToolError("an angle is computed up to 10^15")
    result = compute(_decimal(value))
    # sin(pi) is not zero only because pi was rounded.
    return Fraction(0) if abs(result) < Decimal(10) ** (15 - _DIGITS) else result


def _tangent(value: Decimal) -> Decimal:
    return sine(value) / cosine(value)


def _arcsine(value: Decimal) -> Decimal:
    if abs(value) == 1:
        return (pi() / 2).copy_sign(value)
    return arctangent(value / (1 - value * value).sqrt())


_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "round": _round,
    "floor": lambda x: Fraction(math.floor(x)),
    "ceil": lambda x: Fraction(math.ceil(x)),
    "trunc": lambda x: Fraction(math.trunc(x)),
    "sqrt": lambda x: _nth_root(x, 2),
    "cbrt": lambda x: _nth_root(x, 3),
    "exp": lambda x: Fraction(1) if x == 0 else _decimal(x).exp(),
    "ln": _logarithm,
    "log": _logarithm,
    "log2": lambda x: _logarithm(x, Fraction(2)),
    "log10": lambda x: _logarithm(x, Fraction(10)),
    "factorial": _factorial,
    "comb": lambda n, k: _choose(math.comb, n, k),
    "perm": lambda n, k: _choose(math.perm, n, k),
    "gcd": lambda *xs: Fraction(math.gcd(*(_whole(x, "gcd") for x in xs))),
    "lcm": lambda *xs: Fraction(math.lcm(*(_whole(x, "lcm") for x in xs))),
    "min": lambda *xs: min(xs),
    "max": lambda *xs: max(xs),
    "sum": _sum,
    "mean": _mean,
    "avg": _mean,
    "median": _median,
    "pow": _power,
    "mod": lambda a, b: _OPERATORS[ast.Mod](*_alike(a, b)),
    "hypot": lambda a, b: _nth_root(_sum(_power(a, Fraction(2)), _power(b, Fraction(2))), 2),
    "sin": lambda x: _trigonometric(sine, x),
    "cos": lambda x: _trigonometric(cosine, x),
    "tan": lambda x: _trigonometric(_tangent, x),
    "asin": lambda x: _trigonometric(_arcsine, x),
    "acos": lambda x: pi() / 2 - _arcsine(_decimal(x)),
    "atan": lambda x: _trigonometric(arctangent, x),
    "degrees": lambda x: _decimal(x) * 180 / pi(),
    "radians": lambda x: _decimal(x) * pi() / 180,
}


def _constant(name: str) -> Number:
    if name in {"pi", "tau"}:
        return pi() * (1 if name == "pi" else 2)
    if name == "e":
        return Decimal(1).exp()
    raise ToolError(f"unknown name {name!r}; known: pi, e, tau")


def _call(name: str, arguments: list[Number]) -> Number:
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise ToolError(f"unknown function {name!r}; known: {', '.join(sorted(_FUNCTIONS))}")
    try:
        return function(*arguments)
    except TypeError:
        raise ToolError(f"{name} does not take {len(arguments)} number(s)") from None


def _show(value: Number) -> str:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return f"= {value.numerator}"
        exact = _terminating(value)
        if exact:
            return f"= {exact}"
        if max(value.numerator.bit_length(), value.denominator.bit_length()) < 200:
            return f"= {value.numerator}/{value.denominator} ≈ {_rounded(_decimal(value))}"
        return f"≈ {_rounded(_decimal(value))}"
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
    if rest != 1 or places > _DIGITS:
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
