"""What a loop carries and never changes is what it began with.

    for ... carried (rows = rows_0, total):         for ... carried (total):
        use rows                             ──►        use rows_0
        yield rows_0, ...                               yield ...

Versions of Triton leave such arguments behind where a branch has a loop on each side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stretto.kernel.tree import Kernel, Operation, Region, Value


def with_fixed_arguments(kernel: Kernel) -> Kernel:
    """The kernel whose loops carry what changes."""
    if not any(op.name == "scf.for" and _fixed(op) for op in kernel.walk()):
        return kernel
    return replace(kernel, body=_Writer().region(kernel.body))


def _fixed(loop: Operation) -> list[int]:
    """The places of what a loop hands on as it was."""
    (body,) = loop.regions
    carried = zip(loop.operands[3:], body.arguments[1:], body.terminator.operands, strict=True)
    return [n for n, (begun, own, end) in enumerate(carried) if end is own or end is begun]


@dataclass
class _Writer:
    _instead: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def region(self, region: Region) -> Region:
        """A region, its loops without such arguments."""
        made = tuple(self._operation(operation) for operation in region.operations)
        return Region(made, region.arguments)

    def _operation(self, operation: Operation) -> Operation:
        operands = tuple(self._instead.get(value, value) for value in operation.operands)
        made = replace(operation, operands=operands)
        fixed = _fixed(operation) if operation.name == "scf.for" else []
        if fixed:
            made = self._narrowed(made, fixed)
        return replace(made, regions=tuple(self.region(region) for region in made.regions))

    def _narrowed(self, loop: Operation, fixed: list[int]) -> Operation:
        (body,) = loop.regions
        index, *arguments = body.arguments
        for n in fixed:
            begun = loop.operands[3 + n]
            self._instead[arguments[n]] = self._instead[loop.results[n]] = begun
        kept = [n for n in range(len(arguments)) if n not in fixed]
        end = body.terminator
        end = replace(end, operands=tuple(end.operands[n] for n in kept))
        return replace(
            loop,
            operands=(*loop.operands[:3], *(loop.operands[3 + n] for n in kept)),
            results=tuple(loop.results[n] for n in kept),
            regions=(Region((*body.operations[:-1], end), (index, *(arguments[n] for n in kept))),),
        )
