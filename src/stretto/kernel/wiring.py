"""How a loop's operations are those of a kernel: which operand of the text is which of the loop.

%s = tcgen05_mma %q, %k acc %o      Taken(0), Taken(1), Accumulated()
%c = arith.mulf %x, %two            Taken(0), Outer(%two)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.kernel import Operation, Value
from stretto.loop import Loop


@dataclass(frozen=True, slots=True)
class Taken:
    """The operand of the loop's operation at a position."""

    position: int


@dataclass(frozen=True, slots=True)
class Outer:
    """A value that never changes in the loop: from outside, or a constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class Accumulated:
    """What the buffer that the operation adds to holds."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A buffer to be filled: its content does not matter."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a storage holds, of which a region takes the buffer."""

    storage: str


Wire = Taken | Outer | Accumulated | Unread | Held


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What a region takes from outside of it: values of the text, one a wire."""

    values: tuple[Value, ...]
    storages: tuple[str | None, ...]
    """Where each of them lives, if it is a tile in memory."""


@dataclass(frozen=True)
class LoopWiring:
    """One loop of a kernel, as scheduled and as it stands in the text."""

    loop: Loop
    operations: Mapping[str, Operation]
    """Of the text, by the names of the loop's."""
    wires: Mapping[str, tuple[Wire, ...]]
    """Of each operation, one an operand of the text; of control flow, one a value that it takes."""
    live_ins: Mapping[str, Value]
    """Values from outside, by name; the loop's counter among them."""
    initial: Mapping[tuple[str, int], Value]
    """By value and negative iteration: what is carried in."""
    buffers: Mapping[str, Value]
    """Storages of one copy, by name: the buffer of the text."""
    made: Mapping[Value, tuple[str, int]]
    """Values of the body: which operation makes them, and which result they are."""
    enclosed: Mapping[str, Enclosed] = field(default_factory=dict[str, Enclosed])
    """Of each operation that is control flow."""
