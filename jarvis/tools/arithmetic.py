"""Numbers that stay exact as long as they can, and the functions of the calculator.

Values are ``Fraction``, and ``Decimal`` with ``DIGITS`` digits once a root, a logarithm or an angle
is involved. Sizes are checked before anything large is computed: too large is ``OverflowError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from jarvis.tools.schema import ToolError
from jarvis.tools.series import arctangent, cosine, pi, sine

Number = Fraction | Decimal

MAX_DIGITS = 4000
"""Digits in any number; Python itself prints no more than 4,300."""
DIGITS = 60
"""Digits of a value that is not exact."""

_MAX_BITS = int(MAX_DIGITS * math.log2(10))


def alike(left: Number, right: Number) -> tuple[Any, Any]:
    """Both exact, or both decimal: the two kinds do not mix by themselves."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left, right
    return to_decimal(left), to_decimal(right)


def modulo(left: Any, right: Any) -> Any:
    """The rest of a division, with the divisor's sign, as in Python."""
    return left - right * math.floor(left / right)


def to_decimal(value: Number) -> Decimal:
    """The value to as many digits as the context holds."""
    if isinstance(value, Decimal):
        return value
    return Decimal(value.numerator) / Decimal(value.denominator)


def checked(value: Number) -> Number:
    """The value itself.

    Raises:
        OverflowError: it has more than ``MAX_DIGITS`` digits.
    """
    if isinstance(value, Fraction):
        size = max(value.numerator.bit_length(), value.denominator.bit_length())
        if size > _MAX_BITS:
            raise OverflowError
    return value


def _whole(value: Number, what: str) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ToolError(f"{what} needs whole numbers")
    return value.numerator


def power(base: Number, exponent: Number) -> Number:
    """Base to the exponent; exact where the result is a fraction.

    Raises:
        ToolError: an even root of a negative number.
        OverflowError: the result would be too large.
    """
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            times = exponent.numerator
            size = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
            if base not in {0, 1, -1} and (size - 1) * abs(times) > _MAX_BITS:
                raise OverflowError
            return base**times  # a Fraction; dividing by zero raises by itself
        if exponent.denominator <= 64:
            root = _exact_root(base, exponent.denominator)
            if root is not None:
                return power(root, Fraction(exponent.numerator))
    return to_decimal(base) ** to_decimal(exponent)


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
    number = to_decimal(value)
    if degree == 2:
        return number.sqrt()
    magnitude = abs(number) ** (Decimal(1) / degree)
    return magnitude.copy_sign(number)


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if value <= 0:
        raise ToolError("a logarithm needs a positive number")
    if base is None:
        return Fraction(0) if value == 1 else to_decimal(value).ln()
    if base <= 0 or base == 1:
        raise ToolError("the base of a logarithm must be positive and not 1")
    result = to_decimal(value).ln() / to_decimal(base).ln()
    nearest = Fraction(round(result))
    if isinstance(value, Fraction) and isinstance(base, Fraction) and abs(nearest) < _MAX_BITS:
        near = abs(result - round(result)) < Decimal("1e-40")
        if near and power(base, nearest) == value:
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
    a, b = alike(left, right)
    quotient: Number = a / b
    return quotient


def _sum(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        a, b = alike(total, value)
        total = a + b
    return total


def _trigonometric(compute: Callable[[Decimal], Decimal], value: Number) -> Number:
    if value == 0 and compute is not cosine:
        return Fraction(0)
    if to_decimal(value).copy_abs() > 10**15:
        raise ToolError("an angle is computed up to 10^15")
    result = compute(to_decimal(value))
    # sin(pi) is not zero only because pi was rounded.
    return Fraction(0) if abs(result) < Decimal(10) ** (15 - DIGITS) else result


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
    "exp": lambda x: Fraction(1) if x == 0 else to_decimal(x).exp(),
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
    "pow": power,
    "mod": lambda a, b: modulo(*alike(a, b)),
    "hypot": lambda a, b: _nth_root(_sum(power(a, Fraction(2)), power(b, Fraction(2))), 2),
    "sin": lambda x: _trigonometric(sine, x),
    "cos": lambda x: _trigonometric(cosine, x),
    "tan": lambda x: _trigonometric(_tangent, x),
    "asin": lambda x: _trigonometric(_arcsine, x),
    "acos": lambda x: pi() / 2 - _arcsine(to_decimal(x)),
    "atan": lambda x: _trigonometric(arctangent, x),
    "degrees": lambda x: to_decimal(x) * 180 / pi(),
    "radians": lambda x: to_decimal(x) * pi() / 180,
}


def constant(name: str) -> Number:
    """The number that a name stands for.

    Raises:
        ToolError: none.
    """
    if name in {"pi", "tau"}:
        return pi() * (1 if name == "pi" else 2)
    if name == "e":
        return Decimal(1).exp()
    raise ToolError(f"unknown name {name!r}; known: pi, e, tau")


def call(name: str, arguments: list[Number]) -> Number:
    """The value of a function.

    Raises:
        ToolError: there is no such function, or not with so many arguments.
    """
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise ToolError(f"unknown function {name!r}; known: {', '.join(sorted(_FUNCTIONS))}")
    try:
        return function(*arguments)
    except TypeError:
        raise ToolError(f"{name} does not take {len(arguments)} number(s)") from None
