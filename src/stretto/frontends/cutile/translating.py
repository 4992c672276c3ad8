"""A function of Tile IR to a kernel: operation by operation, with structured control flow.

    loop {                                scf.while {
      …                                     …
      if %done { break %x }       ──►       %go, %v = scf.if %done { yield false, %x }
      rest                                            else { rest; yield true, %y }
      continue %y                           scf.condition(%go) %v
    }                                     }

What follows an `if` that may leave its block moves into the branch that does not leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stretto.frontends.cutile import arithmetic, memory, tiles
from stretto.frontends.cutile.parameters import user_parameters
from stretto.frontends.cutile.scope import Scope, kernel_type
from stretto.frontends.tileir import Block, Function, Operation
from stretto.frontends.tileir import Value as Source
from stretto.frontends.tileir import types as tileir
from stretto.frontends.tileir.attributes import Scalar as Numeral
from stretto.kernel import Attribute, Kernel, KernelError, Parameter, Region, Scalar, Type, Value

Tail = Callable[[Operation], Sequence[Value]]
"""What a block leaves behind, from the operation that ends it."""

LEAVING = ("break", "continue", "return")
REFUSED = {
    "alloca": "there is no memory of its own for a kernel here",
    "gdc_launch_dependents_tko": "a kernel is looked at on its own",
    "gdc_wait_tko": "a kernel is looked at on its own",
    "get_global": "hand it in as a parameter",
    "insert": "store the parts one by one",
    "memory_fence_alias_tko": "memory is taken to have one name",
    "mmaf_scaled": "there are no block-scaled products here",
    "pack": "there are no packed tiles here",
    "print_tko": "take it out",
    "unpack": "there are no packed tiles here",
}
"""What has no place in a kernel, and what to do about it."""


def translate(function: Function, file: str, names: Sequence[str] = ()) -> Kernel:
    """One kernel."""
    scope = Scope(file, function)
    numbers = user_parameters(function)
    for number, source in zip(numbers, function.body.arguments, strict=True):
        if not isinstance(source.type, tileir.Tile):
            place = scope.place(function.location, function.offset)
            raise KernelError(place, f"a parameter is a {source.type}")
        name = names[number] if number < len(names) else f"arg{number}"
        value = Value(kernel_type(source.type), name)
        scope.bind((source,), (value,))
        scope.parameters[value] = {}
    _Translation(scope).whole(function.body)
    body = scope.builder.finish()
    operations = (*scope.shared.values(), *body.operations)
    warps, target = _launch(function)
    return Kernel(
        name=function.name,
        parameters=tuple(_parameter(value, said) for value, said in scope.parameters.items()),
        body=Region(operations),
        location=scope.place(function.location, function.offset),
        warps=warps,
        target=target,
    )


def _parameter(value: Value, said: dict[str, Attribute]) -> Parameter:
    numbers = {name: number for name, number in said.items() if isinstance(number, int)}
    return Parameter(
        value,
        divisibility=numbers.get("divisibility", 1),
        lower=numbers.get("lower"),
        upper=numbers.get("upper"),
    )


def _launch(function: Function) -> tuple[int | None, str]:
    """Warps and target, where the hints of the kernel state them."""
    warps: int | None = None
    targets = [name for name in function.hints if name.startswith("sm_")]
    for said in function.hints.values():
        if isinstance(said, dict):
            stated = said.get("num_worker_warps_per_cta")
            if isinstance(stated, Numeral) and isinstance(stated.value, int):
                warps = stated.value
    return warps, targets[0] if len(targets) == 1 else ""


class _Translation:
    """Goes through the blocks of a function."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._leaves: dict[int, bool] = {}
        self._handlers = {
            **arithmetic.HANDLERS,
            **memory.HANDLERS,
            **tiles.HANDLERS,
            "for": self._for,
            "if": self._if,
            "loop": self._loop,
            "reduce": self._reduce,
            "scan": self._reduce,
        }

    def whole(self, body: Block) -> None:
        """The body of the kernel."""

        def end(last: Operation) -> Sequence[Value]:
            if last.name != "return" or last.values:
                raise self._scope.fail(last, f"the kernel ends in `{last.name}`")
            return ()

        self._sequence(body.operations, end)
        self._scope.builder.add("tile.return")

    def _sequence(self, operations: Sequence[Operation], tail: Tail) -> Sequence[Value]:
        """Operations up to the one that ends them, or up to one that may leave."""
        scope = self._scope
        for index, operation in enumerate(operations):
            scope.at(operation)
            if operation.name in ("yield", *LEAVING):
                return tail(operation)
            if operation.name == "if" and self._may_leave(operation):
                return self._leaving(operation, operations[index + 1 :], tail)
            handler = self._handlers.get(operation.name)
            if handler is None:
                raise scope.refuse(operation, REFUSED.get(operation.name, "it is not known here"))
            handler(scope, operation)
        raise AssertionError("the reader lets no block end without a terminator")

    def _may_leave(self, operation: Operation) -> bool:
        """Whether some path out of an `if` does not end where the `if` ends."""
        found = self._leaves.get(id(operation))
        if found is None:
            found = any(
                inner.name in LEAVING or (inner.name == "if" and self._may_leave(inner))
                for block in operation.blocks
                for inner in block.operations
            )
            self._leaves[id(operation)] = found
        return found

    def _leaving(
        self, operation: Operation, rest: Sequence[Operation], tail: Tail
    ) -> Sequence[Value]:
        """An `if` with what follows it inside; it makes what the block leaves behind."""
        scope = self._scope
        place = scope.builder.location

        def on(last: Operation) -> Sequence[Value]:
            if last.name != "yield":
                return tail(last)
            scope.bind(operation.results, self._handed(last, operation.results))
            return self._sequence(rest, tail)

        condition = scope.value(operation, "condition")
        regions: list[Region] = []
        types: list[tuple[Type, ...]] = []
        for block in operation.blocks:
            with scope.builder.region() as opened:
                left = self._sequence(block.operations, on)
                scope.builder.add("scf.yield", left)
            types.append(tuple(value.type for value in left))
            regions.append(opened.region)
        scope.builder.location = place
        return scope.builder.add("scf.if", (condition,), types[0], regions=regions).results

    def _handed(self, last: Operation, wanted: Sequence[Source]) -> tuple[Value, ...]:
        """What the end of a block hands on, of the types that are wanted."""
        scope = self._scope
        values = scope.numbers(last, last.values)
        types = scope.types(last, wanted)
        if tuple(value.type for value in values) != types or len(last.values) != len(wanted):
            told = ", ".join(map(str, types)) or "nothing"
            raise scope.fail(last, f"`{last.name}` hands on other values than {told}")
        return values

    def _if(self, scope: Scope, operation: Operation) -> None:
        """Both ways end where it ends."""
        condition = scope.value(operation, "condition")
        place = scope.builder.location
        regions: list[Region] = []
        for block in operation.blocks:
            with scope.builder.region() as opened:
                made = self._sequence(
                    block.operations, lambda last: self._handed(last, operation.results)
                )
                scope.builder.add("scf.yield", made)
            regions.append(opened.region)
        scope.builder.location = place
        types = scope.types(operation, operation.results)
        done = scope.builder.add("scf.if", (condition,), types, regions=regions)
        scope.bind(operation.results, done.results)

    def _arguments(self, sources: Sequence[Source], operation: Operation) -> tuple[Value, ...]:
        values = tuple(Value(type) for type in self._scope.types(operation, sources))
        self._scope.bind(sources, values)
        inside = self._scope.builder.depth + 1
        self._scope.depths.update(dict.fromkeys(values, inside))
        return values

    def _for(self, scope: Scope, operation: Operation) -> None:
        """A loop that counts."""
        (block,) = operation.blocks
        bounds = [scope.value(operation, n) for n in ("lower_bound", "upper_bound", "step")]
        given = operation.operands["init_values"]
        self._carried(scope, operation, block.arguments[1:], given, operation.results)
        if not block.arguments:
            raise scope.fail(operation, "a loop without an index")

        def end(last: Operation) -> Sequence[Value]:
            if last.name != "continue":
                raise scope.fail(
                    last, f"`{last.name}` in a loop that counts", "end it in another way"
                )
            return self._handed(last, operation.results)

        place = scope.builder.location
        arguments = self._arguments(block.arguments, operation)
        with scope.builder.region(arguments) as body:
            scope.builder.add("scf.yield", self._sequence(block.operations, end))
        scope.builder.location = place
        said: dict[str, Attribute] = {}
        if operation.attributes.get("unsigned_cmp"):
            said["unsigned"] = True
        operands = (*bounds, *scope.numbers(operation, given))
        made = scope.types(operation, operation.results)
        done = scope.builder.add("scf.for", operands, made, said, (body.region,))
        scope.bind(operation.results, done.results)

    def _carried(self, scope: Scope, operation: Operation, *sides: Sequence[Source]) -> None:
        """Initial values, arguments and results of a loop have the same types."""
        types = [[source.type for source in side] for side in sides]
        if any(side != types[0] for side in types):
            raise scope.fail(operation, f"the values that `{operation.name}` carries change type")

    def _loop(self, scope: Scope, operation: Operation) -> None:
        """A loop that goes on until it is left."""
        (block,) = operation.blocks
        given = operation.operands["init_values"]
        self._carried(scope, operation, block.arguments, given, operation.results)

        def end(last: Operation) -> Sequence[Value]:
            if last.name not in ("break", "continue"):
                raise scope.fail(last, f"`{last.name}` inside of a loop", "leave the loop first")
            handed = self._handed(last, operation.results)
            return scope.builder.constant(last.name == "continue", Scalar("i1")), *handed

        place = scope.builder.location
        arguments = self._arguments(block.arguments, operation)
        with scope.builder.region(arguments) as before:
            scope.builder.add("scf.condition", self._sequence(block.operations, end))
        scope.builder.location = place
        again = tuple(Value(value.type) for value in arguments)
        with scope.builder.region(again) as after:
            scope.builder.add("scf.yield", again)
        operands = scope.numbers(operation, given)
        types = scope.types(operation, operation.results)
        regions = (before.region, after.region)
        done = scope.builder.add("scf.while", operands, types, regions=regions)
        scope.bind(operation.results, done.results)

    def _reduce(self, scope: Scope, operation: Operation) -> None:
        """A combiner that takes what is so far, then elements; Tile IR has pairs the other way."""
        (block,) = operation.blocks
        values = scope.numbers(operation, operation.values)
        types = scope.types(operation, operation.results)
        dim = operation.attributes["dim"]
        assert isinstance(dim, int)
        scans = operation.name == "scan"
        fresh, sofar = block.arguments[0::2], block.arguments[1::2]
        place = scope.builder.location
        arguments = self._arguments((*sofar, *fresh), operation)

        def end(last: Operation) -> Sequence[Value]:
            if last.name != "yield":
                raise scope.fail(last, f"`{last.name}` in a combiner")
            return self._handed(last, sofar)

        with scope.builder.region(arguments) as combiner:
            scope.builder.add("tile.yield", self._sequence(block.operations, end))
        scope.builder.location = place
        said: dict[str, Attribute] = {"axis": dim}
        if scans and operation.attributes["reverse"]:
            said["reverse"] = True
        name = f"tile.{operation.name}"
        done = scope.builder.add(name, values, types, said, (combiner.region,))
        scope.bind(operation.results, done.results)
