"""What instructions compute with: expressions, slots of memory, barriers.

    Name("m")                                         a variable, or what the kernel hands over
    Computed(arith.subf, (Name("s"), Expanded(Name("m"), 1, 2)))        s - m[:, None]
    Converted(Name("p"), Factor(mma_64))              the same numbers, held by other threads
    Slot("k_tile", "k_tile_slot", (Transposed((1, 0)),))

Arithmetic of the kernel keeps its `Operation`: who runs it asks that for its value, who prints it
for its spelling. What the pipeline adds (which iteration a stage works on, how often a loop goes
round) has expressions of its own, so that nobody has to read text. Nothing here has an effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from stretto.kernel import Attribute, Operation
from stretto.kernel.types import Scalar, Tile, Type, element_of
from stretto.program.layouts import Layout

INDEX = Scalar("i32")
"""Of numbers that the pipeline counts with."""


@dataclass(frozen=True, slots=True)
class Name:
    """A variable of the agent, or something of the kernel's that it takes."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number; of a tile's type, the same in each place."""

    value: Attribute
    type: Type = INDEX


@dataclass(frozen=True, slots=True)
class Computed:
    """An operation of the kernel without effect, of what its operands are here.

    Operands meet as NumPy's do: an axis of one element is spread, a number is everywhere.
    """

    operation: Operation
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """A tile in another layout: the same numbers, exchanged between threads."""

    value: Expression
    layout: Layout


@dataclass(frozen=True, slots=True)
class Reshaped:
    """A tile's elements in another shape: each keeps its number."""

    value: Expression
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Permuted:
    """A tile's axes in another order."""

    value: Expression
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A tile with an axis of one element more."""

    value: Expression
    axis: int
    rank: int
    """Axes that it has then."""


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A number, or an address, in each place of a tile."""

    value: Expression
    type: Tile
    layout: Layout


@dataclass(frozen=True, slots=True)
class Zeros:
    """A tile of zeros."""

    type: Tile
    layout: Layout


@dataclass(frozen=True, slots=True)
class Spread:
    """What has axes of one element, spread over a whole tile: zeros that it is added to."""

    value: Expression
    type: Tile
    layout: Layout


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from `start` to `end` - 1."""

    start: int
    end: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class Joined:
    """Two tiles as one of pairs: the last axis, of two elements, tells them apart."""

    first: Expression
    second: Expression


@dataclass(frozen=True, slots=True)
class Halves:
    """The two tiles that a tile of pairs is made of: the value of two variables."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Combined:
    """Tiles reduced or scanned by a function of the program: the values of as many variables."""

    operation: Operation
    """Whose region says how two elements go together."""
    operands: tuple[Expression, ...]
    function: str
    """What the function is called."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What assembly makes of its operands: the values of as many variables as it has results."""

    operation: Operation
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each number is there."""

    value: Expression
    mask: Expression | None
    bins: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class Held:
    """The same numbers, which the compiler is kept from computing later than here."""

    value: Expression


@dataclass(frozen=True, slots=True)
class RowScaled:
    """A sum times a factor of each row, which warps leave out where the factors of all their rows
    are 1: a number times 1 is that number."""

    value: Expression
    factor: Expression
    """With an axis of one element for the columns."""
    registers: int
    """Of a thread, that hold the sum."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The iteration that a stage works on: `counter` + `ahead` - `behind`."""

    counter: str
    """The variable that counts; empty: nothing does, it is a number."""
    ahead: int | None = None
    """None: nothing, and nothing is said of it."""
    behind: int = 0

    @property
    def number(self) -> int | None:
        """Which it is, where that is known."""
        return None if self.counter else (self.ahead or 0) - self.behind


@dataclass(frozen=True, slots=True)
class Counter:
    """What a loop's own counter is in an iteration: `lower` + `iteration` * `step`."""

    lower: Expression
    step: Expression
    iteration: Expression


@dataclass(frozen=True, slots=True)
class Trips:
    """How often a loop goes round: never, where its bounds are the wrong way round."""

    lower: Expression
    upper: Expression
    step: Expression
    fewer: int = 0
    """Of its last steps, those that an agent leaves out."""


Sign = OneOf["+", "-", "*", "//", "%", "^", "<", ">="]
"""Of arithmetic."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic of the pipeline itself, of integers as a rule; `//` of what is not negative."""

    sign: Sign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Given:
    """What the host has: a parameter of the kernel, or a size or stride of one."""

    parameter: str
    part: OneOf["", "shape", "strides"] = ""
    axis: int = 0
    pointer: bool = False
    """Of a stride: whether its array was handed over as an address, not as a descriptor."""


Expression = (
    Name
    | Literal
    | Computed
    | Converted
    | Reshaped
    | Permuted
    | Expanded
    | Everywhere
    | Zeros
    | Spread
    | Range
    | Joined
    | Halves
    | Combined
    | Assembly
    | Histogram
    | Held
    | RowScaled
    | Iteration
    | Counter
    | Trips
    | Arithmetic
    | Given
)


# Memory of the chip ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transposed:
    """A tile in memory seen with its axes in another order."""

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InShape:
    """A tile in memory seen in another shape."""

    shape: tuple[int, ...]


SlotView = Transposed | InShape


@dataclass(frozen=True, slots=True)
class Slot:
    """A tile in shared or tensor memory, as it is seen."""

    memory: str
    """What was declared."""
    index: str | None = None
    """The variable that says which of a ring's; None: there is one."""
    views: tuple[SlotView, ...] = ()
    """The first is made of the tile itself, each further one of the one before."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier in shared memory."""

    name: str
    """What was declared."""
    index: str | None = None
    """The variable that says which of several; None: there is one."""


def number(value: int) -> Literal:
    """A number that the pipeline counts with."""
    return Literal(value)


def is_true(expression: Expression) -> bool:
    """Whether an expression is the literal `True`, whoever looks at it."""
    if not isinstance(expression, Literal):
        return False
    truth = isinstance(expression.value, bool) or element_of(expression.type) == Scalar("i1")
    return truth and bool(expression.value)


def is_number(expression: Expression, value: int) -> bool:
    """Whether an expression is this integer, whoever looks at it."""
    if not isinstance(expression, Literal) or isinstance(expression.value, bool):
        return False
    element = expression.type.element if isinstance(expression.type, Tile) else expression.type
    integer = isinstance(element, Scalar) and element.is_integer and element.element != "i1"
    return integer and expression.value == value
