"""Numbers that several agents need, which each of them loads for itself.

    page = load pages + i                   page = load pages + i          for the scores
    k = load view, [page, 0]        ──►     page' = load pages + i         for the copy
    s = scores * page                       k = load view, [page', 0]

A number in a register is one agent's, and handing it to another would cost a barrier. What follows
from numbers of the kernel alone each agent works out anyway; what follows from a load is loaded
once for each of them, where nobody in the kernel writes that memory. Each stands in the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel.lowering.conflicts import ACQUIRING, written
from stretto.kernel.tree import Kernel, Operation, Region, Value, carried_from, root_of
from stretto.kernel.types import Pointer, Scalar

_COPIES = frozenset(("tile.view_load", "tile.view_gather"))
_COPY, _COMPUTE = "copy", "compute"
_ATOMIC = ("tile.atomic_rmw", "tile.atomic_cas")
_ROOTED = frozenset(("tile.offset", "tile.splat", "tile.broadcast", "tile.hint"))


def with_own_numbers(kernel: Kernel) -> Kernel:
    """The kernel with loads of numbers in loops that one agent each reads."""
    loads = _repeatable(kernel)
    if not loads:
        return kernel
    users: dict[Value, list[Operation]] = {}
    for operation in kernel.walk():
        for operand in operation.operands:
            users.setdefault(operand, []).append(operation)
    body = _region(kernel.body, loads, users, in_loop=False)
    return replace(kernel, body=body)


def _repeatable(kernel: Kernel) -> set[Operation]:
    """Loads of numbers that bring the same whoever does them."""
    for operation in kernel.walk():
        if operation.name in _ATOMIC and operation.text("semantics", "acq_rel") in ACQUIRING:
            return set()
    makers = {value: op for op in kernel.walk() for value in op.results}
    carried = carried_from(kernel.walk())
    read_only = {p.value for p in kernel.parameters} - {
        p.value for p in kernel.parameters if p.name in written(kernel)
    }

    def through(made: Operation, _: Value) -> Value | None:
        return made.operands[0] if made.name in _ROOTED else None

    return {
        op
        for op in kernel.walk()
        if op.name == "tile.load"
        and isinstance(op.results[0].type, Scalar | Pointer)
        and len(op.results) == 1
        and not op.attributes.get("volatile")
        and root_of(op.operands[0], makers, carried, through) in read_only
    }


def _region(
    region: Region, loads: set[Operation], users: dict[Value, list[Operation]], *, in_loop: bool
) -> Region:
    inside = [
        replace(
            op,
            regions=tuple(
                _region(r, loads, users, in_loop=in_loop or op.name == "scf.for")
                for r in op.regions
            ),
        )
        if op.regions
        else op
        for op in region.operations
    ]
    if in_loop:
        inside = _Shares(region.operations, inside, loads, users).written()
    return Region(tuple(inside), region.arguments)


@dataclass
class _Shares:
    """The numbers of one region, and who reads them."""

    before: Sequence[Operation]
    now: Sequence[Operation]
    """The same operations, with what is inside of them written anew."""
    loads: set[Operation]
    users: dict[Value, list[Operation]]
    _readers: dict[Value, tuple[str, ...]] = field(default_factory=dict[Value, tuple[str, ...]])
    _own: dict[str, dict[Value, Value]] = field(default_factory=dict[str, dict[Value, Value]])

    def written(self) -> list[Operation]:
        """The operations, with a load of its own for each agent."""
        follows: set[Value] = set()
        chain: set[Operation] = set()
        for op in self.before:
            if op in self.loads or (_is_number(op) and not follows.isdisjoint(op.operands)):
                follows |= set(op.results)
                chain.add(op)
        for op in reversed(self.before):
            for value in op.results if op in chain else ():
                self._readers[value] = self._of(value, chain)
        found: list[Operation] = []
        for op, made in zip(self.before, self.now, strict=True):
            if op not in chain:
                found.append(self._with(made, self._reader(op)))
                continue
            first, *others = self._readers[op.result] or (_COMPUTE,)
            found.append(self._with(made, first))
            for other in others:
                again = Value(op.result.type, op.result.name)
                found.append(replace(self._with(made, other), results=(again,)))
                self._own.setdefault(other, {})[op.result] = again
        return found

    def _of(self, value: Value, chain: set[Operation]) -> tuple[str, ...]:
        """Who reads a number: first who keeps the one that is there."""
        found: set[str] = set()
        for user in self.users.get(value, ()):
            if user in chain:
                found |= set(self._readers[user.result])
            else:
                found.add(self._reader(user) if user in self.before else _COMPUTE)
        return tuple(sorted(found, key=lambda name: (name == _COPY, name)))

    def _reader(self, operation: Operation) -> str:
        if operation.name in _COPIES:
            return _COPY
        return operation.text("agent", _COMPUTE)

    def _with(self, operation: Operation, reader: str) -> Operation:
        own = self._own.get(reader)
        if not own or own.keys().isdisjoint(operation.operands):
            return operation
        return replace(operation, operands=tuple(own.get(v, v) for v in operation.operands))


def _is_number(operation: Operation) -> bool:
    """Whether an operation works out one number, and does nothing else."""
    if len(operation.results) != 1 or operation.regions:
        return False
    if not isinstance(operation.result.type, Scalar | Pointer):
        return False
    plain = operation.name.startswith(("arith.", "math."))
    return plain or operation.name in ("tile.offset", "tile.hint")
