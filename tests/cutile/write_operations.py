"""Run by the oracle's own Python: bytecode of every operation, and what was asked of its writer.

write_operations.py OUT SEEDS REPEATS  ──►  OUT/13.1-0.tileirbc, OUT/13.1-0.json, …

One pair a version and a seed; each operation stands in it so many times.

The arguments of each `encode_…Op` of the package are made up from their annotations: values,
types, enumerations, numbers, hints. The JSON tells them by the writer's own names.
"""

# The project's own environment does not have cuda-tile.
# pyright: basic, reportMissingImports=false

import enum
import inspect
import json
import random
import re
import sys
import typing
from pathlib import Path

from cuda.tile._bytecode import attribute as at
from cuda.tile._bytecode import encodings
from cuda.tile._bytecode.code_builder import Value
from cuda.tile._bytecode.type import PaddingValue, PtrAttr, SimpleType, TypeId
from cuda.tile._bytecode.version import BytecodeVersion
from cuda.tile._bytecode.writer import write_bytecode

SCALARS = {
    SimpleType.I1: "i1",
    SimpleType.I8: "i8",
    SimpleType.I16: "i16",
    SimpleType.I32: "i32",
    SimpleType.I64: "i64",
    SimpleType.F16: "f16",
    SimpleType.BF16: "bf16",
    SimpleType.F32: "f32",
    SimpleType.TF32: "tf32",
    SimpleType.F64: "f64",
    SimpleType.F8E4M3FN: "f8E4M3FN",
    SimpleType.F8E5M2: "f8E5M2",
    SimpleType.F8E8M0FNU: "f8E8M0FNU",
    SimpleType.F4E2M1FN: "f4E2M1FN",
    SimpleType.I4: "i4",
    SimpleType.FNV8E5M3FNU: "fnv8E5M3FNU",
}
SINCE = {
    SimpleType.F8E8M0FNU: 130200,
    SimpleType.F4E2M1FN: 130300,
    SimpleType.I4: 130300,
    SimpleType.FNV8E5M3FNU: 130400,
}
DYNAMIC = -(1 << 63)
BODIES = {"ForOp": 1, "IfOp": 2, "LoopOp": 1, "ReduceOp": 1, "ScanOp": 1}
LEFT_OUT = {"EntryOp", "GlobalOp", "ModuleOp", "PreviewCallOp"}
"""What has a section of its own, or stands in preview files only."""


class Maker:
    """Makes up arguments for one file."""

    def __init__(self, writer, version, chance):
        self.writer, self.version, self.chance = writer, version, chance
        self.types = {}
        self.type_ids = []
        for simple, name in SCALARS.items():
            if SINCE.get(simple, 0) <= version:
                self._types_of(simple, name)
        self.keep(writer.type_table.Token, "token")

    def keep(self, type_id, text):
        self.types[type_id.type_id] = text
        self.type_ids.append(type_id)

    def _types_of(self, simple, name):
        table, chance = self.writer.type_table, self.chance
        element = table.simple(simple)
        rank = chance.randint(0, 3)
        shape = [1 << chance.randint(0, 5) for _ in range(rank)]
        dims = "".join(f"{size}x" for size in shape)
        self.keep(table.tile(element, shape), f"tile<{dims}{name}>")
        attribute = PtrAttr.Missing
        if self.version >= BytecodeVersion.V_13_4 and chance.random() < 0.5:
            attribute = PtrAttr.Default
        pointer = table.pointer(element, attribute)
        self.keep(table.tile(pointer, shape), f"tile<{dims}ptr<{name}>>")
        if rank == 0:
            return
        sizes, strides = ([self._extent() for _ in range(rank)] for _ in range(2))
        view = table.tensor_view(element, sizes, strides, attribute)
        dims = "".join("?x" if size == DYNAMIC else f"{size}x" for size in sizes)
        steps = ",".join("?" if step == DYNAMIC else str(step) for step in strides)
        tensor = f"tensor_view<{dims}{name}, strides=[{steps}]>"
        self.keep(view, tensor)
        self._views_of(view, tensor, shape)

    def _views_of(self, view, tensor, shape):
        table, chance, rank = self.writer.type_table, self.chance, len(shape)
        padding = chance.choice(list(PaddingValue))
        names = dict(
            zip(
                PaddingValue,
                (None, "zero", "neg_zero", "nan", "pos_inf", "neg_inf"),
                strict=True,
            )
        )
        order = chance.sample(range(rank), rank)
        padded = f"padding_value = {names[padding]}, " if names[padding] else ""
        mapped = f", dim_map=[{', '.join(map(str, order))}]" if order != sorted(order) else ""
        tile = f"tile=({'x'.join(map(str, shape))}), "
        made = table.partition_view(shape, view, order, padding)
        self.keep(made, f"partition_view<{tile}{padded}{tensor}{mapped}>")
        if self.version >= BytecodeVersion.V_13_3:
            steps = [chance.randint(1, 99) for _ in shape]
            made = table.strided_view(shape, steps, view, order, padding)
            told = f"traversal_strides=[{','.join(map(str, steps))}], "
            self.keep(made, f"strided_view<{tile}{told}{padded}{tensor}{mapped}>")
            sparse = chance.randrange(rank)
            made = table.gather_scatter_view(shape, view, sparse, padding)
            told = f", sparse_dim={sparse}"
            self.keep(made, f"gather_scatter_view<{tile}{padded}{tensor}{told}>")

    def _extent(self):
        return DYNAMIC if self.chance.random() < 0.5 else self.chance.randint(1, 1 << 40)

    def argument(self, name, kind, seen, plain):
        """An argument of a kind, and how to tell it; a plain one has what every version has."""
        chance = self.chance
        if typing.get_origin(kind) is typing.Union:
            inner = next(k for k in typing.get_args(kind) if k is not type(None))
            if chance.random() < 0.5 or (plain and inner in (Value, TypeId)):
                return None, None
            return self.argument(name, inner, seen, plain)
        inner = next(iter(typing.get_args(kind)), None)
        if inner in (Value, TypeId, int, bool, at.TaggedAttribute):
            made = [self.argument(name, inner, seen, plain) for _ in range(chance.randint(0, 5))]
            return [one for one, _ in made], [told for _, told in made]
        if kind is Value:
            made = chance.randrange(seen)
            return Value(made), made
        if kind is TypeId:
            made = chance.choice(self.type_ids)
            return made, self.types[made.type_id]
        if kind is bool:
            made = chance.random() < 0.5 and not plain
            return made, made
        if kind is int:
            made = chance.choice([0, 1, 127, 128, chance.randrange(1 << 31)])
            return made, made
        if kind is str:
            made = chance.choice(["", "a", "größer", "x" * 200]) or "s"
            return made, made
        if kind is bytes:
            return None, None
        if inspect.isclass(kind) and issubclass(kind, enum.Enum):
            return self._enumeration(kind, plain)
        return self._attribute(kind)

    def _enumeration(self, kind, plain):
        made = self.chance.choice(list(kind))
        if plain:
            made = (
                kind.FULL if hasattr(kind, "FULL") else kind.NONE if hasattr(kind, "NONE") else made
            )
        return made, ["enum", made._value_[0]]

    def _attribute(self, kind):
        chance, table = self.chance, self.writer.type_table
        if kind is at.OptimizationHints:
            hints = at.LoadStoreHints(chance.randint(1, 10), chance.random() < 0.5)
            told = {"latency": hints.latency}
            if not hints.allow_tma:
                told = {"allow_tma": False, **told}
            return at.make_load_store_hints({"sm_90": hints}), {"sm_90": told}
        if kind is at.AssumePredicate:
            low, high = (chance.choice([None, chance.randrange(-(1 << 62), 1 << 62)]) for _ in "ab")
            if chance.random() < 0.5:
                return at.Bounded(low, high), ["bounded", low, high]
            divisor = 1 << chance.randint(0, 62)
            return at.DivBy(divisor, low, high), ["div_by", divisor, low, high]
        if chance.random() < 0.5:
            value = chance.randrange(-(1 << 31), 1 << 31)
            return at.Integer.create_i32(value), ["i32", value]
        simple = chance.choice([SimpleType.F16, SimpleType.BF16, SimpleType.F32, SimpleType.F64])
        value = chance.choice([0.0, -0.5, 1.0, float("inf"), -float("inf"), -1024.0])
        return at.Float(value, simple, table), [SCALARS[simple], value]


def snake(name):
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), name).rstrip("_")


def write_one(maker, builder, name, encode, plain):
    """One operation; None if this version cannot have these arguments."""
    hints = typing.get_type_hints(encode)
    arguments, told = {}, {}
    for parameter in list(inspect.signature(encode).parameters)[1:]:
        made, said = maker.argument(parameter, hints[parameter], builder.next_value_id, plain)
        if hints[parameter] is bytes:
            arguments["result_type"] = maker.writer.type_table.tile(
                maker.writer.type_table.F32, [4, 2]
            )
            told["result_type"] = "tile<4x2xf32>"
            made = bytes(maker.chance.randrange(100) for _ in range(32))
            said = made.hex()
        arguments[parameter], told[parameter] = made, said
    length, state = len(builder.buf), (builder.next_value_id, builder.num_ops)
    lines = len(builder.debug_attr_per_op)
    try:
        made = encode(builder, **arguments)
    except (AssertionError, AttributeError, ValueError):
        del builder.buf[length:]
        del builder.debug_attr_per_op[lines:]
        builder.next_value_id, builder.num_ops = state
        return None
    blocks = []
    for _ in range(BODIES.get(name, 0)):
        types = [maker.chance.choice(maker.type_ids) for _ in range(maker.chance.randint(0, 3))]
        with made.new_block(types) as values:
            encodings.encode_NegFOp(builder, types[0] if types else maker.type_ids[0], Value(0))
            encodings.encode_YieldOp(builder, values)
        blocks.append([maker.types[one.type_id] for one in types])
    if name in BODIES:
        made.done()
    told = {snake(key): value for key, value in told.items()}
    return {"name": name[:-2], "arguments": told, "blocks": blocks}


def write_file(out, version, seed, repeats):
    chance = random.Random(seed)
    data, told = bytearray(), []
    with write_bytecode(1, data, version) as writer:
        maker = Maker(writer, version, chance)
        parameters = [chance.choice(maker.type_ids) for _ in range(200)]
        file = writer.debug_attr_table.file("a.py", "/tmp")
        unit = writer.debug_attr_table.compile_unit(file)
        scope = writer.debug_attr_table.subprogram(file, 3, "kernel", "kernel", unit, 4)
        start = writer.debug_attr_table.loc(scope, "/tmp/a.py", 3, 0)
        dense = bytes(range(16))
        for number in range(3):
            kind = writer.type_table.tile(writer.type_table.I32, [4])
            writer.global_section.define_global(f"g{number}", kind, dense, 1 << number)
        hints = {"sm_90": at.EntryHints(num_cta_in_cga=2, occupancy=4)}
        with writer.function("kernel", parameters, [], True, hints, start) as (builder, _):
            for called, encode in inspect.getmembers(encodings, inspect.isfunction):
                name = called.removeprefix("encode_")
                if not name.endswith("Op") or name in LEFT_OUT or name == "ReturnOp":
                    continue
                since = re.search(r"\(  # since (\d+)\.(\d+)", inspect.getsource(encode))
                if since and int(since[1]) * 10000 + int(since[2]) * 100 > version:
                    continue
                if name in ("BreakOp", "ContinueOp", "YieldOp"):
                    continue  # they end blocks: write_one has a yield in each
                for line in range(repeats):
                    place = writer.debug_attr_table.loc(scope, "/tmp/a.py", len(told), line)
                    if line == 1:
                        place = writer.debug_attr_table.call_site(place, start)
                    row, plain = None, line % 2 == 1
                    while row is None:
                        with builder.debug_attr(place):
                            row = write_one(maker, builder, name, encode, plain)
                        plain = not plain
                    row["line"] = [len(told), line, line == 1]
                    told.append(row)
            encodings.encode_ReturnOp(builder, [])
    stem = Path(out, version.as_string() + f"-{seed}")
    Path(f"{stem}.tileirbc").write_bytes(data)
    Path(f"{stem}.json").write_text(
        json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    for version in list(BytecodeVersion)[:4]:
        for seed in range(int(sys.argv[2])):
            write_file(sys.argv[1], version, seed, int(sys.argv[3]))
