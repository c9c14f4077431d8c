"""Angle functions of ``Decimal``, by their power series, to the precision of the context."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from decimal import Decimal, getcontext, localcontext

_GUARD = 20
"""Digits computed beyond the ones that are wanted."""


def pi() -> Decimal:
    """π, by Machin's formula: π/4 = 4·arctan(1/5) − arctan(1/239)."""
    with localcontext() as context:
        context.prec += _GUARD
        value = _pi(context.prec)
    return +value


@functools.cache
def _pi(precision: int) -> Decimal:
    with localcontext() as context:
        context.prec = precision + 5
        return 4 * (4 * _arctangent_series(Decimal(1) / 5) - _arctangent_series(Decimal(1) / 239))


def sine(angle: Decimal) -> Decimal:
    """The sine of an angle in radians."""
    return _reduced(angle, odd=True)


def cosine(angle: Decimal) -> Decimal:
    """The cosine of an angle in radians."""
    return _reduced(angle, odd=False)


def arctangent(value: Decimal) -> Decimal:
    """The angle in radians whose tangent is ``value``."""
    with localcontext() as context:
        context.prec += _GUARD
        inverted = abs(value) > 1
        number = 1 / abs(value) if inverted else abs(value)
        # arctan x = 2 arctan(x / (1 + sqrt(1 + x²))): twice, so that the series is short.
        for _ in range(2):
            number = number / (1 + (1 + number * number).sqrt())
        angle = 4 * _arctangent_series(number)
        if inverted:
            angle = pi() / 2 - angle
    return +angle.copy_sign(value)


def _reduced(angle: Decimal, *, odd: bool) -> Decimal:
    with localcontext() as context:
        # A large angle loses as many digits in the reduction as it has before the point.
        context.prec += _GUARD + max(angle.adjusted(), 0)
        turn = 2 * pi()
        rest = angle - turn * (angle / turn).to_integral_value()
        total = _sum(_alternating(rest, odd))
        # What is left of a zero is rounding.
        if abs(total) < Decimal(10) ** (-context.prec + _GUARD):
            total = Decimal(0)
    return +total


def _alternating(x: Decimal, odd: bool) -> Iterator[Decimal]:
    term, step = (x, 1) if odd else (Decimal(1), 0)
    while True:
        yield term
        term = -term * x * x / ((step + 1) * (step + 2))
        step += 2


def _arctangent_series(x: Decimal) -> Decimal:
    def terms() -> Iterator[Decimal]:
        power, step = x, 1
        while True:
            yield power / step
            power, step = -power * x * x, step + 2

    return _sum(terms())


def _sum(terms: Iterator[Decimal]) -> Decimal:
    total = Decimal(0)
    for term in terms:
        if term == 0 or (total and term.adjusted() < total.adjusted() - getcontext().prec - 2):
            return total
        before, total = total, total + term
        if before == total:
            return total
    return total
