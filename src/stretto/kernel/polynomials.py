"""Sums of products of numbers that are known by name only: what addresses are made of.

128 * block + k * stride - 3        {(block,): 128, (k, stride): 1, (): -3}

Names are whole numbers here; whoever makes a polynomial knows what they stand for. Arithmetic is
exact: two expressions that are equal for all numbers are the same polynomial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Monomial = tuple[int, ...]
"""The names that are multiplied, in ascending order; none: the number one."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Products of names with their factors; none of the factors is zero."""

    terms: tuple[tuple[Monomial, int], ...] = ()
    """In ascending order, so that equal polynomials are equal values."""

    @property
    def constant(self) -> int | None:
        """Its value, if it has no names."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def names(self) -> frozenset[int]:
        """All names in it."""
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        return iter(self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for monomial, factor in other:
            found[monomial] = found.get(monomial, 0) + factor
        return polynomial(found)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -factor) for monomial, factor in self))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        found: dict[Monomial, int] = {}
        for one, factor in self:
            for two, times in other:
                both = tuple(sorted((*one, *two)))
                found[both] = found.get(both, 0) + factor * times
        return polynomial(found)

    def divided(self, by: int) -> Polynomial | None:
        """The quotient, if nothing is left over."""
        if by == 0 or any(factor % by for _, factor in self):
            return None
        return Polynomial(tuple((monomial, factor // by) for monomial, factor in self))


def polynomial(terms: Mapping[Monomial, int]) -> Polynomial:
    """Of products and their factors."""
    return Polynomial(tuple(sorted((m, f) for m, f in terms.items() if f)))


def number(value: int) -> Polynomial:
    """Of a number alone."""
    return Polynomial((((), value),) if value else ())


def named(name: int) -> Polynomial:
    """Of one name."""
    return Polynomial((((name,), 1),))


ZERO = number(0)
ONE = number(1)
