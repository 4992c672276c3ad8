"""From Triton's operations to those of a kernel.

tt.descriptor_load %d[%i, %j]     tile.view_load %d, %i, %j
tt.addptr %p, %x                  tile.offset %p, %x
cf.cond_br %c, ^return, ^rest     scf.if (not %c) { rest }

What has no meaning for a schedule, or none that we know, is refused at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stretto.frontends.triton.attributes import word_of
from stretto.frontends.triton.parsing import (
    ModuleParser,
    RawBlock,
    RawOperation,
    unknown_operation,
)
from stretto.kernel import (
    Attribute,
    Kernel,
    KernelError,
    Location,
    Parameter,
    Pointer,
    Region,
    Scalar,
    Tile,
    Type,
    Value,
)
from stretto.kernel.building import Builder
from stretto.kernel.scaled_products import Factor, scaled_product, unfit
from stretto.kernel.types import element_of, like, shape_of
from stretto.ops.atomics import ATOMICS
from stretto.ops.operations import BY_SYMBOL, from_ttir
from stretto.ops.predicates import PREDICATES

_RENAMED = {
    **from_ttir(),
    "arith.index_castui": "arith.index_cast",
    "tt.unsplat": "tile.reshape",
    "ttg.barrier": "tile.barrier",
}
"""Those that take and make the same things, in the same order."""

_ATOMIC = tuple(ATOMICS)
"""Kinds of read-modify-write by their numbers, which begin at 1."""
_SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("gpu", "cta", "sys")
_REDUCED = ("none", "add", "min", "max", "inc", "dec", "and", "or", "xor")
_PADDING = {1: "zero", 2: "nan", "pad_zero": "zero", "pad_nan": "nan"}
_AXES = {"x": 0, "y": 1, "z": 2}
_HINTS = ("divisibility", "contiguity", "constancy")
_LOOP = ("tt.num_stages", "tt.warp_specialize", "tt.flatten", "tt.loop_unroll_factor")
IEEE = "ieee"
"""How factors of 32 bits are multiplied where nothing is said of it: with all of their bits."""
_TAILS = 64
"""How often blocks after a branch may be written out."""

_SCALED = {0: "e4m3", 1: "e5m2", 4: "e2m1", 5: "bf16", 6: "fp16"}
"""Formats of block-scaled products by their numbers; others have no type here."""

Handler = Callable[["FunctionTranslator", RawOperation], None]


def _ordered(raw: RawOperation) -> dict[str, Attribute]:
    """What an atomic operation says of the memory around it, and who is to see that."""
    found: dict[str, Attribute] = {}
    for name, ours, words in (("sem", "semantics", _SEMANTICS), ("scope", "scope", _SCOPES)):
        said = raw.attributes.get(name)
        if isinstance(said, int) and 0 < said <= len(words):
            said = words[said - 1]
        if isinstance(said, str) and said in words:
            found[ours] = said
    return found


_DEPENDENT_LAUNCH = "griddepcontrol."
"""How the assembly begins that waits for the launch before this one, or lets the next one begin."""


class FunctionTranslator:
    """Translates one function."""

    def __init__(self, parser: ModuleParser, function: RawOperation) -> None:
        self._parser = parser
        self._function = function
        self._values: dict[str, Value] = {}
        self._builder = Builder()
        self._blocks: dict[str, RawBlock] = {}
        self._tails = 0

    def kernel(self) -> Kernel:
        """The kernel that the function is."""
        function = self._function
        self._builder.location = place = self._place(function)
        blocks = function.regions[0]
        self._blocks = {block.label: block for block in blocks}
        entry = blocks[0]
        promised = entry.promised or self._promises(len(entry.arguments))
        parameters: list[Parameter] = []
        for (name, type, at), said in zip(entry.arguments, promised, strict=True):
            hinted = at.name if at is not None and at.name else name[1:]
            value = self._define(name, type, hinted)
            divisor = said.get("tt.divisibility", 1)
            parameters.append(Parameter(value, divisor if isinstance(divisor, int) else 1))
        self._tail(entry)
        body = self._builder.finish()
        name = word_of(function.attributes.get("sym_name"))
        return Kernel(name, tuple(parameters), body, place)

    def _promises(self, count: int) -> list[dict[str, Attribute]]:
        """What is said of the parameters; the generic form has it on the function."""
        said = self._function.attributes.get("arg_attrs")
        if not isinstance(said, tuple) or len(said) != count:
            return [{} for _ in range(count)]
        return [_dictionary(item) for item in said]

    # Blocks -------------------------------------------------------------------------------

    def _tail(self, block: RawBlock) -> None:
        """A block and all that follows it, to the end of the kernel."""
        self._tails += 1
        if self._tails > _TAILS:
            raise self._refuse(self._function, "too many branches", "write it with fewer returns")
        *body, last = block.operations or [RawOperation("tt.return", self._function.offset)]
        for operation in body:
            self._operation(operation)
        self._builder.location = self._place(last)
        if last.name == "tt.return":
            if last.operands:
                raise self._refuse(last, "a kernel that returns values")
            self._builder.add("tile.return")
        elif last.name == "cf.br":
            self._tail(self._entered(last, *last.successors[0]))
        elif last.name == "cf.cond_br":
            self._branch(last)
        else:
            raise self._refuse(last, f"`{last.name}` ends a block", "a block ends in a branch")

    def _entered(self, branch: RawOperation, label: str, passed: list[str]) -> RawBlock:
        block = self._blocks.get(label)
        if block is None:
            raise self._refuse(branch, f"no block `{label}`")
        if len(passed) != len(block.arguments):
            raise self._refuse(branch, f"{len(passed)} values for {len(block.arguments)} arguments")
        for (name, _, _), value in zip(
            block.arguments, [self._value(branch, p) for p in passed], strict=True
        ):
            self._values[name] = value
        return block

    def _branch(self, last: RawOperation) -> None:
        """Either the one or the other, each to the end: nothing comes after."""
        condition = self._value(last, last.operands[0])
        first, second = last.successors
        if self._only_returns(first):
            truth = self._builder.constant(True, Scalar("i1"))
            condition = self._builder.op("arith.xori", (condition, truth), Scalar("i1"))
            first, second = second, first
        regions = [self._inside(last, side) for side in (first, second)]
        self._builder.location = self._place(last)
        self._builder.add("scf.if", (condition,), (), {}, regions)
        self._builder.add("tile.return")

    def _only_returns(self, successor: tuple[str, list[str]]) -> bool:
        block = self._blocks.get(successor[0])
        return block is not None and [op.name for op in block.operations] == ["tt.return"]

    def _inside(self, last: RawOperation, side: tuple[str, list[str]]) -> Region:
        before = dict(self._values)
        with self._builder.region() as opened:
            self._tail(self._entered(last, *side))
        self._values = before
        # The end of a branch is not the end of the kernel any more.
        *body, end = opened.operations
        with self._builder.region() as yielding:
            self._builder.location = end.location
            self._builder.add("scf.yield")
        return Region((*body, *yielding.operations))

    def _region(self, blocks: Sequence[RawBlock], ends: str, owner: RawOperation) -> Region:
        """A region of one block."""
        if len(blocks) != 1:
            raise self._refuse(owner, f"a region of {len(blocks)} blocks in `{owner.name}`")
        (block,) = blocks
        before = dict(self._values)
        arguments = [
            self._define(name, type, at.name if at is not None and at.name else _hint(name))
            for name, type, at in block.arguments
        ]
        with self._builder.region(arguments) as opened:
            for operation in block.operations:
                self._operation(operation)
            if not opened.operations or opened.operations[-1].name != ends:
                self._builder.location = self._place(owner)
                if ends != "scf.yield":
                    raise self._refuse(owner, f"a region of `{owner.name}` that does not end")
                self._builder.add("scf.yield")
        self._values = before
        return opened.region

    # Operations ---------------------------------------------------------------------------

    def _operation(self, raw: RawOperation) -> None:
        self._builder.location = self._place(raw)
        handler = _HANDLERS.get(raw.name)
        if handler is not None:
            handler(self, raw)
        elif raw.name in _RENAMED:
            self._plain(raw, _RENAMED[raw.name])
        else:
            raise unknown_operation(self._place(raw), raw.name)
        self._hints(raw)

    def _plain(self, raw: RawOperation, name: str, **attributes: Attribute) -> None:
        self._write(raw, name, self._operands(raw), raw.types, attributes)

    def _write(
        self,
        raw: RawOperation,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attributes: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> None:
        if len(types) == 1 and len(raw.results) > 1:
            types = [types[0]] * len(raw.results)
        if len(types) < len(raw.results):
            told = f"{len(raw.results)} results of {len(types)} types"
            raise self._refuse(raw, f"`{raw.name}` has {told}")
        names = [self._name(raw, result) for result in raw.results]
        names += [""] * (len(types) - len(names))
        made = self._builder.add(name, operands, types, attributes or {}, regions, names)
        for result, value in zip(raw.results, made.results, strict=False):
            self._values[result] = value
        self._values |= {
            r.removesuffix("#0"): v for r, v in zip(raw.results, made.results, strict=False)
        }

    def _bind(self, raw: RawOperation, value: Value) -> None:
        for result in raw.results:
            self._values[result] = value

    def _hints(self, raw: RawOperation) -> None:
        """What tl.multiple_of and its like promise of a result."""
        promised: dict[str, Attribute] = {}
        for hint in _HINTS:
            said = raw.attributes.get(f"tt.{hint}")
            if isinstance(said, int):
                said = (said,)
            if isinstance(said, tuple):
                promised[hint] = said
        if promised and raw.results:
            value = self._values[raw.results[0]]
            self._bind(
                raw, self._builder.op("tile.hint", (value,), value.type, value.name, **promised)
            )

    # Values -------------------------------------------------------------------------------

    def _define(self, name: str, type: Type, hint: str) -> Value:
        value = Value(type, hint)
        self._values[name] = value
        return value

    def _name(self, raw: RawOperation, result: str) -> str:
        if raw.location is not None and raw.location.name:
            return raw.location.name
        return _hint(result)

    def _value(self, raw: RawOperation, name: str) -> Value:
        found = self._values.get(name)
        if found is None:
            raise self._refuse(raw, f"`{name}` is used and not known here")
        return found

    def _operands(self, raw: RawOperation) -> list[Value]:
        return [self._value(raw, name) for name in raw.operands]

    def _place(self, raw: RawOperation) -> Location:
        return raw.location or self._parser.place(raw.offset)

    def _refuse(self, raw: RawOperation, message: str, hint: str = "") -> KernelError:
        return KernelError(self._place(raw), message, hint)

    # One by one ---------------------------------------------------------------------------

    def constant(self, raw: RawOperation) -> None:
        """A number, or a tile of numbers."""
        type = raw.types[0] if raw.types else None
        value = raw.attributes.get("value")
        if not isinstance(type, Scalar | Tile) or isinstance(value, str) or value is None:
            raise self._refuse(raw, "a constant that is neither a number nor a tile of numbers")
        element = element_of(type)
        if isinstance(element, Scalar) and element.is_float and not isinstance(value, tuple):
            value = float(value) if isinstance(value, int) else value
        self._write(raw, "arith.constant", (), (type,), {"value": value})

    def poison(self, raw: RawOperation) -> None:
        """No value is promised: zero is as good as any."""
        type = raw.types[0]
        if not isinstance(element_of(type), Scalar):
            raise self._refuse(raw, f"an undefined {type}")
        self._write(raw, "arith.constant", (), (type,), {"value": 0})

    def compare(self, raw: RawOperation) -> None:
        """A comparison, whose predicate may be a number."""
        predicate = raw.attributes.get("predicate")
        words = tuple(PREDICATES[raw.name])
        if isinstance(predicate, int) and 0 <= predicate < len(words):
            predicate = words[predicate]
        if not isinstance(predicate, str) or predicate not in words:
            raise self._refuse(raw, f"`{predicate}` is no comparison", f"known: {', '.join(words)}")
        self._plain(raw, raw.name, predicate=predicate)

    def grid(self, raw: RawOperation) -> None:
        """Which block this is, and how many there are."""
        axis = raw.attributes.get("axis")
        axis = _AXES.get(axis) if isinstance(axis, str) else axis
        if not isinstance(axis, int) or not 0 <= axis <= 2:
            raise self._refuse(raw, "a grid has axes x, y and z")
        name = "tile.block_index" if raw.name == "tt.get_program_id" else "tile.block_count"
        self._plain(raw, name, axis=axis)

    def range(self, raw: RawOperation) -> None:
        """start, start + 1, ..."""
        start, end = raw.attributes.get("start"), raw.attributes.get("end")
        if not isinstance(start, int) or not isinstance(end, int):
            raise self._refuse(raw, "a range has a `start` and an `end`")
        self._plain(raw, "tile.range", start=start, end=end)

    def axis(self, raw: RawOperation) -> None:
        """What has an axis: expand_dims, gather."""
        axis = raw.attributes.get("axis")
        if not isinstance(axis, int):
            raise self._refuse(raw, f"`{raw.name}` has no axis")
        self._plain(raw, f"tile.{raw.name.split('.')[-1]}", axis=axis)

    def transpose(self, raw: RawOperation) -> None:
        """Dimensions in another order."""
        order = raw.attributes.get("order")
        self._plain(raw, "tile.transpose", order=order if isinstance(order, tuple) else ())

    def cat(self, raw: RawOperation) -> None:
        """One after the other; Triton does not promise in which order."""
        self._plain(raw, "tile.cat", axis=0)

    def convert(self, raw: RawOperation) -> None:
        """From one floating-point type to another: wider, narrower, or by way of f32."""
        (source,), target = self._operands(raw), raw.types[0]
        before, after = element_of(source.type), element_of(target)
        if not isinstance(before, Scalar) or not isinstance(after, Scalar):
            raise self._refuse(raw, f"a conversion from {source.type} to {target}")
        if before.bits == after.bits:
            source = self._builder.op("arith.extf", (source,), like(source.type, Scalar("f32")))
            before = Scalar("f32")
        name = "arith.extf" if before.bits < after.bits else "arith.truncf"
        self._write(raw, name, (source,), raw.types)

    def clamp(self, raw: RawOperation) -> None:
        """Between two bounds."""
        x, low, high = self._operands(raw)
        stops = raw.attributes.get("propagateNan") in ("all", 0xFFFF)
        greater, lesser = ("maximumf", "minimumf") if stops else ("maxnumf", "minnumf")
        raised = self._builder.op(f"arith.{greater}", (x, low), x.type)
        self._write(raw, f"arith.{lesser}", (raised, high), raw.types)

    def library(self, raw: RawOperation) -> None:
        """A function of libdevice, by its symbol."""
        symbol = raw.attributes.get("symbol")
        row = BY_SYMBOL.get(symbol) if isinstance(symbol, str) else None
        if row is None:
            hint = "functions of CUDA's libdevice are known; write it with tl.math or arithmetic"
            raise self._refuse(raw, f"`{symbol}` of a library, whose value is not known", hint)
        self._plain(raw, row.name)

    def assembly(self, raw: RawOperation) -> None:
        """Assembly that is a function of its operands, and nothing else.

        How a launch overlaps with the one before it is none of the kernel's values: a kernel that
        is launched without that waits by itself for the one before, and lets the next one begin at
        its own end.
        """
        pack = raw.attributes.get("packed_element", 1)
        said = {"asm": raw.attributes.get("asm"), "constraints": raw.attributes.get("constraints")}
        if str(said["asm"]).strip('"').lstrip().startswith(_DEPENDENT_LAUNCH):
            self._write(raw, "arith.constant", (), raw.types, {"value": 0})
            return
        if not raw.attributes.get("pure"):
            hint = "say is_pure=True if its results follow from its operands"
            raise self._refuse(raw, "assembly that does more than compute", hint)
        if not all(isinstance(text, str) for text in said.values()) or not raw.results:
            raise self._refuse(raw, "assembly without a text, constraints or results")
        made = {name: word_of(text) for name, text in said.items()}
        self._plain(raw, "tile.inline_asm", **made, pack=pack if isinstance(pack, int) else 1)

    def load(self, raw: RawOperation) -> None:
        """Through pointers, perhaps with a mask and with what is read elsewhere."""
        said: dict[str, Attribute] = {}
        if raw.attributes.get("isVolatile") is True:
            said["volatile"] = True
        self._write(raw, "tile.load", self._operands(raw), raw.types, said)

    def atomic(self, raw: RawOperation) -> None:
        """Read, modify, write."""
        kind = raw.attributes.get("atomic_rmw_op")
        if isinstance(kind, int) and 0 < kind <= len(_ATOMIC):
            kind = _ATOMIC[kind - 1]
        if kind not in _ATOMIC:
            raise self._refuse(raw, f"`{kind}` is no atomic operation")
        said = {"kind": kind, **_ordered(raw)}
        self._write(raw, "tile.atomic_rmw", self._operands(raw), raw.types, said)

    def exchange(self, raw: RawOperation) -> None:
        """Another value, where one is as expected."""
        self._write(raw, "tile.atomic_cas", self._operands(raw), raw.types, _ordered(raw))

    def view(self, raw: RawOperation) -> None:
        """A descriptor: an address, sizes and strides."""
        said = raw.attributes.get("padding", 1)
        padding = _PADDING.get(said if isinstance(said, int | str) else 1, "zero")
        self._plain(raw, "tile.view", padding=padding)

    def view_store(self, raw: RawOperation) -> None:
        """A tile through a descriptor: in the text, coordinates come first."""
        view, *rest = self._operands(raw)
        *coordinates, tile = rest
        if raw.attributes.get("operandSegmentSizes") is not None or not isinstance(tile.type, Tile):
            tile, *coordinates = rest  # the generic form has them as they are defined
        operands = (view, tile, *coordinates)
        if raw.name == "tt.descriptor_reduce":
            kind = raw.attributes.get("kind")
            kind = _REDUCED[kind] if isinstance(kind, int) and 0 < kind < len(_REDUCED) else kind
            self._write(raw, "tile.view_reduce", operands, (), {"kind": kind or "add"})
        elif raw.name == "tt.descriptor_scatter":
            self._write(raw, "tile.view_scatter", operands, ())
        else:
            self._write(raw, "tile.view_store", operands, ())

    def dot(self, raw: RawOperation) -> None:
        """A product."""
        precision = raw.attributes.get("inputPrecision", IEEE)  # what is left out is Triton's own
        said = {0: "tf32", 1: "tf32x3", 2: IEEE}
        word = said.get(precision, IEEE) if isinstance(precision, int) else precision
        few = raw.attributes.get("maxNumImpreciseAcc", 0)
        self._plain(raw, "tile.dot", precision=word, imprecise=few if isinstance(few, int) else 0)

    def scaled_dot(self, raw: RawOperation) -> None:
        """A product of blocks with scales, which come last or stand beside factors."""
        given = self._operands(raw)
        scales: list[Value | None] = [None, None]
        rest = given[3:]
        for side, group in enumerate(raw.segments[3:]):
            scales[side] = rest.pop(0) if group else None
        for side, name in enumerate(("left", "right")):
            named = raw.attributes.get(name)
            scales[side] = self._value(raw, named) if isinstance(named, str) else scales[side]
        factors: list[Factor] = []
        for side, (name, old) in enumerate((("lhs", "a_elem_type"), ("rhs", "b_elem_type"))):
            said = raw.attributes.get(name, raw.attributes.get(old))
            format = _SCALED.get(said, "") if isinstance(said, int) else str(said)
            along_k = raw.attributes.get(f"{name}_k_pack", True)
            packed = 1 - side if along_k else side
            factors.append(Factor(given[side], scales[side], format, packed, 1 - side))
        (left, right), total = factors, given[2]
        wrong = unfit(left, right, total)
        if wrong:
            raise self._refuse(raw, *wrong)
        name, nans = self._name(raw, raw.results[0]), not raw.attributes.get("fastMath", False)
        self._bind(raw, scaled_product(self._builder, left, right, total, name, nans=nans))

    def reduce(self, raw: RawOperation) -> None:
        """A reduction or a scan, with what combines two elements."""
        axis = raw.attributes.get("axis")
        if not isinstance(axis, int) or len(raw.regions) != 1:
            raise self._refuse(raw, f"`{raw.name}` has an axis and a region")
        place = self._builder.location
        body = self._region(raw.regions[0], "tile.yield", raw)
        self._builder.location = place
        attributes: dict[str, Attribute] = {"axis": axis}
        if raw.name == "tt.scan":
            attributes["reverse"] = raw.attributes.get("reverse", False)
        name = f"tile.{raw.name.split('.')[-1]}"
        self._write(raw, name, self._operands(raw), raw.types, attributes, (body,))

    def combined(self, raw: RawOperation) -> None:
        """The end of a reduction's region."""
        self._builder.add("tile.yield", self._operands(raw))

    def loop(self, raw: RawOperation) -> None:
        """scf.for."""
        if len(raw.regions) != 1 or len(raw.operands) < 3:
            raise self._refuse(raw, "a loop has bounds, a step and a body")
        operands = self._operands(raw)
        place = self._builder.location
        body = self._region(raw.regions[0], "scf.yield", raw)
        self._builder.location = place
        said = {
            name.split(".")[-1]: raw.attributes[name] for name in _LOOP if name in raw.attributes
        }
        self._write(raw, "scf.for", operands, raw.types, said, (body,))

    def choice(self, raw: RawOperation) -> None:
        """scf.if."""
        place = self._builder.location
        regions = [self._region(region, "scf.yield", raw) for region in raw.regions if region]
        self._builder.location = place
        if len(regions) == 1:
            with self._builder.region() as empty:
                self._builder.add("scf.yield")
            regions.append(empty.region)
        self._write(raw, "scf.if", self._operands(raw), raw.types, {}, regions)

    def repetition(self, raw: RawOperation) -> None:
        """scf.while."""
        if len(raw.regions) != 2:
            raise self._refuse(raw, "a while loop has two regions")
        place = self._builder.location
        before = self._region(raw.regions[0], "scf.condition", raw)
        after = self._region(raw.regions[1], "scf.yield", raw)
        self._builder.location = place
        self._write(raw, "scf.while", self._operands(raw), raw.types, {}, (before, after))

    def check(self, raw: RawOperation) -> None:
        """An assertion."""
        (condition,) = self._operands(raw)
        message = word_of(raw.attributes.get("message"))
        self._builder.add("tile.assert", (condition,), (), {"message": message})

    def show(self, raw: RawOperation) -> None:
        """A print."""
        self._plain(raw, "tile.print", prefix=word_of(raw.attributes.get("prefix")))

    def pointer_cast(self, raw: RawOperation) -> None:
        """The same bits as another type."""
        (source,) = self._operands(raw)
        if shape_of(source.type) != shape_of(raw.types[0]):
            raise self._refuse(raw, f"{source.type} as {raw.types[0]}")
        if source.type == raw.types[0]:
            self._bind(raw, source)
        else:
            pointer = isinstance(element_of(source.type), Pointer)
            self._plain(raw, "tile.pointer_cast" if pointer else "arith.bitcast")


def _dictionary(entries: Attribute) -> dict[str, Attribute]:
    pairs = entries if isinstance(entries, tuple) else ()
    return {
        pair[0]: pair[1]
        for pair in pairs
        if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
    }


def _hint(name: str) -> str:
    """A name worth keeping: not a number, without the number MLIR puts behind it."""
    bare = name[1:].split("#", maxsplit=1)[0]
    head, _, tail = bare.rpartition("_")
    bare = head if head and tail.isdigit() else bare
    return "" if bare.isdigit() else bare


_HANDLERS: dict[str, Handler] = {
    "arith.constant": FunctionTranslator.constant,
    "ub.poison": FunctionTranslator.poison,
    "arith.cmpi": FunctionTranslator.compare,
    "arith.cmpf": FunctionTranslator.compare,
    "tt.get_program_id": FunctionTranslator.grid,
    "tt.get_num_programs": FunctionTranslator.grid,
    "tt.make_range": FunctionTranslator.range,
    "tt.expand_dims": FunctionTranslator.axis,
    "tt.gather": FunctionTranslator.axis,
    "tt.trans": FunctionTranslator.transpose,
    "tt.cat": FunctionTranslator.cat,
    "tt.load": FunctionTranslator.load,
    "tt.fp_to_fp": FunctionTranslator.convert,
    "tt.clampf": FunctionTranslator.clamp,
    "tt.extern_elementwise": FunctionTranslator.library,
    "tt.elementwise_inline_asm": FunctionTranslator.assembly,
    "tt.atomic_cas": FunctionTranslator.exchange,
    "tt.atomic_rmw": FunctionTranslator.atomic,
    "tt.make_tensor_descriptor": FunctionTranslator.view,
    "tt.descriptor_store": FunctionTranslator.view_store,
    "tt.descriptor_reduce": FunctionTranslator.view_store,
    "tt.descriptor_scatter": FunctionTranslator.view_store,
    "tt.dot": FunctionTranslator.dot,
    "tt.dot_scaled": FunctionTranslator.scaled_dot,
    "tt.reduce": FunctionTranslator.reduce,
    "tt.scan": FunctionTranslator.reduce,
    "tt.reduce.return": FunctionTranslator.combined,
    "tt.scan.return": FunctionTranslator.combined,
    "scf.for": FunctionTranslator.loop,
    "scf.if": FunctionTranslator.choice,
    "scf.while": FunctionTranslator.repetition,
    "tt.assert": FunctionTranslator.check,
    "tt.print": FunctionTranslator.show,
    "tt.bitcast": FunctionTranslator.pointer_cast,
}
