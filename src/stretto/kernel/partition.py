"""Splits a kernel between replicas of the agent that computes: each takes a part of the rows.

    s = dot(q, k)      128 x 64        s_0 = dot(q_0, k)    64 x 64      rows   0 to  63, compute
                                       s_1 = dot(q_1, k)    64 x 64      rows  64 to 127, compute.1

Rows are the first dimension of every product. From there the split goes through the kernel: along
elementwise operations, reductions over other dimensions, views, addresses and masks, to the loads
and stores. What has no rows (a tile that all multiply with, a number) stays one; what every replica
needs in its own registers is made by each. A view goes with the tiles that are loaded and stored
through it: by tiles of a part beside whole ones, through branches and loops that hand it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from stretto.kernel.building import Builder
from stretto.kernel.checking import check_kernel
from stretto.kernel.errors import KernelError
from stretto.kernel.tree import Attribute, Kernel, Location, Operation, Parameter, Region, Value
from stretto.kernel.types import Tile, Type, View

ONE_CONSUMER = "--consumers 1"
"""What helps where a kernel cannot be split."""
_ALIKE = ("arith.", "math.", "libdevice.")
_ALIKE_TILES = frozenset(
    f"tile.{name}"
    for name in (
        "hint", "offset", "load", "store", "atomic_rmw", "atomic_cas", "pointer_to_int",
        "pointer_cast", "int_to_pointer", "inline_asm",
    )
)  # fmt: skip
"""Element by element: all tiles are split alike."""
_ONCE = frozenset(("tile.store", "tile.view_store", "tile.atomic_rmw", "tile.atomic_cas"))
"""What is done once, by the first replica, where it has no rows."""
_CHEAP = frozenset(("arith.constant", "tile.range"))
_REFUSED = frozenset(
    ("tile.join", "tile.split", "tile.cat", "tile.extract", "tile.gather", "tile.histogram",
     "tile.print", "tile.view_gather", "tile.view_scatter", "tile.view_reduce", "tile.scan")
)  # fmt: skip


def partition(kernel: Kernel, agents: Sequence[str]) -> Kernel:
    """The kernel with its rows split between agents; KernelError where they cannot be."""
    if len(agents) < 2:
        return kernel
    kernel = _each_its_own(kernel)
    axes = SplitAxes(kernel)
    axes.settle()
    made = ReplicaWriter(kernel, axes, agents).kernel()
    try:
        check_kernel(made)
    except KernelError as error:
        raise _refused(error.location, f"{error.message} there") from error
    return made


def _refused(location: Location, why: str) -> KernelError:
    told = f"the kernel cannot be split between replicas: {why}"
    return KernelError(location, told, f"ask for one replica: {ONE_CONSUMER}")


def _each_its_own(kernel: Kernel) -> Kernel:
    """Constants and ranges once a reader: rows and columns may begin as the same numbers."""
    cheap = {
        op.result: op
        for op in kernel.walk()
        if op.name in _CHEAP and isinstance(op.result.type, Tile)
    }

    def copied(region: Region) -> Region:
        found: list[Operation] = []
        for op in region.operations:
            operands = list(op.operands)
            for i, value in enumerate(operands):
                made = cheap.get(value)
                if made is not None:
                    fresh = replace(made, results=(Value(value.type, value.name),))
                    found.append(fresh)
                    operands[i] = fresh.result
            regions = tuple(copied(inner) for inner in op.regions)
            if op.name not in _CHEAP or op.result not in cheap:
                found.append(replace(op, operands=tuple(operands), regions=regions))
        return Region(tuple(found), region.arguments)

    return replace(kernel, body=copied(kernel.body))


# Which dimension of each tile is split ---------------------------------------------------------


@dataclass
class SplitAxes:
    """Which dimension of each tile and view is split."""

    kernel: Kernel
    of: dict[Value, int] = field(default_factory=dict[Value, int])
    """The dimension of a tile that is split; all others are whole."""
    views: dict[Value, int] = field(default_factory=dict[Value, int])
    """Likewise of a view of a tensor."""

    def settle(self) -> None:
        """Go over the kernel until nothing new is found out."""
        dots = [op for op in self.kernel.walk() if op.name == "tile.dot"]
        if not dots:
            hint = "only a kernel with a product has rows to split"
            raise KernelError(self.kernel.location, "it cannot be split between replicas", hint)
        operations = list(self.kernel.walk())
        while True:
            before = len(self.of), len(self.views)
            for operation in operations:
                self._operation(operation)
            if (len(self.of), len(self.views)) == before:
                break
        for dot in dots:
            if dot.operands[1] in self.of:
                raise self._refuse(dot, "its right factor would have to be split as well")
        for operation in operations:
            both = (*operation.operands, *operation.results)
            if operation.name in _REFUSED and any(v in self.of for v in both):
                raise self._refuse(operation, f"`{operation.name}` has no rows of its own")

    def _refuse(self, operation: Operation, why: str) -> KernelError:
        return _refused(operation.location, why)

    def _put(self, operation: Operation, value: Value, axis: int) -> None:
        if not isinstance(value.type, Tile) or value.type.shape[axis] == 1:
            return
        if self.of.setdefault(value, axis) != axis:
            raise self._refuse(operation, f"`{value.name}` would be split two ways")

    def _alike(self, operation: Operation, values: Sequence[Value]) -> None:
        known = {self.of[v] for v in values if v in self.of}
        for axis in known:
            for value in values:
                self._put(operation, value, axis)
        for axis in {self.views[v] for v in values if v in self.views}:
            for value in values:
                self._view(operation, value, axis)

    def _mapped(
        self,
        operation: Operation,
        there: Callable[[int], int | None],
        back: Callable[[int], int | None],
    ) -> None:
        """A source and a result whose dimensions go by different numbers."""
        for source in operation.operands[:1]:
            for result in operation.results:
                if source in self.of:
                    axis = there(self.of[source])
                    if axis is None:
                        raise self._refuse(operation, f"`{operation.name}` goes across the rows")
                    self._put(operation, result, axis)
                if result in self.of:
                    axis = back(self.of[result])
                    if axis is not None:
                        self._put(operation, source, axis)

    def _operation(self, operation: Operation) -> None:  # noqa: PLR0912 - one case a kind
        name = operation.name
        both = (*operation.operands, *operation.results)
        match name:
            case "tile.dot":
                a, _, total = operation.operands
                for value in (a, total, operation.result):
                    self._put(operation, value, 0)
            case "tile.reduce":
                out = operation.integer("axis")
                self._alike(operation, operation.operands)
                self._alike(operation, operation.results)
                self._mapped(
                    operation,
                    lambda axis: None if axis == out else axis - (out < axis),
                    lambda axis: axis + (out <= axis),
                )
            case "tile.expand_dims":
                new = operation.integer("axis")
                self._mapped(
                    operation,
                    lambda axis: axis + (new <= axis),
                    lambda axis: None if axis == new else axis - (new < axis),
                )
            case "tile.broadcast":
                self._mapped(operation, lambda axis: axis, lambda axis: axis)
            case "tile.transpose":
                order = operation.integers("order")
                self._mapped(operation, order.index, lambda axis: order[axis])
            case "tile.reshape":
                source, result = _shape(operation.operands[0]), _shape(operation.result)
                self._mapped(operation, _same(source, result), _same(result, source))
            case "tile.view_load":
                self._through(operation, operation.results[0])
            case "tile.view_store":
                self._through(operation, operation.operands[1])
            case "scf.for":
                (body,) = operation.regions
                handed = zip(
                    operation.operands[3:],
                    body.arguments[1:],
                    body.terminator.operands,
                    operation.results,
                    strict=True,
                )
                for values in handed:
                    self._alike(operation, values)
            case "scf.while":
                before, after = operation.regions
                handed = before.terminator.operands[1:], after.arguments, operation.results
                begun = operation.operands, before.arguments, after.terminator.operands
                for values in (*zip(*begun, strict=True), *zip(*handed, strict=True)):
                    self._alike(operation, values)
            case "scf.if":
                ends = [region.terminator.operands for region in operation.regions]
                for values in zip(*ends, operation.results, strict=True):
                    self._alike(operation, values)
            case _ if name.startswith(_ALIKE) or name in _ALIKE_TILES:
                self._alike(operation, [v for v in both if isinstance(v.type, Tile)])
            case _:
                pass

    def _through(self, operation: Operation, tile: Value) -> None:
        """A load or a store: a tile may lack leading dimensions of its view, which are 1."""
        if tile in self.of:
            view = operation.operands[0]
            self._view(operation, view, self.of[tile] + _leading(view, tile))

    def _view(self, operation: Operation, view: Value, axis: int) -> None:
        if self.views.setdefault(view, axis) != axis:
            raise self._refuse(operation, f"`{view.name}` would be split two ways")


def _shape(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, Tile) else ()


def _leading(view: Value, tile: Value) -> int:
    """How many dimensions a view has before those of a tile."""
    assert isinstance(view.type, View)
    return len(view.type.tile) - len(_shape(tile))


def _same(source: tuple[int, ...], result: tuple[int, ...]) -> Callable[[int], int | None]:
    """The dimension that stays what it is in another shape."""

    def there(axis: int) -> int | None:
        before, size = prod(source[:axis]), source[axis]
        return next(
            (i for i, n in enumerate(result) if n == size and prod(result[:i]) == before), None
        )

    return there


# The kernel anew ---------------------------------------------------------------------------


class ReplicaWriter:
    """Writes a kernel anew, each operation once for all replicas or once for each."""

    def __init__(self, kernel: Kernel, axes: SplitAxes, agents: Sequence[str]) -> None:
        self._kernel = kernel
        self._axes = axes
        self._agents = agents
        self._out = Builder(kernel.location)
        self._new: list[dict[Value, Value]] = [{} for _ in agents]
        """By replica, what a value has become."""
        self._parts: dict[Value, Value] = {}
        """A view of a tensor by parts of its tiles."""

    def kernel(self) -> Kernel:
        """The whole kernel."""
        parameters = tuple(self._parameter(p) for p in self._kernel.parameters)
        for operation in self._kernel.body.operations:
            self._operation(operation)
        return replace(self._kernel, parameters=parameters, body=self._out.finish())

    def _parameter(self, parameter: Parameter) -> Parameter:
        old = parameter.value
        made = Value(old.type, old.name)
        self._everywhere(old, made)
        if old in self._axes.views:
            made = Value(self._part_of(old), old.name)
            self._parts[old] = made
            self._everywhere(old, made)
        return replace(parameter, value=made)

    def _everywhere(self, old: Value, made: Value) -> None:
        for new in self._new:
            new[old] = made

    def _part_of(self, view: Value) -> View:
        type = view.type
        assert isinstance(type, View)
        axis = self._axes.views[view]
        return replace(type, tile=self._divided(type.tile, axis))

    def _type(self, value: Value) -> Type:
        axis = self._axes.of.get(value)
        if axis is None or not isinstance(value.type, Tile):
            return value.type
        return Tile(self._divided(value.type.shape, axis), value.type.element)

    def _divided(self, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
        """A part of a shape, divided along an axis."""
        part = shape[axis] // len(self._agents)
        if part * len(self._agents) != shape[axis]:
            told = f"{shape[axis]} rows do not go into {len(self._agents)} parts"
            raise _refused(self._out.location, told)
        return (*shape[:axis], part, *shape[axis + 1 :])

    # Operations ------------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> None:
        self._out.location = operation.location
        match operation.name:
            case "scf.for":
                self._for(operation)
            case "scf.if":
                self._if(operation)
            case "scf.while":
                self._while(operation)
            case "tile.view":
                self._view(operation)
            case "tile.view_load":
                if operation.results[0] in self._axes.of:
                    self._load(operation)
                else:
                    self._shared(operation)
            case _ if not self._has_tiles(operation):
                self._shared(operation)
            case _:
                self._each(operation)

    def _has_tiles(self, operation: Operation) -> bool:
        both = (*operation.operands, *operation.results)
        return any(isinstance(value.type, Tile) for value in both)

    def _shared(self, operation: Operation) -> None:
        """Once, for all."""
        made = self._copy(operation, 0, {})
        for old, new in zip(operation.results, made.results, strict=True):
            self._everywhere(old, new)

    def _each(self, operation: Operation) -> None:
        """Once a replica; what has an effect and no rows, once."""
        split = any(v in self._axes.of for v in (*operation.operands, *operation.results))
        once = operation.name in _ONCE and not split
        for number, agent in enumerate(self._agents[:1] if once else self._agents):
            said: dict[str, Attribute] = {"agent": agent}
            if operation.name == "tile.range" and operation.result in self._axes.of:
                part = _shape(operation.result)[0] // len(self._agents)
                said["start"] = operation.integer("start") + number * part
                said["end"] = operation.integer("start") + (number + 1) * part
            value = operation.attributes.get("value")
            if isinstance(value, tuple) and operation.result in self._axes.of:
                raise KernelError(operation.location, "a constant of many numbers is not split")
            made = self._copy(operation, number, said)
            for old, new in zip(operation.results, made.results, strict=True):
                self._new[number][old] = new
                if once:
                    self._everywhere(old, new)

    def _copy(self, operation: Operation, number: int, said: Mapping[str, Attribute]) -> Operation:
        new = self._new[number]
        operands = [new[value] for value in operation.operands]
        if operation.name == "tile.view_store":
            operands = self._moved(operation, 2, number, operation.operands[1])
        names = [f"{v.name}_{number}" if said and v.name else v.name for v in operation.results]
        return self._out.add(
            operation.name,
            operands,
            [self._type(value) for value in operation.results],
            {**operation.attributes, **said},
            operation.regions,
            names,
        )

    def _moved(self, operation: Operation, first: int, number: int, tile: Value) -> list[Value]:
        """The operands of a load or store of one part: its coordinate is further on."""
        new = self._new[number]
        operands = [new[value] for value in operation.operands]
        axis = self._axes.of.get(tile)
        if axis is None:
            return operands
        view = operation.operands[0]
        if view not in self._parts:
            raise _refused(operation.location, f"`{view.name}` has no parts where it is made")
        operands[0] = self._parts[view]
        if number:
            place = first + axis + _leading(view, tile)
            at = operands[place]
            type = at.type
            assert not isinstance(type, Tile | View)
            size = _shape(tile)[axis] // len(self._agents)
            step = self._out.op("arith.constant", (), type, "", value=size * number)
            operands[place] = self._out.op("arith.addi", (at, step), type, at.name)
        return operands

    def _load(self, operation: Operation) -> None:
        tile = operation.results[0]
        for number in range(len(self._agents)):
            made = self._out.add(
                operation.name,
                self._moved(operation, 1, number, tile),
                [self._type(value) for value in operation.results],
                operation.attributes,
                (),
                [f"{v.name}_{number}" if v.name else "" for v in operation.results],
            )
            for old, new in zip(operation.results, made.results, strict=True):
                self._new[number][old] = new

    def _view(self, operation: Operation) -> None:
        self._shared(operation)
        view = operation.result
        if view in self._axes.views:
            made = self._out.add(
                operation.name,
                [self._new[0][value] for value in operation.operands],
                (self._part_of(view),),
                operation.attributes,
                (),
                (view.name,),
            )
            self._parts[view] = made.result

    # Control flow ------------------------------------------------------------------------------

    def _handed(self, values: Sequence[Value], said: Sequence[Value]) -> list[Value]:
        """What is handed on: tiles once a replica, views by their parts as well, all else once."""
        found: list[Value] = []
        for value, like in zip(values, said, strict=True):
            numbers = range(len(self._agents)) if isinstance(like.type, Tile) else range(1)
            found += [self._new[number][value] for number in numbers]
            if like in self._axes.views:
                found.append(self._parts[value])
        return found

    def _receive(self, old: Sequence[Value]) -> list[Value]:
        """What takes it: fresh values."""
        found: list[Value] = []
        for value in old:
            if not isinstance(value.type, Tile):
                made = Value(value.type, value.name)
                self._everywhere(value, made)
                found.append(made)
                if value in self._axes.views:
                    self._parts[value] = Value(self._part_of(value), value.name)
                    found.append(self._parts[value])
                continue
            for number, new in enumerate(self._new):
                name = f"{value.name}_{number}" if value.name else ""
                new[value] = Value(self._type(value), name)
                found.append(new[value])
        return found

    def _region(self, region: Region, arguments: Sequence[Value], like: Sequence[Value]) -> Region:
        with self._out.region(arguments) as opened:
            for operation in region.operations[:-1]:
                self._operation(operation)
            self._out.location = region.terminator.location
            self._out.add(region.terminator.name, self._handed(region.terminator.operands, like))
        return opened.region

    def _for(self, operation: Operation) -> None:
        (body,) = operation.regions
        bounds = [self._new[0][value] for value in operation.operands[:3]]
        begun = self._handed(operation.operands[3:], operation.results)
        arguments = self._receive(body.arguments)
        region = self._region(body, arguments, operation.results)
        self._finish(operation, (*bounds, *begun), (region,))

    def _if(self, operation: Operation) -> None:
        condition = self._new[0][operation.operands[0]]
        regions = [self._region(region, (), operation.results) for region in operation.regions]
        self._finish(operation, (condition,), regions)

    def _while(self, operation: Operation) -> None:
        before, after = operation.regions
        begun = self._handed(operation.operands, before.arguments)
        asked = (before.terminator.operands[0], *operation.results)
        regions = [
            self._region(before, self._receive(before.arguments), asked),
            self._region(after, self._receive(after.arguments), before.arguments),
        ]
        self._finish(operation, begun, regions)

    def _finish(
        self, operation: Operation, operands: Sequence[Value], regions: Sequence[Region]
    ) -> None:
        self._out.location = operation.location
        results = tuple(self._receive(operation.results))
        made = Operation(
            operation.name,
            tuple(operands),
            results,
            operation.attributes,
            tuple(regions),
            operation.location,
        )
        self._out.append(made)
