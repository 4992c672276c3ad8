"""Grids: what a kernel or a machine leaves open, and every way to settle it.

keys=64,128          an argument of the function, or a constexpr of the kernel
stages=2..5          2, 3, 4, 5;  64..256..64: in steps of 64;  16..128*2: 16, 32, 64, 128
slots.tc.capacity=1,2

Grid((Axis("argument", "keys", (64, 128)), …))  ──►  Configuration, one after the other
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod
from typing import Literal

from stretto.errors import StrettoError

Value = int | float | bool | str
Kind = Literal["argument", "setting", "ring", "stages", "consumers"]
STAGES, CONSUMERS = "max_stages", "consumers"
MOST = 1_000_000
"""Configurations of one sweep: they are all kept until the end."""

_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(\d{1,18})|\*(\d{1,18}))?")
_WHOLE = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that is open, and what it may be."""

    kind: Kind
    name: str
    values: tuple[Value, ...]

    @property
    def label(self) -> str:
        """What it is called in a configuration."""
        return f"depth({self.name})" if self.kind == "ring" else self.name


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that was open, settled."""

    number: int
    arguments: tuple[tuple[str, Value], ...] = ()
    settings: tuple[tuple[str, Value], ...] = ()
    rings: tuple[tuple[str, Value], ...] = ()
    max_stages: int | None = None
    consumers: int | None = None

    @property
    def values(self) -> dict[str, Value]:
        """All of it under one name each."""
        found = {**dict(self.arguments), **dict(self.settings)}
        found |= {f"depth({name})": depth for name, depth in self.rings}
        if self.max_stages is not None:
            found[STAGES] = self.max_stages
        if self.consumers is not None:
            found[CONSUMERS] = self.consumers
        return found


@dataclass(frozen=True, slots=True)
class Grid:
    """Axes, each of another name."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        labels = [axis.label for axis in self.axes]
        for axis in self.axes:
            if not axis.values:
                raise StrettoError(f"`{axis.label}` has no value")
            if labels.count(axis.label) > 1:
                raise StrettoError(f"`{axis.label}` is given twice")
            least = axis.kind in ("ring", "stages", "consumers")
            wrong = [v for v in axis.values if not isinstance(v, int) or v < 1] if least else []
            if wrong:
                raise StrettoError(f"`{axis.label}` is {wrong[0]}; whole numbers from 1 are needed")
        if len(self) > MOST:
            raise StrettoError(f"the grid has {len(self):,} configurations; at most {MOST:,}")

    def __len__(self) -> int:
        return prod(len(axis.values) for axis in self.axes)

    def __iter__(self) -> Iterator[Configuration]:
        for number, chosen in enumerate(product(*(axis.values for axis in self.axes))):
            named = list(zip(self.axes, chosen, strict=True))

            def of(kind: Kind, named: Sequence[tuple[Axis, Value]] = named) -> _Pairs:
                return tuple((axis.name, value) for axis, value in named if axis.kind == kind)

            stages, consumers = dict(of("stages")), dict(of("consumers"))
            yield Configuration(
                number,
                of("argument"),
                of("setting"),
                of("ring"),
                _count(stages.get(STAGES)),
                _count(consumers.get(CONSUMERS)),
            )


_Pairs = tuple[tuple[str, Value], ...]


def _count(value: Value | None) -> int | None:
    return None if value is None else int(value)


def axes_of(
    grid: Mapping[str, Iterable[Value]],
    settings: Mapping[str, Iterable[Value]],
    rings: Mapping[str, Iterable[Value]],
    max_stages: Iterable[int],
    consumers: Iterable[int],
) -> Grid:
    """The grid of everything that may be open."""
    axes = [Axis("argument", name, _distinct(values)) for name, values in grid.items()]
    axes += [Axis("setting", path, _distinct(values)) for path, values in settings.items()]
    axes += [Axis("ring", name, _distinct(values)) for name, values in rings.items()]
    for kind, name, values in (
        ("stages", STAGES, max_stages),
        ("consumers", CONSUMERS, consumers),
    ):
        found = _distinct(values)
        if found:
            axes.append(Axis(kind, name, found))  # pyright: ignore[reportArgumentType] - one of two
    return Grid(tuple(axes))


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


# Words ------------------------------------------------------------------------------------


def parse_axis(text: str) -> tuple[str, tuple[Value, ...]]:
    """`NAME=VALUES` as its name and its values; StrettoError where it is none."""
    name, equals, values = text.partition("=")
    if not (name.strip() and equals and values.strip()):
        raise StrettoError(f"`{text}` is no axis; it should be NAME=VALUE,VALUE")
    return name.strip(), parse_values(values)


def parse_values(text: str) -> tuple[Value, ...]:
    """`1,2,4`, `2..5`, `64..256..64`, `16..128*2`, words; several of them with commas between."""
    found: list[Value] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise StrettoError(f"`{text}` has an empty value")
        match = _RANGE.fullmatch(part)
        found += [_value(part)] if match is None else _stepped(part, match)
    return _distinct(found)


def _stepped(text: str, match: re.Match[str]) -> list[Value]:
    low, high = int(match[1]), int(match[2])
    step, factor = int(match[3] or 1), int(match[4] or 0)
    if high < low or step < 1 or (match[4] is not None and (factor < 2 or low < 1)):
        raise StrettoError(f"`{text}` goes nowhere; expected such as 2..5, 64..256..64, 16..128*2")
    if not factor:
        if (high - low) // step >= MOST:
            raise StrettoError(f"`{text}` has more than {MOST:,} values")
        return list(range(low, high + 1, step))
    found: list[Value] = []
    while low <= high:
        found.append(low)
        low *= factor
    return found


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text
