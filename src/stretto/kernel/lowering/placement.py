"""Where the values of a kernel are while it is lowered: registers, shared memory, in flight."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.kernel.accesses import Accesses
from stretto.kernel.addresses import Addresses
from stretto.kernel.axes import analyse
from stretto.kernel.building import LoweredBuilder
from stretto.kernel.errors import KernelError
from stretto.kernel.lowering.homes import Homes
from stretto.kernel.lowering.loads import Loads
from stretto.kernel.lowering.product_choice import Chosen
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.lowering.written import ALLOCATE, COPY, OURS, PENDING, TOKEN
from stretto.kernel.tree import Attribute, Kernel, Location, Operation, Value
from stretto.kernel.types import Buffer, Scalar, Tile, Token, Type
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS, SPACES, STAGING


class Placement:
    """The values of a kernel, each brought to where somebody takes it from."""

    def __init__(self, kernel: Kernel, machine: Machine, *, copies: bool) -> None:
        if not machine.products and any(op.name == "tile.dot" for op in kernel.walk()):
            hint = "add a section [products.NAME] to its file"
            told = f"machine {machine.name} does not say which product it has"
            raise KernelError(kernel.location, told, hint)
        self._kernel = kernel
        self._machine = machine
        self._axes = analyse(kernel)
        self._accesses = Accesses(kernel, self._axes)
        self._addresses = Addresses(kernel, self._axes)
        self._uses = Uses(kernel)
        self._copies = Loads(
            kernel, self._uses, self._axes, copies and COPY in machine.opcodes, bool(machine.agents)
        )
        self._homes = Homes()
        self._out = LoweredBuilder(kernel.location)
        self._loops: list[Operation] = []
        self._born: dict[Value, int] = {}
        """How many loops a value is made inside of: only there may its buffer be written over."""
        self._places: dict[Value, Value] = {}
        """Of a product's result, the buffer that its sum is carried in."""
        self._read_by: dict[Value, Attribute | None] = {}
        """Which agent has read a value out of memory: its registers are no other's."""
        self._held: set[Value] = set()
        """Left factors that are in registers before the loop of their products begins."""
        self._chosen: dict[Operation, Chosen] = {}
        """By `tile.dot`, the product that it becomes."""
        self._alias_sets: dict[Operation, int] = {}
        """By what may touch the same element in different steps: the number of those."""
        self._groups = 0
        """How many products wait in the step that issued them."""
        self._notes: list[tuple[Location, str]] = []

    # Where values are -----------------------------------------------------------------------

    def _registers(self, value: Value) -> Value:
        """A value in registers, read out of memory if it is there."""
        home = self._homes.of(value)
        agent = self._out.said.get("agent")
        if REGISTERS in home and self._read_by.get(value, agent) == agent:
            return home[REGISTERS]
        if PENDING in home:
            return self._await(value, home[PENDING])
        for space, buffer in home.items():
            kind = SPACES[space].read
            if kind:
                read = self._ours(kind, (buffer,), _in_registers(value.type), _name(value, "read"))
                self._homes.in_registers(value, read)
                self._read_by[value] = agent
                return read
        raise AssertionError(f"{value} is nowhere")

    def _in(self, value: Value, spaces: Sequence[str]) -> Value:
        """A value in one of some spaces; from registers it goes to the first."""
        home = self._homes.of(value)
        for space in spaces:
            if space in home:
                return home[space]
        if REGISTERS in spaces:
            return self._registers(value)
        space = spaces[0]
        filled = self._fill(self._registers(value), space, value.name)
        self._homes.put(value, space, filled)
        return filled

    def _fill(self, registers: Value, space: str, name: str, buffer: Value | None = None) -> Value:
        """Registers put into a buffer: a fresh one, unless one is given."""
        if buffer is None:
            buffer = self._alloc(registers.type, space, name)
        kind = SPACES[space].fill
        filled = self._ours(
            kind, (registers, buffer), buffer.type, f"{name}_put" if name else "", groups=(1, 1, 0)
        )
        self._homes.remember(filled, buffer)
        return filled

    def _alloc(self, type: Type, space: str, name: str) -> Value:
        assert isinstance(type, Tile)
        assert isinstance(type.element, Scalar)
        ending = "tile" if space == STAGING else "acc"
        made = Buffer(type.shape, type.element, space)
        return self._ours(ALLOCATE, (), made, f"{name}_{ending}" if name else "")

    def _overwrite(self, buffer: Value, operation: Operation) -> None:
        """What is in a buffer and wanted later is read out before something else comes in."""
        for value, space in self._homes.inside(buffer):
            if self._uses.after(value, operation):
                self._registers(value)
            self._homes.drop(value, space)

    def _may_go(self, value: Value, operation: Operation) -> bool:
        """Whether nobody wants a value after an operation, in this step of the loop or a later."""
        here = self._born.get(value, 0) == len(self._loops)
        return here and not self._uses.after(value, operation)

    def _await(
        self, value: Value, made: Value, freed: Sequence[Value] = (), **said: Attribute
    ) -> Value:
        """What a product made, in registers: once it is done."""
        groups = (1, 0, len(freed))
        waited = self._ours(
            self._waits, (made, *freed), made.type, f"{value.name}_ready", groups=groups, **said
        )
        self._homes.in_registers(value, waited)
        return waited

    @property
    def _waits(self) -> str:
        """The opcode that waits for a product, where one has to."""
        return next((one.wait for one in self._machine.products if one.wait), "")

    def _constant(self, value: Value) -> int | None:
        axis = self._axes.get(value)
        return None if axis is None else axis.constant

    def _homes_as(self, value: Value, other: Value) -> None:
        for space, lowered in self._homes.of(other).items():
            self._homes.put(value, space, lowered)

    # Writing --------------------------------------------------------------------------------

    def _ours(
        self, kind: str, operands: Sequence[Value], type: Type, name: str = "", **said: Attribute
    ) -> Value:
        return self._out.op(OURS + kind, operands, type, name, **said)

    def _note(self, operation: Operation, message: str) -> None:
        self._notes.append((operation.location, message))

    def _refuse(self, operation: Operation, message: str, hint: str = "") -> KernelError:
        return KernelError(operation.location, message, hint)

    def _token(self, operation: Operation) -> None:
        """A token that the front end hands on: the order of the text keeps it."""
        for result in operation.results:
            if isinstance(result.type, Token):
                self._homes.in_registers(result, self._ours(TOKEN, (), Token()))


def _in_registers(type: Type) -> Type:
    return Tile(type.shape, type.element) if isinstance(type, Buffer) else type


def _name(value: Value, ending: str) -> str:
    return f"{value.name}_{ending}" if value.name else ""
