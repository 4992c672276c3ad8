"""The walk over a kernel that lowers it: one method a kind of operation.

A value that somebody computes with is brought into registers, one that is multiplied into the
memory that the product takes it from, and a sum that is carried round a loop stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel.accesses import Accesses, told
from stretto.kernel.axes import analyse
from stretto.kernel.building import Builder
from stretto.kernel.errors import KernelError
from stretto.kernel.lowering.combiners import combined_by
from stretto.kernel.lowering.conflicts import conflict
from stretto.kernel.lowering.held import held_factors
from stretto.kernel.lowering.homes import Homes
from stretto.kernel.lowering.loads import Copying, copying
from stretto.kernel.lowering.products import Chosen, choose
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.lowering.views import ANY
from stretto.kernel.lowering.work_tiles import goes_over_work_tiles, has_loop_inside
from stretto.kernel.lowering.written import (
    ALLOCATE,
    ATOMICS,
    BY_TILES,
    COMBINED,
    COPY,
    DESCRIPTOR,
    GATHER,
    LOAD,
    NARROW,
    OURS,
    PART,
    PENDING,
    REDUCE,
    RENAMED,
    SCAN,
    SCATTER,
    SPREAD,
    STORE,
    TMA_LOAD,
    TMA_STORE,
    TOKEN,
    TRANSPOSE,
    VIEW,
    WORK_TILE,
)
from stretto.kernel.tree import (
    Attribute,
    Kernel,
    Location,
    Lowered,
    Operation,
    Region,
    Value,
)
from stretto.kernel.types import Buffer, Scalar, Tile, Token, Type, View, element_of, like
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS, SPACES, STAGING

NARROW_BITS = 8
"""Of elements that no wait for a product keeps in registers."""


def in_nv_tileas(kernel: Kernel, machine: Machine) -> Lowered:
    """A kernel in nv_tileas; KernelError, at the user's place, where something has no lowering."""
    return _Lowering(kernel, machine).lower()


class _Lowering:
    def __init__(self, kernel: Kernel, machine: Machine) -> None:
        if not machine.products and any(op.name == "tile.dot" for op in kernel.walk()):
            hint = "add a section [products.NAME] to its file"
            told = f"machine {machine.name} does not say which product it has"
            raise KernelError(kernel.location, told, hint)
        self._kernel = kernel
        self._machine = machine
        self._axes = analyse(kernel)
        self._accesses = Accesses(kernel, self._axes)
        self._uses = Uses(kernel)
        self._homes = Homes()
        self._out = Builder(kernel.location)
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
        self._groups = 0
        """How many products wait in the step that issued them."""
        self._notes: list[tuple[Location, str]] = []

    def lower(self) -> Lowered:
        parameters = tuple(
            replace(p, value=Value(p.value.type, p.value.name)) for p in self._kernel.parameters
        )
        for old, new in zip(self._kernel.parameters, parameters, strict=True):
            self._homes.in_registers(old.value, new.value)
        for operation in self._kernel.body.operations:
            self._operation(operation)
        body = _without_idle_constants(self._out.finish())
        kernel = replace(self._kernel, parameters=parameters, body=body)
        return Lowered(kernel, tuple(self._notes))

    # Where values are ---------------------------------------------------------------------

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

    # Writing ------------------------------------------------------------------------------

    def _ours(
        self, kind: str, operands: Sequence[Value], type: Type, name: str = "", **said: Attribute
    ) -> Value:
        return self._out.op(OURS + kind, operands, type, name, **said)

    def _note(self, operation: Operation, message: str) -> None:
        self._notes.append((operation.location, message))

    def _refuse(self, operation: Operation, message: str, hint: str = "") -> KernelError:
        return KernelError(operation.location, message, hint)

    # Operations ---------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> None:  # noqa: PLR0912 - one case a kind
        self._out.location = operation.location
        agent = operation.attributes.get("agent")
        self._out.said = {} if agent is None else {"agent": agent}
        for result in operation.results:
            self._born[result] = len(self._loops)
        match operation.name:
            case "scf.for":
                self._for(operation)
            case "scf.if":
                self._if(operation)
            case "scf.while":
                self._while(operation)
            case "tile.return":
                self._out.add("tile.return")
            case "tile.hint":
                self._homes_as(operation.result, operation.operands[0])
            case "tile.transpose" | "tile.reshape":
                self._view(operation)
            case "tile.view":
                self._descriptor(operation)
            case "tile.view_load":
                self._view_load(operation)
            case "tile.view_store" | "tile.view_reduce":
                self._view_store(operation)
            case "tile.view_gather":
                self._view_gather(operation)
            case "tile.view_scatter":
                self._view_scatter(operation)
            case "tile.load":
                self._load(operation)
            case "tile.store":
                self._store(operation)
            case _ if operation.name in ATOMICS:
                self._atomic(operation)
            case "tile.dot":
                self._dot(operation)
            case "tile.cat" if len({value.type for value in operation.operands}) == 1:
                self._cat(operation)
            case "tile.reduce" | "tile.scan":
                self._reduce(operation)
            case _:
                self._plain(operation)
        self._out.said = {}

    def _homes_as(self, value: Value, other: Value) -> None:
        for space, lowered in self._homes.of(other).items():
            self._homes.put(value, space, lowered)

    def _plain(self, operation: Operation) -> None:
        """Registers in, registers out."""
        name = RENAMED.get(operation.name)
        if operation.name in BY_TILES and isinstance(operation.result.type, Tile):
            name = operation.name
        said = operation.attributes
        if self._is_summed(operation):
            said = {**said, "facts": (("accumulates", True),)}
        made = self._out.add(
            operation.name if name is None else OURS + name,
            [self._registers(value) for value in operation.operands],
            [result.type for result in operation.results],
            said,
            names=[result.name for result in operation.results],
        )
        for result, lowered in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(result, lowered)

    def _cat(self, operation: Operation) -> None:
        """Two tiles of one shape, one after the other: pairs, of which the first come first."""
        first, result = operation.operands[0].type, operation.result
        assert isinstance(first, Tile)
        axis, rank = operation.integer("axis"), len(first.shape)
        both = [self._registers(value) for value in operation.operands]
        pairs = self._ours(RENAMED["tile.join"], both, replace(first, shape=(*first.shape, 2)))
        order = (*range(axis), rank, *range(axis, rank))
        turned = (*first.shape[:axis], 2, *first.shape[axis:])
        rows = self._ours(TRANSPOSE, (pairs,), replace(first, shape=turned), permutation=order)
        made = self._ours(VIEW, (rows,), result.type, result.name)
        self._homes.in_registers(result, made)

    def _is_summed(self, operation: Operation) -> bool:
        """Whether threads write what a product that is waited for adds to."""
        return any(
            user.name == "tile.dot"
            and user.operands[2] is result
            and self._product_of(user).product.wait
            for result in operation.results
            for user in self._uses.of(result)
        )

    def _view(self, operation: Operation) -> None:
        """Another name of a tile, wherever it is; tensor memory has none but its own."""
        (source,), result = operation.operands, operation.result
        kind = TRANSPOSE if operation.name == "tile.transpose" else VIEW
        order = operation.integers("order")
        said: dict[str, Attribute] = {"permutation": order} if kind == TRANSPOSE and order else {}
        home = self._homes.of(source)
        shared = home.get(STAGING)
        if shared is not None and isinstance(result.type, Tile):
            assert isinstance(shared.type, Buffer)
            type = Buffer(result.type.shape, shared.type.element, STAGING)
            seen = self._ours(kind, (shared,), type, result.name, **said)
            self._homes.remember(seen, shared)
            self._homes.put(result, STAGING, seen)
            if REGISTERS not in home:
                return
        registers = self._registers(source)
        if not isinstance(result.type, Tile):
            kind = PART
        elif not isinstance(registers.type, Tile):
            kind = SPREAD
        seen = self._ours(kind, (registers,), result.type, result.name, **said)
        self._homes.in_registers(result, seen)

    # Memory -------------------------------------------------------------------------------

    def _descriptor(self, operation: Operation) -> None:
        """A view of a tensor; sizes and strides that are constants stand in its type, unless it is
        handed on: others may come the same way."""
        type = operation.result.type
        assert isinstance(type, View)
        base, *numbers = operation.operands
        rank = len(type.tile)
        handed_on = any(op.name.startswith("scf.") for op in self._uses.of(operation.result))
        if len(numbers) == 2 * rank and not handed_on:
            known = [self._constant(value) for value in numbers]
            known = [None if number == ANY else number for number in known]
            type = replace(type, shape=tuple(known[:rank]), strides=tuple(known[rank:]))
        made = self._ours(
            DESCRIPTOR,
            [self._registers(value) for value in (base, *numbers)],
            type,
            operation.result.name,
            groups=(1, len(numbers) - len(numbers) // 2, len(numbers) // 2),
            padding=operation.attributes.get("padding", type.padding),
        )
        self._homes.in_registers(operation.result, made)

    def _constant(self, value: Value) -> int | None:
        axis = self._axes.get(value)
        return None if axis is None else axis.constant

    def _coordinates(self, values: Sequence[Value]) -> list[Value]:
        """As TMA wants them: 32 bits each."""
        found: list[Value] = []
        for value in values:
            number = self._registers(value)
            wanted = like(number.type, Scalar("i32"))
            if number.type != wanted:
                number = self._out.op(NARROW, (number,), wanted, number.name)
            found.append(number)
        return found

    def _through(self, view: Value, coordinates: Sequence[Value]) -> Attribute:
        """What is known of a tile that a descriptor is gone by for."""
        assert isinstance(view.type, View)
        return told(self._accesses.through_view(view, coordinates, view.type.tile, descriptor=True))

    def _view_load(self, operation: Operation) -> None:
        view, *coordinates = operation.operands
        type, result = view.type, operation.results[0]
        if not isinstance(type, View) or not isinstance(result.type, Tile):
            raise self._refuse(operation, f"a load of {result.type} through {type}")
        buffer = self._alloc(Tile(type.tile, type.element), STAGING, result.name)
        facts = self._through(view, coordinates)
        loaded = self._ours(
            TMA_LOAD,
            (self._registers(view), *self._coordinates(coordinates), buffer),
            buffer.type,
            result.name,
            groups=(1, len(coordinates), 1, 0),
            facts=facts,
        )
        self._homes.remember(loaded, buffer)
        if type.tile != result.type.shape:
            wanted = Buffer(result.type.shape, type.element, STAGING)
            narrowed = self._ours(VIEW, (loaded,), wanted, result.name)
            self._homes.remember(narrowed, loaded)
            loaded = narrowed
        self._homes.put(result, STAGING, loaded)
        self._token(operation)

    def _view_store(self, operation: Operation) -> None:
        view, tile, *coordinates = operation.operands
        type = view.type
        if not isinstance(type, View) or not isinstance(tile.type, Tile):
            raise self._refuse(operation, f"a store of {tile.type} through {type}")
        staged = self._in(tile, (STAGING,))
        if type.tile != tile.type.shape:
            staged = self._ours(VIEW, (staged,), Buffer(type.tile, type.element, STAGING))
        said: dict[str, Attribute] = {
            "groups": (1, 1, len(coordinates), 0),
            "facts": self._through(view, coordinates),
        }
        if "kind" in operation.attributes:  # combined with what is there
            said["kind"] = operation.attributes["kind"]
        operands = (staged, self._registers(view), *self._coordinates(coordinates))
        self._out.add(OURS + TMA_STORE, operands, (Token(),), said)
        self._token(operation)

    def _view_gather(self, operation: Operation) -> None:
        """Rows that are picked by index, into shared memory."""
        view, rows, column = operation.operands
        result = operation.results[0]
        buffer = self._alloc(result.type, STAGING, result.name)
        loaded = self._ours(
            GATHER,
            (self._registers(view), *self._coordinates((rows, column)), buffer),
            buffer.type,
            result.name,
            groups=(1, 1, 1, 1, 0),
            facts=self._through(view, (column,)),
        )
        self._homes.remember(loaded, buffer)
        self._homes.put(result, STAGING, loaded)
        self._token(operation)

    def _view_scatter(self, operation: Operation) -> None:
        """Rows of shared memory, each to where its index says."""
        view, tile, rows, column = operation.operands
        staged = self._in(tile, (STAGING,))
        self._ours(
            SCATTER,
            (staged, self._registers(view), *self._coordinates((rows, column))),
            Token(),
            groups=(1, 1, 1, 1, 0),
            facts=self._through(view, (column,)),
        )
        self._token(operation)

    def _token(self, operation: Operation) -> None:
        """A token that the front end hands on: the order of the text keeps it."""
        for result in operation.results:
            if isinstance(result.type, Token):
                self._homes.in_registers(result, self._ours(TOKEN, (), Token()))

    def _load(self, operation: Operation) -> None:
        """Through pointers: copied into shared memory while others compute, or by the threads."""
        result = operation.results[0]
        groups = [1, int(len(operation.operands) > 1), int(len(operation.operands) > 2)]
        how = self._copied(operation)
        facts = told(self._accesses.through_pointers(operation.operands[0]))
        if how.reason:
            self._note(operation, f"loaded by threads, into registers: {how.reason}")
        operands = [self._registers(value) for value in operation.operands]
        if not how.copied:
            loaded = self._ours(
                LOAD,
                operands,
                result.type,
                result.name,
                groups=(*groups,),
                facts=facts,
            )
            self._homes.in_registers(result, loaded)
        else:
            buffer = self._alloc(result.type, STAGING, result.name)
            loaded = self._ours(
                COPY,
                (*operands[:2], buffer),
                buffer.type,
                result.name,
                groups=(1, groups[1], 1, 0),
                facts=facts,
            )
            self._homes.remember(loaded, buffer)
            self._homes.put(result, STAGING, loaded)
        self._token(operation)

    def _atomic(self, operation: Operation) -> None:
        """Reads, combines, writes; the mask is a group of its own."""
        taken = 2 if operation.name == "tile.atomic_rmw" else 3
        groups = (*(1,) * taken, len(operation.operands) - taken)
        result = operation.results[0]
        made = self._out.add(
            OURS + ATOMICS[operation.name],
            [self._registers(value) for value in operation.operands],
            (result.type,),
            {**operation.attributes, "groups": groups},
            names=(result.name,),
        )
        self._homes.in_registers(result, made.result)
        self._token(operation)

    def _copied(self, operation: Operation) -> Copying:
        useful = bool(self._loops) or self._uses.multiplied_only(operation.results[0])
        wanted = useful and COPY in self._machine.opcodes
        return copying(operation, wanted, self._uses, self._axes)

    def _store(self, operation: Operation) -> None:
        operands = [self._registers(value) for value in operation.operands]
        masked = int(len(operands) > 2)
        self._out.add(OURS + STORE, operands, (), {"groups": (1, 1, masked)})
        self._token(operation)

    # Products and reductions --------------------------------------------------------------

    def _dot(self, operation: Operation) -> None:
        a, b, total = operation.operands
        result = operation.result
        chosen = self._product_of(operation)
        product = chosen.product
        if chosen.held:
            left, right = self._as(a, chosen.left), self._as(b, chosen.right)
        else:
            held = a in self._held
            left = self._registers(a) if held else self._in(a, self._left_spaces(operation))
            right = self._in(b, product.b)
        if product.accumulator == REGISTERS:
            self._sum_up(operation, left, right)
            return
        space = product.accumulator
        into = self._homes.of(total).get(space)
        if into is not None and self._may_go(total, operation):
            self._homes.drop(total, space)
        elif self._is_zero(total) and result not in self._places:
            buffer = self._alloc(result.type, space, result.name)
            groups = (1, 1, 0, 1, 0)
            made = self._product(result, (left, right, buffer), groups, buffer.type)
            self._settle(result, space, made, buffer)
            return
        else:
            held_total = self._registers(total)
            buffer = self._places.get(result)
            if buffer is not None:
                self._overwrite(buffer, operation)
            into = self._fill(held_total, space, total.name or result.name, buffer)
        made = self._product(result, (left, right, into), (1, 1, 1, 0, 0), into.type)
        self._settle(result, space, made, into)

    def _product_of(self, operation: Operation) -> Chosen:
        """The product that a `tile.dot` becomes."""
        if operation not in self._chosen:
            self._chosen[operation] = choose(operation, self._machine, self._uses.maker)
        return self._chosen[operation]

    def _as(self, value: Value, element: str) -> Value:
        """A factor in registers, of elements that have all of its numbers."""
        held = self._registers(value)
        wanted = like(held.type, Scalar(element))
        if held.type == wanted:
            return held
        return self._out.op("arith.extf", (held,), wanted, _name(value, "wide"))

    def _left_spaces(self, operation: Operation) -> Sequence[str]:
        """Where the left factor of a product may be; a wait keeps no registers of 8 bits: those go
        elsewhere."""
        product = self._product_of(operation).product
        element = element_of(operation.operands[0].type)
        narrow = isinstance(element, Scalar) and element.bits == NARROW_BITS
        if not (product.wait and narrow):
            return product.a
        return tuple(space for space in product.a if space != REGISTERS) or product.a

    def _sum_up(self, operation: Operation, left: Value, right: Value) -> None:
        """A product whose sum is in registers: there at once, or once it has been waited for.

        A sum that only products add to is not waited for in the loop, what they read is. Where the
        machine says so, the wait for another belongs to the step of the product: both are a group.
        The wait is of the product's own iteration, whoever reads the sum, so no offset is between.
        """
        total, result = operation.operands[2], operation.result
        pending = self._homes.of(total).get(PENDING)
        held = () if self._is_zero(total) else (pending or self._registers(total),)
        product = self._product_of(operation).product
        groups = (1, 1, len(held)) if not product.wait else (1, 1, len(held), 0, 0)
        kind, name = OURS + product.opcode, result.name
        if not product.wait:
            made = self._out.op(kind, (left, right, *held), result.type, name, groups=groups)
            self._homes.in_registers(result, made)
            return
        freed = tuple(v for v in (left, right) if isinstance(v.type, Buffer))
        if self._goes_round(result):
            both = (result.type, Token())
            made, done = self._out.add(
                kind, (left, right, *held), both, {"groups": groups}, names=(name, f"{name}_done")
            ).results
            self._homes.put(result, PENDING, made)
            self._out.add(OURS + product.wait, (done, *freed), (), {"groups": (0, 1, len(freed))})
            return
        together: dict[str, Attribute] = {}
        if product.in_step:
            self._groups += 1
            together["gid"] = self._groups
        made = self._out.op(
            kind, (left, right, *held), result.type, name, groups=groups, **together
        )
        self._homes.put(result, PENDING, made)
        self._await(result, made, freed, **together)

    @property
    def _wait(self) -> str:
        """The opcode that waits for a product, where one has to."""
        return next((one.wait for one in self._machine.products if one.wait), "")

    def _await(
        self, value: Value, made: Value, freed: Sequence[Value] = (), **said: Attribute
    ) -> Value:
        """What a product made, in registers: once it is done."""
        groups = (1, 0, len(freed))
        waited = self._ours(
            self._wait, (made, *freed), made.type, f"{value.name}_ready", groups=groups, **said
        )
        self._homes.in_registers(value, waited)
        return waited

    def _goes_round(self, result: Value) -> bool:
        """Whether a sum is handed on to the product itself in the next step, and to nobody else."""
        if not self._loops:
            return False
        (body,) = self._loops[-1].regions
        for i, value in enumerate(body.terminator.operands):
            if value is result and i in self._chains(self._loops[-1]):
                return True
        return False

    def _chains(self, loop: Operation) -> frozenset[int]:
        """The carried values that a product of a loop adds to, and nobody else looks at."""
        (body,) = loop.regions
        found: set[int] = set()
        for i, value in enumerate(body.terminator.operands):
            made, argument = self._uses.maker.get(value), body.arguments[i + 1]
            if made is None or made.name != "tile.dot" or made not in body.operations:
                continue
            if not self._product_of(made).product.wait:
                continue
            alone = self._uses.of(argument) == [made] and made.operands[2] is argument
            # A left factor from registers would be written anew while the product reads it.
            left = made.operands[0]
            shared = STAGING in self._homes.of(left) or self._loaded(left)
            shared = shared or REGISTERS not in self._left_spaces(made)
            if alone and shared and self._uses.of(value) == [body.terminator]:
                found.add(i)
        return frozenset(found)

    def _loaded(self, value: Value) -> bool:
        """Whether a factor comes from memory, as it is or transposed."""
        made = self._uses.maker.get(value)
        while made is not None and made.name in ("tile.transpose", "tile.reshape", "tile.hint"):
            made = self._uses.maker.get(made.operands[0])
        copied = COPY in self._machine.opcodes
        return made is not None and (
            made.name == "tile.view_load" or (made.name == "tile.load" and copied)
        )

    def _product(
        self, result: Value, operands: Sequence[Value], groups: tuple[int, ...], type: Type
    ) -> Value:
        kind = self._machine.products[0].opcode
        return self._ours(kind, operands, type, result.name, groups=groups)

    def _settle(self, result: Value, space: str, made: Value, buffer: Value) -> None:
        self._homes.remember(made, buffer)
        self._homes.put(result, space, made)

    def _is_zero(self, value: Value) -> bool:
        made = self._uses.maker.get(value)
        if made is None:
            return False
        if made.name == "tile.splat":
            return self._is_zero(made.operands[0])
        if made.name != "arith.constant":
            return False
        number = made.attributes["value"]
        return isinstance(number, int | float) and number == 0

    def _reduce(self, operation: Operation) -> None:
        kind = combined_by(operation) if operation.name == "tile.reduce" else None
        if kind is None:
            self._combine(operation)
            return
        (source,), result = operation.operands, operation.result
        axis = operation.integer("axis")
        reduced = self._ours(kind, (self._registers(source),), result.type, result.name, axis=axis)
        self._homes.in_registers(result, reduced)

    def _combine(self, operation: Operation) -> None:
        """A reduction or a scan whose region says how two elements go together."""
        (region,) = operation.regions
        inside = {v for op in region.operations for v in op.results} | set(region.arguments)
        taken = {v for op in region.operations for v in op.operands if v not in inside}
        makers = [self._uses.maker.get(value) for value in taken]
        if any(made is None or made.name != "arith.constant" for made in makers):
            hint = "its combination takes two elements and constants, nothing else"
            raise self._refuse(operation, "a reduction that takes a value from outside", hint)
        arguments = [Value(value.type, value.name) for value in region.arguments]
        sources = [self._registers(value) for value in operation.operands]
        self._homes.enter()
        for old, new in zip(region.arguments, arguments, strict=True):
            self._homes.in_registers(old, new)
        with self._out.region(arguments) as opened:
            for made in makers:
                if made is not None:
                    self._plain(made)
            for inner in region.operations[:-1]:
                self._operation(inner)
            ends = [self._registers(value) for value in region.terminator.operands]
            self._out.add(OURS + COMBINED, ends)
        self._homes.leave()
        self._out.location = operation.location
        said: dict[str, Attribute] = {"axis": operation.integer("axis")}
        if operation.attributes.get("reverse"):
            said["reverse"] = 1
        kind = SCAN if operation.name == "tile.scan" else REDUCE
        types = [result.type for result in operation.results]
        names = [result.name for result in operation.results]
        made = self._out.add(OURS + kind, sources, types, said, (opened.region,), names)
        for old, new in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(old, new)

    # Control flow -------------------------------------------------------------------------

    def _for(self, operation: Operation) -> None:
        lower, upper, step, *initial = operation.operands
        (body,) = operation.regions
        space = self._machine.products[0].accumulator if self._machine.products else REGISTERS
        kept = self._uses.in_place(operation) if space in SPACES and space != REGISTERS else ()
        if self._wait:
            space, kept = PENDING, self._chains(operation)
        self._hold(body)
        bounds = [self._registers(value) for value in (lower, upper, step)]
        begun = [
            self._begin(operation, value, space)
            if i in kept and space != PENDING
            else self._registers(value)
            for i, value in enumerate(initial)
        ]
        arguments = [Value(body.arguments[0].type, body.arguments[0].name)]
        arguments += [
            Value(first.type, old.name or f"sum_{i}")
            for i, (first, old) in enumerate(zip(begun, body.arguments[1:], strict=True))
        ]
        self._homes.enter()
        self._loops.append(operation)
        for i, (old, new) in enumerate(zip(body.arguments, arguments, strict=True)):
            self._homes.put(old, space if i - 1 in kept else REGISTERS, new)
            self._born[old] = len(self._loops)
            if i - 1 in kept and space != PENDING:
                self._places[body.terminator.operands[i - 1]] = new
        with self._out.region(arguments) as opened:
            if goes_over_work_tiles(operation, self._uses.maker, self._axes):
                self._work_tile(body.arguments[0], arguments[0], bounds[1])
            for inner in body.operations[:-1]:
                self._operation(inner)
            self._out.location = body.terminator.location
            self._out.add("scf.yield", self._ends(body, kept, space, arguments))
        self._loops.pop()
        self._homes.leave()
        self._out.location = operation.location
        said: dict[str, Attribute] = {**operation.attributes, "machine": self._machine.name}
        pair = conflict(operation, self._uses.maker, self._accesses.touched)
        if pair is not None:
            said["serial"] = True
        if pair is not None and not has_loop_inside(operation):
            told = (
                f"steps of its loop do not overlap: {pair[1].location} may touch the same element"
            )
            self._notes.append((pair[0].location, told))
        made = self._out.add(
            "scf.for",
            (*bounds, *begun),
            [value.type for value in begun],
            said,
            (opened.region,),
            [result.name for result in operation.results],
        )
        for i, (old, new) in enumerate(zip(operation.results, made.results, strict=True)):
            self._homes.put(old, space if i in kept else REGISTERS, new)
            if i in kept and space != PENDING:
                self._homes.remember(new, begun[i])

    def _hold(self, body: Region) -> None:
        """Left factors that a loop's products are to have in registers, read before it begins."""
        products = [
            op
            for op in body.operations
            if op.name == "tile.dot" and self._product_of(op).product.wait
        ]
        if not products or REGISTERS not in self._machine.products[0].a:
            return
        said = self._out.said

        def outside(value: Value) -> bool:
            return STAGING in self._homes.of(value)

        for operation in held_factors(products, outside, self._machine.products[0].held):
            if REGISTERS not in self._left_spaces(operation):
                continue
            agent = operation.attributes.get("agent")
            self._out.said = {} if agent is None else {"agent": agent}
            self._registers(operation.operands[0])
            self._held.add(operation.operands[0])
        self._out.said = said

    def _work_tile(self, index: Value, lowered: Value, tiles: Value) -> None:
        """Which tile a persistent block is at: the kernel numbers its tiles along one axis."""
        made = self._out.add(
            OURS + WORK_TILE,
            (lowered, tiles),
            (lowered.type, Scalar("i1")),
            {"tile": (1,), "cluster": (1,)},
            names=(index.name, "valid"),
        )
        self._homes.in_registers(index, made.results[0])

    def _begin(self, loop: Operation, value: Value, space: str) -> Value:
        """The buffer that a carried sum begins in: that of what it begins with, if nobody else
        wants it, or a fresh one."""
        home = self._homes.of(value)
        place = home.get(space)
        if place is not None and self._may_go(value, loop):
            self._homes.drop(value, space)
            return place
        buffer = next((b for v, b in self._places.items() if v in loop.results), None)
        return self._fill(self._registers(value), space, value.name or "sum", buffer)

    def _ends(
        self,
        body: Region,
        kept: Sequence[int] | frozenset[int],
        space: str,
        arguments: Sequence[Value],
    ) -> list[Value]:
        found: list[Value] = []
        for i, value in enumerate(body.terminator.operands):
            if i not in kept:
                found.append(self._registers(value))
                continue
            place = self._homes.of(value).get(space)
            if place is not None and space == PENDING:
                found.append(place)
                continue
            if place is None or self._homes.root(place) is not self._homes.root(arguments[i + 1]):
                place = self._fill(self._registers(value), space, value.name, arguments[i + 1])
            found.append(place)
        return found

    def _region(self, region: Region, ends: str) -> Region:
        arguments = [Value(value.type, value.name) for value in region.arguments]
        self._homes.enter()
        for old, new in zip(region.arguments, arguments, strict=True):
            self._homes.in_registers(old, new)
        with self._out.region(arguments) as opened:
            for inner in region.operations[:-1]:
                self._operation(inner)
            self._out.location = region.terminator.location
            held = [self._registers(value) for value in region.terminator.operands]
            self._out.add(ends, held)
        self._homes.leave()
        return opened.region

    def _if(self, operation: Operation) -> None:
        condition = self._registers(operation.operands[0])
        regions = [self._region(region, "scf.yield") for region in operation.regions]
        self._finish(operation, (condition,), regions)

    def _while(self, operation: Operation) -> None:
        initial = [self._registers(value) for value in operation.operands]
        before, after = operation.regions
        regions = [self._region(before, "scf.condition"), self._region(after, "scf.yield")]
        self._finish(operation, initial, regions)

    def _finish(
        self, operation: Operation, operands: Sequence[Value], regions: Sequence[Region]
    ) -> None:
        self._out.location = operation.location
        made = self._out.add(
            operation.name,
            operands,
            [result.type for result in operation.results],
            operation.attributes,
            regions,
            [result.name for result in operation.results],
        )
        for old, new in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(old, new)


def _in_registers(type: Type) -> Type:
    return Tile(type.shape, type.element) if isinstance(type, Buffer) else type


def _name(value: Value, ending: str) -> str:
    return f"{value.name}_{ending}" if value.name else ""


def _without_idle_constants(region: Region) -> Region:
    """Zeros that only said where a sum begins are not wanted any more."""
    used = {value for operation in region.walk() for value in operation.operands}

    def kept(operation: Operation) -> bool:
        return operation.name != "arith.constant" or operation.result in used

    return replace(region, operations=tuple(op for op in region.operations if kept(op)))
