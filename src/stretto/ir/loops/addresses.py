"""What is known of the addresses of a module: facts of each operation that touches global memory.

    %row = arith.muli %i, %c64                    bounds, divisibility        kernel/axes.py
    tiled_tma_load %A[%row, %zero] : 4096x4099    divisibility 2              kernel/accesses.py

It is the analysis that kernels are lowered by, of the functions as trees. Most modules are small,
and it is made when the first such operation is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from stretto.ir.dialect.types import buffer_of, pointee_of
from stretto.ir.parsing import Parsed
from stretto.loop import Facts
from stretto.ops.spaces import GLOBAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.ir.kernels.functions import KernelInModule
    from stretto.kernel import Value
    from stretto.kernel.axes import Axis

_NOTHING = Facts()


class Addresses:
    """The accesses of one module."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed

    def of(self, op: Operation) -> Facts:
        """What is known of an operation; nothing of one that touches no global memory."""
        far = any(buffer_of(v.type) == GLOBAL or pointee_of(v.type) for v in op.operands)
        return self._all.get(op, _NOTHING) if far else _NOTHING

    def axes(self) -> Iterator[tuple[SSAValue, Axis | None]]:
        """The values of the module, and what is known of each integer and address."""
        for function, axes in self._functions:
            yield from ((value, axes.get(kept)) for value, kept in function.values.items())

    @cached_property
    def _functions(self) -> tuple[tuple[KernelInModule, Mapping[Value, Axis]], ...]:
        from stretto.ir.kernels.functions import analysed_kernels  # noqa: PLC0415 - see above
        from stretto.kernel.axes import analyse  # noqa: PLC0415

        return tuple((found, analyse(found.kernel)) for found in analysed_kernels(self._parsed))

    @cached_property
    def _all(self) -> dict[Operation, Facts]:
        from stretto.kernel.accesses import ACCESSES, Accesses, shared_loads  # noqa: PLC0415

        found: dict[Operation, Facts] = {}
        for function, axes in self._functions:
            accesses, shared = Accesses(function.kernel, axes), shared_loads(function.kernel)
            for op, kept in function.operations.items():
                if kept.name in ACCESSES:
                    facts = accesses.facts(kept)
                    found[op] = replace(facts, cluster=shared[kept]) if kept in shared else facts
        return found
