"""Steps of a loop that a mask hides from all rows of one consumer: it need not do them.

    rows 0 to 63 of 256, keys of the step from `start` on        where(rows >= keys, scores, -inf)
    steps                        0        1        2        3    behind the diagonal: all -inf
    first consumer, rows 0..63   does     -        -        -    hidden = 3
    last one, rows 192..255      does     does     does     does hidden = 0

Two things are worked out. Of a mask: from which step on, counted from the last, no place of it is
seen. Of the loop's body: that with such a mask everything that it carries stays as it was, whatever
the tiles hold: the maximum of `m` and -inf is `m`, exp2(m - m) is 1, exp2(-inf - m) is 0, and what
is added is 0. This takes numbers for finite, as any softmax does, and factors that the host hands
over for positive: that is written down as an assumption, of which a launch is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel.addresses import Addresses, Tiled
from stretto.kernel.axes import analyse
from stretto.kernel.building import Builder
from stretto.kernel.polynomials import Polynomial, number, polynomial
from stretto.kernel.tree import HIDDEN, Kernel, Lowered, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile, element_of

_QUIET = ("arith.", "math.", "libdevice.")
_QUIET_TILES = frozenset(
    f"tile.{name}"
    for name in ("dot", "transpose", "expand_dims", "broadcast", "splat", "range", "reduce",
                 "reshape", "hint")
)  # fmt: skip
"""What a consumer may do in a loop of which it leaves steps out."""
_SAME = frozenset(
    ("tile.expand_dims", "tile.broadcast", "tile.splat", "tile.reshape", "tile.transpose",
     "tile.hint", "arith.truncf", "arith.extf")
)  # fmt: skip
"""What has the numbers of its operand, in another shape or width."""
_MAXIMA = ("arith.maxnumf", "arith.maximumf")
_EXPONENTIALS = ("math.exp2", "math.exp")
_BIT = Scalar("i1")


def with_hidden_steps(kernel: Kernel, agents: Sequence[str]) -> Kernel | Lowered:
    """The kernel with the number of hidden steps at each loop that has such."""
    loops = [op for op in kernel.walk() if op.name == "scf.for" and _multiplies(op)]
    if len(agents) < 2 or not loops:
        return kernel
    addresses = Addresses(kernel, analyse(kernel))
    said: dict[Operation, tuple[int, ...]] = {}
    factors: dict[Value, None] = {}
    for loop in loops:
        found = [_hidden(loop, agent, addresses) for agent in agents]
        if any(steps for steps, _ in found):
            said[loop] = tuple(steps for steps, _ in found)
            factors |= {value: None for _, positive in found for value in positive}
    if not said:
        return kernel
    body = _assumed(kernel, factors) + _marked(kernel.body, said).operations
    notes = tuple(
        (loop.location, f"consumers leave out its last steps, which a mask hides: {steps}")
        for loop, steps in said.items()
    )
    return Lowered(replace(kernel, body=replace(kernel.body, operations=body)), notes)


def _multiplies(loop: Operation) -> bool:
    return any(op.name == "tile.dot" for op in loop.regions[0].operations)


def _marked(region: Region, said: Mapping[Operation, tuple[int, ...]]) -> Region:
    operations = tuple(
        replace(
            op,
            regions=tuple(_marked(inner, said) for inner in op.regions),
            attributes={**op.attributes, HIDDEN: said[op]} if op in said else op.attributes,
        )
        if op.regions
        else op
        for op in region.operations
    )
    return replace(region, operations=operations)


def _assumed(kernel: Kernel, factors: Mapping[Value, None]) -> tuple[Operation, ...]:
    """That factors are positive."""
    out = Builder(kernel.location)
    for value in factors:
        assert isinstance(value.type, Scalar)
        zero = out.constant(0.0, value.type)
        holds = out.op("arith.cmpf", (value, zero), _BIT, predicate="ogt")
        out.add("tile.assume", (holds,))
    return out.finish().operations


def _hidden(loop: Operation, agent: str, addresses: Addresses) -> tuple[int, Mapping[Value, None]]:
    """How many of the last steps an agent leaves out, and which factors are positive for that."""
    body = loop.regions[0]
    own = [op for op in body.operations if op.attributes.get("agent") == agent]
    if not all(op.name.startswith(_QUIET) or op.name in _QUIET_TILES for op in own):
        return 0, {}
    makers = {value: op for op in body.operations for value in op.results}
    carried: list[tuple[Value, Value]] = []
    for argument, end in zip(body.arguments[1:], body.terminator.operands, strict=True):
        made = makers.get(end)
        if made is None:
            if end is not argument:
                return 0, {}
        elif made.attributes.get("agent") is None:
            return 0, {}  # numbers that all go by would have to go on
        elif made in own:
            carried.append((argument, end))
    masks = {
        op.result: steps
        for op in own
        if op.name == "arith.cmpi" and (steps := _steps_hidden(op, loop, addresses))
    }
    for steps in sorted(set(masks.values()), reverse=True):
        unseen = {value for value, most in masks.items() if most >= steps}
        numbers = _Numbers(makers, frozenset(body.arguments), addresses.parameters, unseen)
        if carried and all(numbers.of(end) == argument for argument, end in carried):
            return steps, numbers.positive
    return 0, {}


# Masks -------------------------------------------------------------------------------------------


def _steps_hidden(compared: Operation, loop: Operation, addresses: Addresses) -> int:
    """In how many of a loop's last steps a comparison holds at no place."""
    left, right = (addresses.tile(value) for value in compared.operands)
    if left is None or right is None or left.wrapped or right.wrapped:
        return 0
    predicate = compared.text("predicate")
    match predicate:
        case "sge" | "sgt":
            high, low = _extreme(compared, left, most=True), _extreme(compared, right, most=False)
        case "sle" | "slt":
            high, low = _extreme(compared, right, most=True), _extreme(compared, left, most=False)
        case _:
            return 0
    step = addresses.number(loop.operands[2]).constant
    if high is None or low is None or step is None or step <= 0:
        return 0
    # It holds where high - low >= 0 (or > 0). So many steps before the end, the counter is at least
    # `upper` - step x k; `low` goes up with it.
    slope, rest = _along(high - low, addresses.number(loop.regions[0].arguments[0]))
    last = rest + number(slope) * addresses.number(loop.operands[1])
    if slope >= 0 or last.constant is None:
        return 0
    below = -last.constant - predicate.endswith("e")
    return max(0, below // (-slope * step))


def _extreme(compared: Operation, tile: Tiled, *, most: bool) -> Polynomial | None:
    """The largest or the smallest number of a tile."""
    type = compared.operands[0].type
    shape = type.shape if isinstance(type, Tile) else ()
    found = tile.base
    for step, size in zip(tile.steps, shape, strict=True):
        by = step.constant
        if by is None:
            return None
        found += number((max if most else min)(0, by * (size - 1)))
    return found


def _along(of: Polynomial, counter: Polynomial) -> tuple[int, Polynomial]:
    """How it changes with a counter, and the rest; a rest with the counter in it is no number."""
    ((name, _),) = counter.terms if len(counter.terms) == 1 else (((), 0),)
    slope = dict(of.terms).get(name, 0) if name else 0
    return slope, of - polynomial({name: slope})


# Numbers of a step that is hidden ----------------------------------------------------------------

_Known = float | Value | None
"""A number that it is everywhere; the carried value that it is still; or neither is known."""


@dataclass
class _Numbers:
    """What values are in a step that a mask hides."""

    makers: Mapping[Value, Operation]
    arguments: frozenset[Value]
    parameters: set[Value]
    unseen: set[Value]
    """Masks that hold nowhere."""
    positive: dict[Value, None] = field(default_factory=dict[Value, None])
    """Factors that were taken for positive."""
    _known: dict[Value, _Known] = field(default_factory=dict[Value, _Known])

    def of(self, value: Value) -> _Known:
        """What a value is, in all of its places."""
        if value not in self._known:
            self._known[value] = None
            self._known[value] = self._made(value)
        return self._known[value]

    def _made(self, value: Value) -> _Known:
        if value in self.unseen:
            return 0.0
        if value in self.arguments:
            return value
        made = self.makers.get(value)
        if made is None:
            return None
        if made.name in _SAME:
            return self.of(made.operands[0])
        if made.name == "arith.constant":
            stated = made.attributes["value"]
            return float(stated) if isinstance(stated, int | float) else None
        known = [self.of(operand) for operand in made.operands]
        match made.name:
            case "arith.select":
                return known[1] if known[0] == 1.0 else known[2] if known[0] == 0.0 else None
            case "arith.andi":
                return 0.0 if 0.0 in known and element_of(value.type) == _BIT else None
            case "tile.reduce":
                return self._reduced(made, known)
            case "tile.dot":
                return known[2] if 0.0 in known[:2] else None
            case _:
                return self._arithmetic(made, known)

    def _arithmetic(self, made: Operation, known: Sequence[_Known]) -> _Known:
        match made.name, known:
            case _, (first, second) if made.name in _MAXIMA:
                return second if first == -math.inf else first if second == -math.inf else None
            case _, (power,) if made.name in _EXPONENTIALS:
                return {0.0: 1.0, -math.inf: 0.0}.get(power) if isinstance(power, float) else None
            case "arith.addf", (first, second):
                return self._sum(first, second)
            case "arith.subf", (first, second):
                if first is not None and first == second and first != -math.inf:
                    return 0.0
                return first if first == -math.inf or second == 0.0 else None
            case "arith.mulf", (first, second):
                return self._product(made, first, second)
            case "math.fma", (first, second, third):
                return self._sum(self._product(made, first, second), third)
            case _:
                return None

    def _sum(self, first: _Known, second: _Known) -> _Known:
        if -math.inf in (first, second):
            return -math.inf
        return second if first == 0.0 else first if second == 0.0 else None

    def _product(self, made: Operation, first: _Known, second: _Known) -> _Known:
        if 0.0 in (first, second):
            return 0.0
        if first == 1.0 or second == 1.0:
            return second if first == 1.0 else first
        for one, other in ((first, 1), (second, 0)):
            if one == -math.inf:
                factor = self._factor(made.operands[other])
                return None if factor is None else -math.inf
        return None

    def _factor(self, value: Value) -> Value | float | None:
        """A factor that is positive, if the host says so or the text."""
        stated = self.of(value)
        if isinstance(stated, float):
            return stated if stated > 0 else None
        for root in self._roots(value):
            if root in self.parameters:
                self.positive[root] = None
                return root
        return None

    def _roots(self, value: Value) -> Iterator[Value]:
        yield value
        made = self.makers.get(value)
        while made is not None and made.name in _SAME:
            (value,) = made.operands
            yield value
            made = self.makers.get(value)

    def _reduced(self, made: Operation, known: Sequence[_Known]) -> _Known:
        combined = made.regions[0].operations[0].name
        if combined in _MAXIMA:
            return known[0] if isinstance(known[0], float) else None
        return 0.0 if combined == "arith.addf" and known[0] == 0.0 else None
