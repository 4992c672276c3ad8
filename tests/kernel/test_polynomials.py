"""Sums of products of names, against the numbers that they stand for."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from stretto.kernel.polynomials import ONE, ZERO, Polynomial, named, number, polynomial

MONOMIALS = st.lists(st.integers(0, 3), max_size=3).map(lambda names: tuple(sorted(names)))
POLYNOMIALS = st.dictionaries(MONOMIALS, st.integers(-9, 9), max_size=4).map(polynomial)
VALUES = st.lists(st.integers(-20, 20), min_size=4, max_size=4)


def value(of: Polynomial, names: list[int]) -> int:
    return sum(factor * prod(names[name] for name in monomial) for monomial, factor in of)


@given(POLYNOMIALS, POLYNOMIALS, VALUES)
def test_arithmetic_is_that_of_numbers(a: Polynomial, b: Polynomial, names: list[int]) -> None:
    assert value(a + b, names) == value(a, names) + value(b, names)
    assert value(a - b, names) == value(a, names) - value(b, names)
    assert value(a * b, names) == value(a, names) * value(b, names)
    assert a - a == ZERO
    assert a * ONE == a
    assert (a + b) * a == a * a + a * b


@given(POLYNOMIALS, st.integers(1, 6))
def test_what_divides_leaves_nothing(a: Polynomial, by: int) -> None:
    assert (a * number(by)).divided(by) == a
    quotient = a.divided(by)
    assert quotient is None or quotient * number(by) == a
    assert a.divided(0) is None


def test_constants_and_names() -> None:
    assert (number(7).constant, ZERO.constant, named(2).constant) == (7, 0, None)
    assert (named(1) * named(3) + number(2)).names == {1, 3}
    assert not named(1) - named(1)
