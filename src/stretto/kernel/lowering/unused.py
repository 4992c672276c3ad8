"""What nobody wants any more: operations whose results are not used, and what loops carry for them.

    for ... carried (at, total):            for ... carried (total):
        at = offset at, 64          ──►         total = ...
        total = ...

Rewritings leave addresses and masks behind that only what they replaced had asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.ops.operations import OPERATIONS


def without_unused(kernel: Kernel) -> Kernel:
    """The kernel without what nobody wants."""
    marked = _Marks()
    marked.region(kernel.body)
    while marked.queue:
        marked.reach(marked.queue.pop())
    return replace(kernel, body=_written(kernel.body, marked.wanted, marked.staying))


@dataclass
class _Marks:
    wanted: set[Value] = field(default_factory=set[Value])
    staying: set[Operation] = field(default_factory=set[Operation])
    queue: list[Value] = field(default_factory=list[Value])
    _from: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])
    """What has to be there for a value."""

    def region(self, region: Region) -> bool:
        """Note what values are made of; whether anything in a region has to be done."""
        found = [self._operation(operation) for operation in region.operations]
        return any(found)

    def _operation(self, operation: Operation) -> bool:
        inside = [self.region(region) for region in operation.regions]
        stays = any(inside)
        if operation.name == "scf.for":
            self._loop(operation)
        elif operation.name == "scf.if":
            for result, *ends in zip(
                operation.results,
                *(region.terminator.operands for region in operation.regions if region.operations),
                strict=False,
            ):
                self._from[result] = [*ends, operation.operands[0]]
        elif operation.name in ("scf.yield", "scf.condition", "tile.yield"):
            return False
        elif operation.name == "scf.while":
            # How often it goes round depends on all that it carries.
            self._want(operation.operands)
            for region in operation.regions:
                self._want(region.terminator.operands)
            stays = True
        else:
            inner = [v for r in operation.regions for op in r.walk() for v in op.operands]
            for result in operation.results:
                self._from[result] = [*operation.operands, *inner]
            stays = stays or not _is_pure(operation)
            if stays:
                self._want([*operation.operands, *inner])
        if stays:
            self.staying.add(operation)
            if operation.name == "scf.for":
                self._want(operation.operands[:3])
            elif operation.name == "scf.if":
                self._want(operation.operands[:1])
        return stays

    def _loop(self, loop: Operation) -> None:
        index, *arguments = loop.regions[0].arguments
        bounds = list(loop.operands[:3])
        self._from[index] = bounds
        ends = loop.regions[0].terminator.operands
        for argument, begun, end, result in zip(
            arguments, loop.operands[3:], ends, loop.results, strict=True
        ):
            self._from[argument] = [begun, end]
            self._from[result] = [argument, begun, end, *bounds]

    def _want(self, values: list[Value] | tuple[Value, ...]) -> None:
        self.queue += [value for value in values if value not in self.wanted]

    def reach(self, value: Value) -> None:
        """Want a value, and what it is made of."""
        if value not in self.wanted:
            self.wanted.add(value)
            self.queue += self._from.get(value, [])


def _is_pure(operation: Operation) -> bool:
    """Whether an operation is done for its results alone."""
    row = OPERATIONS.get(operation.name)
    return row is not None and row.pure and not operation.attributes.get("volatile")


def _written(region: Region, wanted: set[Value], staying: set[Operation]) -> Region:
    found: list[Operation] = []
    for operation in region.operations:
        if operation is region.terminator:
            found.append(operation)
            continue
        if operation not in staying and wanted.isdisjoint(operation.results):
            continue
        made = replace(
            operation, regions=tuple(_written(r, wanted, staying) for r in operation.regions)
        )
        found.append(_narrowed(made, wanted) if made.name in ("scf.for", "scf.if") else made)
    return Region(tuple(found), region.arguments)


def _narrowed(operation: Operation, wanted: set[Value]) -> Operation:
    """A loop or a branch that hands on only what somebody wants."""
    if operation.name == "scf.for":
        arguments = operation.regions[0].arguments[1:]
        kept = [
            n
            for n, pair in enumerate(zip(operation.results, arguments, strict=True))
            if not wanted.isdisjoint(pair)
        ]
    else:
        kept = [n for n, result in enumerate(operation.results) if result in wanted]
    if len(kept) == len(operation.results):
        return operation
    regions: list[Region] = []
    for region in operation.regions:
        end = region.terminator
        end = replace(end, operands=tuple(end.operands[n] for n in kept))
        given = region.arguments
        if operation.name == "scf.for":
            given = (given[0], *(given[1 + n] for n in kept))
        regions.append(Region((*region.operations[:-1], end), given))
    operands = operation.operands
    if operation.name == "scf.for":
        operands = (*operands[:3], *(operands[3 + n] for n in kept))
    results = tuple(operation.results[n] for n in kept)
    return replace(operation, operands=operands, results=results, regions=tuple(regions))
