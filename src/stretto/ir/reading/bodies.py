"""Bodies of pipeline operations: what is inside starts after the operation, and whoever takes its
token waits for what is inside.

    %full = producer_write ... { %load = ... }     full ─► load
    %done = producer_commit ... after %full        load ─► done, once it has landed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.ir import Operation, OpResult, SSAValue

from stretto.ir.dialect.pipeline import BODIES
from stretto.loop import Dependence


def enclosed(token: SSAValue) -> Iterator[SSAValue]:
    """What the body has made by the time its operation hands out its token."""
    if isinstance(token, OpResult) and token.index == 0 and isinstance(token.op, BODIES):
        for op in token.op.body.block.ops:
            yield from op.results[:1]
            yield from (made for result in op.results[:1] for made in enclosed(result))


def entries(
    parents: Iterable[tuple[Operation, Operation | None]], names: Mapping[Operation, str]
) -> Iterator[Dependence]:
    """Each operation after the one whose body it is in."""
    for op, parent in parents:
        if parent is not None:
            yield Dependence(names[parent], names[op], 0, 0, "order", "body")
