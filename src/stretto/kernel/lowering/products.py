"""Products of a kernel, lowered: where their factors are read from, where sums are, who waits."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.kernel.lowering.held import held_factors
from stretto.kernel.lowering.memory import MemoryLowering
from stretto.kernel.lowering.written import COPY, OURS, PENDING
from stretto.kernel.tree import Attribute, Operation, Region, Value
from stretto.kernel.types import Buffer, Scalar, Token, Type, element_of
from stretto.ops.spaces import REGISTERS, STAGING

NARROW_BITS = 8
"""Of elements that no wait for a product keeps in registers."""


class ProductLowering(MemoryLowering):
    """Lowers products, and sums that loops carry."""

    def _dot(self, operation: Operation) -> None:
        a, b, total = operation.operands
        result = operation.result
        product = self._machine.products[0]
        left = self._registers(a) if a in self._held else self._in(a, self._left_spaces(a))
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

    def _left_spaces(self, value: Value) -> Sequence[str]:
        """Where a left factor may be; a wait keeps no registers of 8 bits: those go elsewhere."""
        spaces = self._machine.products[0].a
        element = element_of(value.type)
        narrow = isinstance(element, Scalar) and element.bits == NARROW_BITS
        if not (self._waits and narrow):
            return spaces
        return tuple(space for space in spaces if space != REGISTERS) or spaces

    def _sum_up(self, operation: Operation, left: Value, right: Value) -> None:
        """A product whose sum is in registers: there at once, or once it has been waited for.

        A sum that only products add to is not waited for in the loop, what they read is. Where the
        machine says so, the wait for another belongs to the step of the product: both are a group.
        The wait is of the product's own iteration, whoever reads the sum, so no offset is between.
        """
        total, result = operation.operands[2], operation.result
        pending = self._homes.of(total).get(PENDING)
        held = () if self._is_zero(total) else (pending or self._registers(total),)
        groups = (1, 1, len(held), 0, 0)
        if not self._waits:
            made = self._product(result, (left, right, *held), groups, result.type)
            self._homes.in_registers(result, made)
            return
        freed = tuple(v for v in (left, right) if isinstance(v.type, Buffer))
        kind, name = OURS + self._machine.products[0].opcode, result.name
        if self._goes_round(result):
            both = (result.type, Token())
            made, done = self._out.add(
                kind, (left, right, *held), both, {"groups": groups}, names=(name, f"{name}_done")
            ).results
            self._homes.put(result, PENDING, made)
            self._out.add(OURS + self._waits, (done, *freed), (), {"groups": (0, 1, len(freed))})
            return
        together: dict[str, Attribute] = {}
        if self._machine.products[0].in_step:
            self._groups += 1
            together["gid"] = self._groups
        made = self._out.op(
            kind, (left, right, *held), result.type, name, groups=groups, **together
        )
        self._homes.put(result, PENDING, made)
        self._await(result, made, freed, **together)

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
            alone = self._uses.of(argument) == [made] and made.operands[2] is argument
            # A left factor from registers would be written anew while the product reads it.
            left = made.operands[0]
            shared = STAGING in self._homes.of(left) or self._loaded(left)
            shared = shared or REGISTERS not in self._left_spaces(left)
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

    def _is_summed(self, operation: Operation) -> bool:
        """Whether threads write what a product adds to."""
        return any(
            user.name == "tile.dot" and user.operands[2] is result
            for result in operation.results
            for user in self._uses.of(result)
        )

    def _hold(self, body: Region) -> None:
        """Left factors that a loop's products are to have in registers, read before it begins."""
        products = [op for op in body.operations if op.name == "tile.dot"]
        if not products or REGISTERS not in self._machine.products[0].a:
            return
        said = self._out.said

        def outside(value: Value) -> bool:
            return STAGING in self._homes.of(value)

        for operation in held_factors(products, outside, self._machine.products[0].held):
            if REGISTERS not in self._left_spaces(operation.operands[0]):
                continue
            agent = operation.attributes.get("agent")
            self._out.said = {} if agent is None else {"agent": agent}
            self._registers(operation.operands[0])
            self._held.add(operation.operands[0])
        self._out.said = said
