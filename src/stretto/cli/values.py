"""Values of options: from what somebody typed to what a command takes.

positive("3")   ──►  3
positive("-1")  ──►  ArgumentTypeError: '-1' is not a whole number of at least 1
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import inf
from typing import Any

from stretto.errors import StrettoError, nearest
from stretto.exact import SEED, WORKERS
from stretto.limits import ITERATION_CYCLES, NUMBER_DIGITS


def positive(text: str) -> int:
    """An option that counts."""
    if not (text.isascii() and text.isdecimal() and text.strip("0")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if len(text) > NUMBER_DIGITS:
        raise argparse.ArgumentTypeError("the number is too long")
    return int(text)


def interval(text: str) -> int:
    """An initiation interval."""
    return _no_more(positive(text), ITERATION_CYCLES)


def natural(text: str) -> int:
    """An option that counts, from 0."""
    if text and not text.strip("0"):
        return 0
    try:
        return positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(str(error).replace("at least 1", "at least 0")) from None


def seed(text: str) -> int:
    """A seed, as the solver takes them."""
    return _no_more(natural(text), SEED)


def workers(text: str) -> int:
    """Threads, of which the solver takes so many at most."""
    return _no_more(positive(text), WORKERS)


def _no_more(number: int, most: int) -> int:
    if number > most:
        raise argparse.ArgumentTypeError(f"'{number}' is more than {most}")
    return number


def amount(text: str) -> float:
    """An option that is a time or an amount of work."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def grid(text: str) -> tuple[int, ...]:
    """Blocks along up to three axes."""
    found = tuple(positive(part) for part in text.split(","))
    if len(found) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} has more than three axes")
    return found


def swept_grid(text: str) -> str:
    """The same, where each may be a formula of the configuration."""
    if "=" in text:
        told = "is how many blocks run, X[,Y[,Z]]; values of an argument are given with"
        raise argparse.ArgumentTypeError(f"{told} --axis {text}")
    return text


def blocks(text: str) -> str:
    """What is spelled otherwise by now."""
    raise argparse.ArgumentTypeError(f"is now --grid: --grid '{text}', along up to three axes")


def launched(text: str) -> tuple[str, int | float | tuple[int, ...]]:
    """A number or a shape, by name."""
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=N")
    try:
        if "x" in value:
            return name, tuple(positive(part) for part in value.split("x"))
        number = int(value) if value.lstrip("-").isdecimal() else float(value)
        if not -inf < number < inf:
            raise ValueError(number)
    except (ValueError, argparse.ArgumentTypeError):
        told = f"{value!r} is neither a number nor a shape such as 4096x128"
        raise argparse.ArgumentTypeError(told) from None
    return name, number


def agents(text: str) -> list[tuple[str, str]]:
    """Operations, each with the agent that issues it."""
    found = [tuple(pair.strip() for pair in part.split("=")) for part in text.split(",")]
    if any(len(pair) != 2 or not all(pair) for pair in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not OP=AGENT, or several with commas")
    return [(pair[0], pair[1]) for pair in found]


def given(text: str) -> str:
    """A file or a machine."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return text


def pins(text: str) -> list[str]:
    """Where an operation is to stand; of a file, a line each."""
    from stretto.loop.pins import parse_pin

    try:
        asked = _lines(text[1:]) if text.startswith("@") else [text]
        for each in asked:
            parse_pin(each)
    except StrettoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return asked


def _lines(file: str) -> list[str]:
    from stretto.files import read_text

    lines = [line.strip() for line in read_text(file)[1].splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def port(text: str) -> int:
    """Where a server listens; 0: anywhere."""
    return _no_more(natural(text), 65535)


def setting(text: str) -> str:
    """A value of a machine's file that is to be another."""
    from stretto.machine.settings import parse_setting

    try:
        parse_setting(text)
    except StrettoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """A name and the values that it may have."""
    from stretto.many.grids import parse_axis

    try:
        return parse_axis(text)
    except StrettoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def values(text: str) -> tuple[Any, ...]:
    """Values that something may have."""
    from stretto.many.grids import parse_values

    try:
        return parse_values(text)
    except StrettoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def names(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(part.strip() for part in text.split(","))


def typed(text: str) -> tuple[str, str]:
    """A name and its type."""
    name, equals, type = text.partition("=")
    if not (name and equals and type):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=TYPE")
    return name, type


def part(text: str) -> str:
    """A rung or an arm of the cost-based generator."""
    # Known only to the generator, which is not loaded unless asked about.
    from stretto.solve import PARTS

    if text not in PARTS:
        hint = nearest(text, PARTS, f"known: {', '.join(PARTS)}")
        raise argparse.ArgumentTypeError(f"no part {text!r}; {hint}")
    return text


class Objectives:
    """The names of the objectives: each has a file, loaded where somebody asks for the names."""

    def __iter__(self) -> Iterator[str]:
        from stretto.exact.objectives import NAMES

        return iter(NAMES)


class Generators:
    """Who can make schedules: ours, and those of installed packages, which are asked last."""

    OURS = ("auto", "serial", "cost-based", "exact")

    def __contains__(self, name: object) -> bool:
        return name in self.OURS or name in tuple(self)

    def __iter__(self) -> Iterator[str]:
        from stretto.generate.outside import outside_names

        return iter((*self.OURS, *outside_names()))
