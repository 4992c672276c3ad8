"""What the host does at a launch: numbers that it computes, descriptors that it makes.

x_desc   a view of `x`, of its shape and strides, by tiles of 64 x 64
length   handed over as it is
"""

from __future__ import annotations

from contextlib import suppress

from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Scalar, View
from stretto.ops.operations import SAME_NUMBER
from stretto.program.builder.plan import WHOLE, Plan
from stretto.program.builder.plan import Descriptor as PlannedView
from stretto.program.errors import EmitError
from stretto.program.expressions import Computed, Expression, Literal
from stretto.program.kernel_program import Argument, Descriptor

WIDTHS = SAME_NUMBER - {"tile.hint"}
"""Between integers of different widths, which are one to the host."""


def descriptors(plan: Plan) -> tuple[Descriptor, ...]:
    """The views of tensors by tiles."""
    return tuple(_descriptor(plan, planned) for planned in plan.descriptors.values())


def arguments(plan: Plan, used: set[str]) -> tuple[Argument, ...]:
    """What the kernel takes beside them, of what somebody uses."""
    found: list[Argument] = []
    for value, (name, given) in plan.named.items():
        if name in used and not isinstance(value.type, View):
            assert isinstance(value.type, Scalar | Pointer)
            found.append(Argument(name, given, value.type))
    return tuple(found)


def assumed(plan: Plan) -> tuple[Expression, ...]:
    """What the kernel takes for granted of the numbers that a host gives it."""
    found: dict[Expression, None] = {}
    for operation in plan.kernel.walk():
        if kind_of(operation) == "assume":
            with suppress(EmitError):
                found[_number(plan, operation.operands[0], operation)] = None
    return tuple(one for one in found if not isinstance(one, Literal))


def _descriptor(plan: Plan, planned: PlannedView) -> Descriptor:
    name, block, element = planned.name, planned.block, planned.element
    made = plan.maker.get(planned.view)
    if made is None:
        return Descriptor(name, planned.view.name, block, element)
    base, *numbers = made.operands
    rank = len(numbers) // 2
    sizes, strides = (
        tuple(_number(plan, value, made) for value in part)
        for part in (numbers[:rank], numbers[rank:])
    )
    if not isinstance(base.type, Pointer) or (base not in plan.maker and not base.name):
        told = "a view of something else than a parameter cannot be emitted"
        raise EmitError(told, made, WHOLE)
    return Descriptor(name, base.name, block, element, _number(plan, base, made), sizes, strides)


def _number(plan: Plan, value: Value, user: Operation) -> Expression:
    """A number that the host can compute from the parameters."""
    if value in plan.named:
        return plan.named[value][1]
    made = plan.maker.get(value)
    if made is None or isinstance(value.type, View):
        raise EmitError("a view that depends on the block cannot be emitted", user, WHOLE)
    kind = kind_of(made)
    if kind == "arith.constant":
        return Literal(made.attributes["value"], value.type)
    if kind in WIDTHS:
        return _number(plan, made.operands[0], user)
    if not kind.startswith("arith.") or not isinstance(value.type, Scalar):
        raise EmitError("a view that depends on the block cannot be emitted", user, WHOLE)
    return Computed(made, tuple(_number(plan, v, user) for v in made.operands))
