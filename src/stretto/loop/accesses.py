"""What an operation reads of the storages: what it lists, and where its operands live.

    load ─► k, in k_tile          qk lists no read of `k_tile`, but takes `k_t`, another name
       k ── transpose ─► k_t      of what lies there: it reads `k_tile` from start to completion

An operand that lives in a storage reads the instance its value lives in. A view is a name: it has
one operand and one result, both in the same storage, and takes no time. Whoever takes its result
reads what it names, as many iterations back as all names on the way add up to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.loop.types import Access, Op, Operand, Storage, Value


def storage_views(ops: Sequence[Op], values: Sequence[Value]) -> dict[str, Operand]:
    """Operations that only give another name to what lies in a storage, and what they name."""
    home = {value.name: value.storage for value in values}
    found: dict[str, Operand] = {}
    for op in ops:
        if len(op.operands) != 1 or len(op.results) != 1 or op.reads or op.writes:
            continue
        (operand,), (result,) = op.operands, op.results
        here = home.get(result)
        if here is not None and here == home.get(operand.value) and not _takes_time(op):
            found[op.name] = operand
    return found


def _takes_time(op: Op) -> bool:
    return op.resolved and op.completion > 0


def effective_reads(
    ops: Sequence[Op], values: Sequence[Value], storages: Sequence[Storage]
) -> dict[str, tuple[Access, ...]]:
    """Operation to all its reads: those that are listed, then those its operands imply."""
    home = {value.name: value.storage for value in values if value.storage is not None}
    if not home:
        return {op.name: op.reads for op in ops}
    written = {name for op in ops for name in op.writes}
    rotating = {s.name for s in storages if not s.fixed} & written
    views = storage_views(ops, values)
    named = {op.results[0]: views[op.name] for op in ops if op.name in views}
    found: dict[str, tuple[Access, ...]] = {}
    for op in ops:
        reads = dict.fromkeys(op.reads)
        for operand in op.operands if op.name not in views else ():
            storage = home.get(operand.value)
            if storage is not None:
                back = _instance(operand, named, len(ops)) if storage in rotating else 0
                reads[Access(storage, back)] = None
        found[op.name] = tuple(reads)
    return found


def _instance(operand: Operand, named: Mapping[str, Operand], most: int) -> int:
    """Iterations back to the instance that an operand lives in, through the views on the way."""
    back, steps = operand.distance, 0
    at = named.get(operand.value)
    while at is not None and steps < most:  # a view of itself, carried round, must end
        back += at.distance
        at, steps = named.get(at.value), steps + 1
    return back
