"""Whether what a kernel reads and writes in global memory stays in order once it is emitted.

store x[i + 1]  ──►  next step: load x[i + 1]      threads of one agent: in the order of the text
                                                    two agents, or TMA: nothing keeps them apart

An atomic operation with a result may let a kernel see what others wrote, and tell others what it
wrote itself: what comes from another agent, or by TMA, keeps no such order.

A wait for a TMA store lasts until its tile has been read from shared memory, not until others see
what was written; and nobody tells the agent that copies how far threads have come with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.lowering.work_tiles import LOOPS
from stretto.kernel.lowering.written import LOAD, STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import carried_from, kind_of, root_of
from stretto.kernel.types import Pointer, Scalar
from stretto.ops.atomics import COMMUTING
from stretto.program.atomics import ATOMIC, order_of
from stretto.program.errors import EmitError

_ROOTED = frozenset(("offset", "tensor_view", "splat", "broadcast", "expand_dims", "view"))
"""What makes an address or a view of another one, its first operand."""


class _Access(NamedTuple):
    operation: Operation
    array: Value | None
    """The parameter that it goes back to; None: it cannot be told."""
    reads: bool
    writes: bool
    by_tma: bool
    agent: str
    loop: Operation | None
    """The outermost loop around it."""


def require_order(
    kernel: Kernel, maker: Mapping[Value, Operation], agent_of: Callable[[Operation], str]
) -> None:
    """EmitError where one operation may read what another writes and they are not kept apart.

    What is read before it is written, in no loop, is: what is written was made of what was read,
    or nobody wanted it.
    """
    found = list(_accesses(kernel, maker, agent_of))
    used = {value for op in kernel.walk() for value in op.operands}
    for i, first in enumerate(found):
        for second in found[i + 1 :]:
            again = first.loop is not None and first.loop is second.loop
            _require_apart(first, second, again)
            _require_fences(first, second, used)
            if again:
                _require_fences(second, first, used)


def _require_apart(first: _Access, second: _Access, again: bool) -> None:
    """That two accesses of one array come in order, the second after the first or again before."""
    if not (first.writes and second.reads) and not (first.reads and second.writes):
        return
    if not (first.writes or again) or _commute(first.operation, second.operation):
        return
    if None not in (first.array, second.array) and first.array is not second.array:
        return
    if first.by_tma or second.by_tma:
        told = f"{first.operation.location} may touch the same element before or after it"
        hint = "TMA keeps no order in global memory; load and store by addresses"
        raise EmitError(told, second.operation, hint)
    if first.agent != second.agent:
        told = f"{first.operation.location} may touch the same element, by another agent"
        raise EmitError(told, second.operation, "ask for one consumer")


def _require_fences(first: _Access, second: _Access, used: set[Value]) -> None:
    """That what an atomic operation promises of others' accesses, in this order, holds."""
    apart = first.by_tma or second.by_tma or first.agent != second.agent
    if not apart or _commute(first.operation, second.operation):
        return
    hint = 'say sem="relaxed" where nothing depends on it'
    after, before = second.operation, first.operation
    if first.writes and kind_of(after) in ATOMIC and order_of(after) in ("release", "acq_rel"):
        told = f"others may see it before what {before.location} writes, which it releases"
        raise EmitError(told, after, hint)
    found = kind_of(before) in ATOMIC and before.results[0] in used
    if found and second.reads and order_of(before) in ("acquire", "acq_rel"):
        told = f"{after.location} may read before it, which it is to acquire"
        raise EmitError(told, before, hint)


def repeatable(kernel: Kernel, maker: Mapping[Value, Operation]) -> frozenset[Operation]:
    """Loads of single numbers that every agent may do for itself: nobody writes their arrays.

    None are where an atomic operation acquires what others wrote: a number could change then.
    """
    found = list(_accesses(kernel, maker, lambda _: ""))
    for access in found:
        kind = kind_of(access.operation)
        if kind in ATOMIC and order_of(access.operation) in ("acquire", "acq_rel"):
            return frozenset()
    written = {access.array for access in found if access.writes}
    return frozenset(
        access.operation
        for access in found
        if kind_of(access.operation) == LOAD
        and isinstance(access.operation.results[0].type, Scalar | Pointer)
        and access.array is not None
        and access.array not in written
        and None not in written
        and not access.operation.attributes.get("volatile")
    )


def _commute(first: Operation, second: Operation) -> bool:
    """Whether two operations change elements in a way that has no order."""
    if kind_of(first) != kind_of(second) or kind_of(first) not in ATOMIC:
        return False
    return first.text("kind") == second.text("kind") and first.text("kind") in COMMUTING


def _accesses(
    kernel: Kernel, maker: Mapping[Value, Operation], agent_of: Callable[[Operation], str]
) -> Iterator[_Access]:
    carried = carried_from(kernel.walk())
    for top in kernel.body.operations:
        for op in top.walk():
            kind = kind_of(op)
            if kind not in (TMA_LOAD, TMA_STORE, LOAD, STORE, *ATOMIC):
                continue
            address = op.operands[1 if kind == TMA_STORE else 0]
            by_tma = kind in (TMA_LOAD, TMA_STORE)
            writes = kind not in (TMA_LOAD, LOAD)
            reads = kind not in (TMA_STORE, STORE)
            loop = top if any(inner.name in LOOPS for inner in top.walk()) else None
            array = root_of(address, maker, carried, _through)
            yield _Access(op, array, reads, writes, by_tma, agent_of(op), loop)


def _through(made: Operation, _: Value) -> Value | None:
    return made.operands[0] if kind_of(made) in _ROOTED else None
