"""A whole kernel's program on real values: the instructions that are printed, no others.

    CopyIn, CopyOut, products   are done as late as they may be: when somebody waits for them, or
                                when nobody else can go on
    shared, tensor memory       holds nonsense until it is filled, and again once a copy is issued
    clocks                      are kept beside: what nothing orders is a fault, however it went

`run_kernel` runs the kernel's tree, one operation after the other; both leave the same arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product as places
from typing import Any

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel.types import Buffer, Scalar, Tile, element_of
from stretto.program import KernelProgram
from stretto.program.clocks.agents import AgentRun, Choices, Number
from stretto.program.clocks.checking import drive
from stretto.program.clocks.orders import Orders
from stretto.program.descriptors import undescribed
from stretto.program.expressions import Expression, Given, Name, Slot, Transposed, Trips
from stretto.program.instructions import (
    Assign,
    Atomic,
    Commit,
    CommitGroup,
    CopyIn,
    CopyOut,
    For,
    If,
    Load,
    Product,
    Put,
    Read,
    Settle,
    Store,
    StoreWait,
    TensorProduct,
    ThreadCopy,
    WaitGroup,
    While,
)
from stretto.program.kernel_program import Barriers, SharedMemory, TensorMemory
from stretto.simulation.kernels.arrays import Array, dtype_of, fitted
from stretto.simulation.kernels.evaluator import Evaluator
from stretto.simulation.kernels.expressions import Values
from stretto.simulation.kernels.interpreter import Inputs, bound_to, launched_grid, left_in
from stretto.simulation.kernels.memory import Address, Heap, TensorView, box

NOTHING = Choices(0, 0, branch=True)
"""The host has decided all."""


@dataclass(frozen=True)
class ProgramRun:
    """What a program left behind, and how it went."""

    arrays: Mapping[str, Array]
    trips: tuple[int, ...]
    """Trip counts that loops which run by schedules had."""
    blocks: int


def run_program_of_kernel(
    program: KernelProgram, inputs: Inputs, grid: Sequence[int] = (1,), *, launchable: bool = False
) -> ProgramRun:
    """Run a program over a grid; FaultError where it may go wrong.

    Where it is to be `launchable`, StrettoError for sizes and strides that a launch refuses.
    """
    x, y, z = (*grid, 1, 1, 1)[:3]
    tiles, whole = (x, y, z), launched_grid(program.kernel, (x, y, z))
    heap = Heap()
    bound = bound_to(program.kernel, inputs, heap)
    trips: set[int] = set()
    if launchable:
        _Host(program, bound, Evaluator(whole, (0, 0, 0), heap, tiles), tiles).ask()
    every = list(places(*(range(n) for n in reversed(whole))))
    for block in every:
        at = (block[2], block[1], block[0])
        evaluator = Evaluator(whole, at, heap, tiles)
        _Block(program, evaluator, _Host(program, bound, evaluator, tiles), trips).run(at)
    return ProgramRun(
        left_in(program.kernel, inputs, bound, heap), tuple(sorted(trips)), len(every)
    )


class _Host:
    """What a launch hands to the kernel."""

    def __init__(
        self, program: KernelProgram, bound: Mapping[Any, Any], evaluator: Evaluator,
        tiles: tuple[int, int, int],
    ) -> None:  # fmt: skip
        given: dict[tuple[str, str, int], Any] = {}
        of: dict[str, list[Any]] = {}
        for parameter in program.kernel.parameters:
            of.setdefault(parameter.name, []).append(bound[parameter.value])
        for name, (first, *rest) in of.items():
            given[name, "", 0] = first
            rank = len(rest) // 2
            for n, number in enumerate(rest):
                part = ("shape", n) if n < rank else ("strides", n - rank)
                given[name, *part] = number
        values = Values(evaluator, {}, lambda one: given[one.parameter, one.part, one.axis])
        self.arguments: dict[str, Any] = {
            one.name: values.of(one.given) for one in program.arguments
        }
        if program.tiles is not None:
            counted = zip(program.tiles.axes, program.tiles.arguments, strict=True)
            self.arguments |= {name: np.int32(tiles[axis]) for axis, name in counted}
        self.views: dict[str, TensorView] = {}
        for one in program.descriptors:
            if one.base is None:
                self.views[one.name] = given[one.tensor, "", 0]
                continue
            base = values.of(one.base)
            sizes, strides = (
                tuple(int(values.of(number)) for number in numbers)
                for numbers in (one.sizes, one.strides)
            )
            offset = int(np.asarray(base.offsets))
            self.views[one.name] = TensorView(base.array, offset, sizes, strides)
        self._made = {one.name: one.tensor for one in program.descriptors if one.base is not None}

    def ask(self) -> None:
        """StrettoError where a descriptor cannot be made, in the words of a launch."""
        for name, tensor in self._made.items():
            view = self.views[name]
            width = max(1, view.array.element.bits // 8)
            address = view.array.begins + view.offset * width
            if why := undescribed(tensor, address, view.sizes, view.strides, width):
                raise StrettoError(why)


class _Block:
    """One block: its memory, and what goes on beside its agents."""

    def __init__(
        self, program: KernelProgram, evaluator: Evaluator, host: _Host, trips: set[int]
    ) -> None:
        self.program, self.evaluator, self.host, self.trips = program, evaluator, host, trips
        self.memory: dict[str, list[Array]] = {}
        self.elements: dict[str, Scalar] = {}
        for one in program.memory:
            if not isinstance(one, Barriers):
                element = Scalar(one.element if isinstance(one, SharedMemory) else "f32")
                self.elements[one.name] = element
                self.memory[one.name] = [
                    nonsense(one.shape, element) for _ in range(one.depth or 1)
                ]
        self.late: deque[Callable[[], None]] = deque()
        """What copies and products into tensor memory still have to do."""

    def land(self) -> bool:
        """The oldest of it happens."""
        if self.late:
            self.late.popleft()()
            return True
        return False

    def run(self, at: tuple[int, int, int]) -> None:
        """All agents."""
        program = self.program
        orders = Orders(program.barriers, f"block {', '.join(map(str, at))}")
        depths = {one.name: one.depth for one in program.memory}
        sums = frozenset(one.name for one in program.memory if isinstance(one, TensorMemory))
        names: dict[int, frozenset[str]] = {}
        agents = [
            ValueRun(agent, orders, NOTHING, depths, sums, names, block=self)
            for agent in program.agents
        ]
        for agent in agents:
            agent.begin()
        drive(agents, orders, self.land)


def nonsense(shape: Sequence[int], element: Scalar) -> Array:
    """What memory holds that nobody has filled."""
    return np.full(shape, 77 if element.is_integer else np.nan, dtype_of(element))


@dataclass
class ValueRun(AgentRun):
    """One agent, with all that it works out."""

    block: _Block | None = None
    settling: list[tuple[str, Callable[[], None]]] = field(
        default_factory=list["tuple[str, Callable[[], None]]"]
    )
    """Products in flight: their targets, and what is left to do."""
    storing: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Copies out, likewise."""
    asking: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Copies by threads since the last group."""
    coming: list[list[Callable[[], None]]] = field(default_factory=list["list[Callable[[], None]]"])
    """Groups of them, the oldest first."""

    def begin(self) -> None:
        """What the kernel hands to it."""
        assert self.block is not None
        self.of_block: _Block = self.block
        self.numbers |= self.of_block.host.arguments
        self.values = Values(self.of_block.evaluator, self.numbers, self._given)

    def _given(self, given: Given) -> Any:
        raise AssertionError(given)

    def run(self) -> Generator[None]:
        """To its end, with what is left of copies out."""
        yield from super().run()
        for rest in (*(rest for _, rest in self.settling), *self.storing):
            rest()

    # Numbers and control flow --------------------------------------------------------------------

    def number(self, value: Expression) -> Number:
        """A number."""
        made = self.values.of(value)
        if isinstance(value, Trips):
            self.of_block.trips.add(int(made))
        return int(made)

    def takes(self, branch: If) -> bool:
        """Whether it is the first body that runs."""
        return bool(self.number(branch.condition))

    def go_round(self, loop: While) -> Generator[None]:
        """As long as its condition holds."""
        turn = 0
        while bool(self.numbers[loop.condition]):
            yield from self.turn(loop.body, turn)
            turn += 1

    def go_through(self, loop: For, lower: Number, upper: Number, by: Number) -> Generator[None]:
        """A loop of the kernel that does not run by a schedule."""
        assert lower is not None
        assert upper is not None
        assert by is not None
        for turn, at in enumerate(range(lower, upper, by)):
            self.numbers[loop.variable] = np.int32(at)
            yield from self.turn(loop.body, turn)

    def assign(self, one: Assign) -> None:
        """Variables get values."""
        made = [self.values.of(value) for value in one.values]
        for value, expression in zip(made, one.values, strict=True):
            if isinstance(expression, Trips):
                self.of_block.trips.add(int(value))
        values = made[0] if len(made) < len(one.targets) else made
        self.numbers.update(zip(one.targets, values, strict=True))

    # Memory --------------------------------------------------------------------------------------

    def _seen(self, where: Slot, index: int) -> Array:
        """A slot's tile, as it is seen: what is put there is in the slot."""
        tile = self.of_block.memory[where.memory][index]
        for view in where.views:
            tile = (
                tile.transpose(view.order)
                if isinstance(view, Transposed)
                else tile.reshape(view.shape)
            )
        return tile

    def _index(self, where: Slot) -> int:
        return 0 if where.index is None else int(self.numbers[where.index])

    def read(self, one: Read) -> None:
        """Memory to registers."""
        super().read(one)
        made = self._seen(one.source, self._index(one.source)).copy()
        if one.added is not None and not self.number(one.added):
            made = np.zeros_like(made)
        self.numbers[one.target] = made

    def put(self, one: Put) -> None:
        """Registers to memory."""
        super().put(one)
        element = self.of_block.elements[one.target.memory]
        self._seen(one.target, self._index(one.target))[...] = fitted(
            self.values.of(one.value), element
        )

    def copy_in(self, one: CopyIn) -> None:
        """The slot is nonsense until the tile is there, and its bytes count."""
        index, element = self._index(one.target), self.of_block.elements[one.target.memory]
        slot = self.of_block.memory[one.target.memory][index]
        view = self.of_block.host.views[one.descriptor]
        at = [int(self.values.of(c)) for c in one.coordinates]
        slot[...] = nonsense(slot.shape, element)
        arrival = self.issue_copy(one)

        def land() -> None:
            slot[...] = view.load(box(at, slot.shape)).reshape(slot.shape)
            arrival()

        self.of_block.late.append(land)

    def copy_out(self, one: CopyOut) -> None:
        """The tile is read when it is waited for."""
        super().copy_out(one)
        tile = self._seen(one.source, self._index(one.source))
        view = self.of_block.host.views[one.descriptor]
        at = [int(self.values.of(c)) for c in one.coordinates]
        self.storing.append(lambda: view.store(box(at, tile.shape), tile.copy()))

    def store_wait(self, one: StoreWait) -> None:
        """All but the last have read."""
        super().store_wait(one)
        while len(self.storing) > one.left:
            self.storing.pop(0)()

    def thread_copy(self, one: ThreadCopy) -> None:
        """The slot is nonsense until the group of the copy is waited for."""
        super().thread_copy(one)
        operation = one.origin.operation
        assert operation is not None
        slot = self._seen(one.target, self._index(one.target))
        slot[...] = nonsense(slot.shape, self.of_block.elements[one.target.memory])
        address, *rest = (self.values.of(value) for value in one.operands)
        operands = [address, *_spread(address, rest)]

        def land() -> None:
            slot[...] = self.of_block.evaluator.load(operation, operands)[0]

        self.asking.append(land)

    def commit_group(self, one: CommitGroup) -> None:
        """A group more."""
        super().commit_group(one)
        self.coming.append(self.asking)
        self.asking = []

    def wait_group(self, one: WaitGroup) -> None:
        """All but the youngest are there."""
        super().wait_group(one)
        while len(self.coming) > one.left:
            for land in self.coming.pop(0):
                land()

    def load(self, one: Load) -> None:
        """Global memory to registers."""
        operation = one.origin.operation
        assert operation is not None
        address, *rest = (self.values.of(value) for value in one.operands)
        self.numbers[one.target] = self.of_block.evaluator.load(
            operation, [address, *_spread(address, rest)]
        )[0]

    def store(self, one: Store) -> None:
        """Registers to global memory."""
        operation = one.origin.operation
        assert operation is not None
        address, *rest = (self.values.of(value) for value in one.operands)
        self.of_block.evaluator.store(operation, [address, *_spread(address, rest)])

    def combine(self, one: Atomic) -> None:
        """Registers and global memory."""
        address, *rest = (self.values.of(value) for value in one.operands)
        made = self.of_block.evaluator.atomic(one.operation, [address, *_spread(address, rest)])
        if one.target is not None:
            self.numbers[one.target] = made[0]

    # Products ------------------------------------------------------------------------------------

    def product(self, one: Product) -> None:
        """Its operands are read when it is waited for, or at once."""
        super().product(one)
        right = self._seen(one.right, self._index(one.right))
        left = (
            self._seen(one.left, self._index(one.left))
            if isinstance(one.left, Slot)
            else self.values.of(one.left)
        )
        total = None
        if one.adds and not self._in_flight(one.total):
            total = self.values.of(one.total)

        def multiply() -> None:
            # A sum that was in flight is there now: products are done in their order.
            added = self.values.of(one.total) if one.adds and total is None else total
            self.numbers[one.target] = _multiplied(one, left, right, added)

        self.settling.append((one.target, multiply))
        if not one.asynchronous:
            self._finish(0)

    def _in_flight(self, total: Expression) -> bool:
        """Whether a sum is the target of a product that is still to be done."""
        return isinstance(total, Name) and total.name in {target for target, _ in self.settling}

    def settle(self, one: Settle) -> None:
        """All but the youngest are done."""
        super().settle(one)
        self._finish(one.left)

    def _finish(self, left: int) -> None:
        while len(self.settling) > left:
            _, multiply = self.settling.pop(0)
            multiply()

    def tensor_product(self, one: TensorProduct) -> None:
        """Behind those before it, in its own time."""
        super().tensor_product(one)
        left, right, total = (
            self._seen(where, self._index(where)) for where in (one.left, one.right, one.total)
        )
        adds = one.adds if isinstance(one.adds, bool) else self.number(one.adds) != 0

        def land() -> None:
            made = _multiplied(one, left, right, total if adds else None)
            total[...] = made

        self.of_block.late.append(land)

    def commit(self, one: Commit) -> None:
        """An arrival behind them."""
        self.of_block.late.append(self.issue_commit(one))


def _multiplied(one: Product | TensorProduct, left: Any, right: Any, total: Any | None) -> Array:
    operation = one.origin.operation
    assert operation is not None
    type = operation.results[0].type
    assert isinstance(type, Buffer | Tile)
    element = element_of(type) if isinstance(type, Tile) else type.element
    assert isinstance(element, Scalar)
    wide = dtype_of(element)
    made = np.matmul(np.asarray(left, dtype=wide), np.asarray(right, dtype=wide))
    return fitted(made if total is None else total + made, element)


def _spread(address: Address, rest: Sequence[Any]) -> list[Any]:
    """Data and masks for each of the addresses."""
    shape = np.shape(address.offsets)
    return [one if isinstance(one, Address) else np.broadcast_to(one, shape) for one in rest]
