"""Products of a kernel, lowered: where their factors are read from, where sums are, who waits."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.kernel.lowering.held import REGISTER_BITS, held_factors
from stretto.kernel.lowering.memory import MemoryLowering
from stretto.kernel.lowering.product_choice import Chosen, choose
from stretto.kernel.lowering.written import OURS, PENDING, WIDE
from stretto.kernel.tree import Attribute, Operation, Region, Value
from stretto.kernel.types import Buffer, Scalar, Token, Type, element_of, like, shape_of
from stretto.machine.machine import WARP
from stretto.ops.spaces import REGISTERS, STAGING

WARP_ROWS = 16
"""That a warp multiplies at a time."""
NARROW_BITS = 8
"""Of elements that no wait for a product keeps in registers."""


class ProductLowering(MemoryLowering):
    """Lowers products, and sums that loops carry."""

    def _dot(self, operation: Operation) -> None:
        a, b, total = operation.operands
        result = operation.result
        chosen = self._product_of(operation)
        product = chosen.product
        if chosen.held:
            left, right = self._widened(a, chosen.left), self._widened(b, chosen.right)
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

    def _widened(self, value: Value, element: str) -> Value:
        """A factor in registers, of elements that have all of its numbers."""
        held = self._registers(value)
        wanted = like(held.type, Scalar(element))
        if held.type == wanted:
            return held
        return self._out.op(WIDE, (held,), wanted, value.name and f"{value.name}_wide")

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
        if pending is not None and not self._alike(total, operation):
            pending = None
        held = () if self._is_zero(total) else (pending or self._registers(total),)
        chosen = self._product_of(operation)
        product = chosen.product
        kind, name = OURS + product.opcode, result.name
        groups = (1, 1, len(held)) if chosen.held else (1, 1, len(held), 0, 0)
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

    def _alike(self, total: Value, operation: Operation) -> bool:
        """Whether a sum comes of a product of elements of the same width: others lay it out in
        another way, and what is in flight cannot be converted."""
        made = self._uses.maker.get(total)
        if made is None or made.name != "tile.dot":
            return True
        one, other = (element_of(op.operands[1].type) for op in (made, operation))
        return isinstance(one, Scalar) and isinstance(other, Scalar) and one.bits == other.bits

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
        if made is None or made.name == "tile.view_load":
            return made is not None
        return made.name == "tile.load" and self._copies.how(made, bool(self._loops)).copied

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
        """Whether threads write what a product that is waited for adds to."""
        return any(
            user.name == "tile.dot"
            and user.operands[2] is result
            and self._product_of(user).product.wait
            for result in operation.results
            for user in self._uses.of(result)
        )

    def _hold_of_warps(self, dots: Sequence[Operation]) -> None:
        """Likewise of products of single warps, each of which has all of K of its rows."""
        lefts = {op.operands[0]: op for op in dots if self._product_of(op).held}
        outside = [value for value in lefts if STAGING in self._homes.of(value)]
        taken = sum(_registers_of_warp(value.type) for value in outside)
        if any(taken > self._product_of(lefts[value]).product.held for value in outside):
            return
        for value in outside:
            self._registers(value)

    def _hold(self, body: Region) -> None:
        """Left factors that a loop's products are to have in registers, read before it begins."""
        dots = [op for op in body.operations if op.name == "tile.dot"]
        self._hold_of_warps(dots)
        products = [op for op in dots if self._product_of(op).product.wait]
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


def _registers_of_warp(type: Type) -> int:
    """Of a thread: the rows of a left factor that a warp multiplies at a time."""
    element = element_of(type)
    assert isinstance(element, Scalar)
    return WARP_ROWS * shape_of(type)[-1] * element.bits // (WARP * REGISTER_BITS)
