"""Records what Triton's own interpreter computes, for `test_values.py`: make record-values.

    arith.remsi  i32 i32 -> i32   [-7, 2] -> -1 ...   as bits, in values.json

It calls the builder of Triton's interpreter with NumPy's arrays; no GPU and no torch is needed,
only Triton beside NumPy. Where the interpreter is not what hardware and MLIR do, nothing is
recorded, and DEPARTS says what it does.
"""

from __future__ import annotations

import itertools
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
INTEGERS = {8: "i8", 16: "i16", 32: "i32", 64: "i64"}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
DEPARTS = {
    "arith.maxnumf, arith.minnumf": "a number and none are none: those of NaN are left out",
    "max and min of 0 and -0": "it is the one or the other: left out",
    "math.fma": "it rounds twice: left out",
    "i1 with a sign": "it is 1, not -1: left out",
    "arith.fptosi, arith.fptoui": "beyond the range it is what NumPy casts to: left out",
    "arith.divsi, arith.remsi by zero": "nothing is promised: left out",
    "smallest integer / -1": "it stops with an overflow: left out",
    "fp_to_fp": "what is too large becomes no number: left out",
    "cmpf one, u..": "it compares as if all were numbers: those of NaN are left out",
}
"""Where the interpreter departs from what MLIR says and hardware does."""

BINARY_FLOATS = {
    "arith.addf": "create_fadd",
    "arith.subf": "create_fsub",
    "arith.mulf": "create_fmul",
    "arith.divf": "create_fdiv",
    "arith.precise_divf": "create_precise_divf",
    "arith.remf": "create_frem",
    "arith.maxnumf": "create_maxnumf",
    "arith.minnumf": "create_minnumf",
    "arith.maximumf": "create_maximumf",
    "arith.minimumf": "create_minimumf",
}
UNARY_FLOATS = {
    "math.absf": "create_fabs",
    "math.exp": "create_exp",
    "math.exp2": "create_exp2",
    "math.log": "create_log",
    "math.log2": "create_log2",
    "math.sqrt": "create_sqrt",
    "math.precise_sqrt": "create_precise_sqrt",
    "math.rsqrt": "create_rsqrt",
    "math.sin": "create_sin",
    "math.cos": "create_cos",
    "math.erf": "create_erf",
    "math.floor": "create_floor",
    "math.ceil": "create_ceil",
}
BINARY_INTEGERS = {
    "arith.addi": ("create_add", False),
    "arith.subi": ("create_sub", False),
    "arith.muli": ("create_mul", False),
    "arith.divsi": ("create_sdiv", False),
    "arith.divui": ("create_udiv", True),
    "arith.remsi": ("create_srem", False),
    "arith.remui": ("create_urem", True),
    "arith.maxsi": ("create_maxsi", False),
    "arith.minsi": ("create_minsi", False),
    "arith.maxui": ("create_maxui", True),
    "arith.minui": ("create_minui", True),
    "arith.andi": ("create_and", False),
    "arith.ori": ("create_or", False),
    "arith.xori": ("create_xor", False),
    "arith.shli": ("create_shl", False),
    "arith.shrsi": ("create_ashr", False),
    "arith.shrui": ("create_lshr", True),
    "arith.mulhiui": ("create_umulhi", True),
}
CASTS = (
    ("arith.extf", "f16", "f32", "create_fp_ext"),
    ("arith.extf", "f32", "f64", "create_fp_ext"),
    ("arith.truncf", "f32", "f16", "create_fp_trunc"),
    ("arith.truncf", "f64", "f32", "create_fp_trunc"),
    ("arith.extsi", "i8", "i32", "create_int_cast"),
    ("arith.extsi", "i32", "i64", "create_int_cast"),
    ("arith.extui", "u8", "i32", "create_int_cast"),
    ("arith.extui", "u32", "i64", "create_int_cast"),
    ("arith.trunci", "i64", "i32", "create_int_cast"),
    ("arith.trunci", "i32", "i8", "create_int_cast"),
    ("arith.sitofp", "i32", "f32", "create_si_to_fp"),
    ("arith.sitofp", "i64", "f32", "create_si_to_fp"),
    ("arith.sitofp", "i8", "f16", "create_si_to_fp"),
    ("arith.uitofp", "u32", "f32", "create_ui_to_fp"),
    ("arith.uitofp", "u64", "f32", "create_ui_to_fp"),
    ("arith.fptosi", "f32", "i32", "create_fp_to_si"),
    ("arith.fptosi", "f64", "i64", "create_fp_to_si"),
    ("arith.fptoui", "f32", "u32", "create_fp_to_ui"),
    ("arith.bitcast", "f32", "i32", "create_bitcast"),
    ("arith.bitcast", "i32", "f32", "create_bitcast"),
    ("arith.bitcast", "f16", "i16", "create_bitcast"),
    ("arith.bitcast", "i64", "f64", "create_bitcast"),
)
SIGNED = ("EQ", "NE", "SLT", "SLE", "SGT", "SGE")
UNSIGNED = ("ULT", "ULE", "UGT", "UGE")
COMPARED = ("OEQ", "OLT", "OLE", "OGT", "OGE", "ONE", "UEQ", "ULT", "ULE", "UGT", "UGE", "UNE")
SAME_OF_NAN = ("OEQ", "OLT", "OLE", "OGT", "OGE", "UNE")


def integers(bits: int) -> list[int]:
    """Those at which something happens."""
    most = (1 << (bits - 1)) - 1
    return [0, 1, -1, -7, bits - 1, most, -most - 1, most - 2]


def floats(type: Any) -> list[Any]:
    """Likewise; the last is no number."""
    said = np.finfo(type)
    return [
        *map(type, (0.0, -0.0, 1.0, -2.5, 7.75)),
        *(said.smallest_subnormal, said.max, type(np.inf), -type(np.inf), type(np.nan)),
    ]


def bits_of(array: Any) -> list[str]:
    """Each number's bits."""
    whole = np.ascontiguousarray(array)
    if whole.dtype == np.bool_:
        return [format(int(n), "x") for n in whole]
    return [format(int(n), "x") for n in whole.view(f"u{whole.dtype.itemsize}")]


def numpy_type(name: str) -> Any:
    """By the name of a type."""
    if name in FLOATS:
        return FLOATS[name]
    return np.dtype(("u" if name[0] == "u" else "i") + str(int(name[1:]) // 8)).type


def columns(pairs: list[tuple[int, int]], name: str) -> list[Any]:
    """Pairs of integers as two arrays of a type."""
    both = zip(*pairs, strict=True)
    return [np.array(column, np.int64).astype(numpy_type(name)) for column in both]


class Recorder:
    """Calls the interpreter's builder and keeps what it makes."""

    def __init__(self) -> None:
        self._language: Any = import_module("triton.language")
        self._interpreter: Any = import_module("triton.runtime.interpreter")
        self._builder: Any = self._interpreter.InterpreterBuilder()
        self.kept: list[dict[str, Any]] = []

    def _handle(self, array: Any, name: str) -> Any:
        words = {"f": "float", "u": "uint", "i": "int"}
        type = getattr(self._language, words[name[0]] + name[1:])
        return self._interpreter.TensorHandle(array, type)

    def _type(self, name: str) -> Any:
        words = {"f": "float", "u": "uint", "i": "int"}
        return getattr(self._language, words[name[0]] + name[1:])

    def record(self, row: str, call: str, types: list[str], columns: list[Any], made: str) -> None:
        """One operation on arrays; `made` names a type to which it casts."""
        handles = [self._handle(c.copy(), t) for c, t in zip(columns, types, strict=True)]
        more: list[Any] = [] if not made else [self._type(made)]
        if call == "create_int_cast":
            more.append(types[0][0] == "i")
        with np.errstate(all="ignore"):
            found = getattr(self._builder, call)(*handles, *more).data
        self.keep(row, types, columns, made or types[-1], found)

    def keep(self, row: str, types: list[str], columns: list[Any], made: str, found: Any) -> None:
        """What was made."""
        self.kept.append(
            {
                "row": row,
                "types": [t.replace("u", "i") for t in types],
                "result": made.replace("u", "i"),
                "operands": [bits_of(column) for column in columns],
                "values": bits_of(found),
            }
        )

    def all(self) -> None:
        """Everything."""
        self._floats()
        self._integers()
        self._casts()
        self._comparisons()

    def _floats(self) -> None:
        for (row, call), (name, type) in itertools.product(BINARY_FLOATS.items(), FLOATS.items()):
            some = floats(type)
            pairs = list(itertools.product(some, some))
            if row[6:9] in ("max", "min"):
                pairs = [pair for pair in pairs if any(pair) or repr(pair[0]) == repr(pair[1])]
            if row.endswith("numf"):
                pairs = [pair for pair in pairs if not np.isnan(pair).any()]
            a, b = (np.array(column, type) for column in zip(*pairs, strict=True))
            self.record(row, call, [name, name], [a, b], "")
        for row, call in UNARY_FLOATS.items():
            for name in ("f32", "f64"):
                a = np.array([*floats(FLOATS[name]), 0.1, 10.25, 33.5], FLOATS[name])
                self.record(row, call, [name], [a], "")

    def _integers(self) -> None:
        for (row, (call, unsigned)), bits in itertools.product(BINARY_INTEGERS.items(), INTEGERS):
            name = ("u" if unsigned else "i") + str(bits)
            pairs = list(itertools.product(integers(bits), integers(bits)))
            if row[:9] in ("arith.div", "arith.rem"):
                least = -(1 << (bits - 1))
                pairs = [(a, b) for a, b in pairs if b != 0 and (a, b) != (least, -1)]
            if row.startswith("arith.sh"):
                pairs = [(a, b) for a, b in pairs if 0 <= b < bits]
            if row == "arith.divsi":  # it goes through a difference that must not wrap
                pairs = [(a, b) for a, b in pairs if abs(a) < (1 << (bits - 2))]
            a, b = (
                np.array(c, np.int64).astype(numpy_type(name)) for c in zip(*pairs, strict=True)
            )
            self.record(row, call, [name, name], [a, b], "")
        for bits in INTEGERS:
            a = np.array(integers(bits), np.int64).astype(numpy_type(f"i{bits}"))
            self.record("math.absi", "create_iabs", [f"i{bits}"], [a], "")

    def _casts(self) -> None:
        for row, before, after, call in CASTS:
            type = numpy_type(before)
            if before in FLOATS:
                a = np.array([*floats(type), 0.1, 100.7, -3.99], type)
                if row in ("arith.fptosi", "arith.fptoui"):
                    a = a[np.isfinite(a) & (np.abs(a) < 1000)]
                    a = a[a > -1] if row == "arith.fptoui" else a
            else:
                a = np.array(integers(int(before[1:])), np.int64).astype(type)
            self.record(row, call, [before], [a], after)

    def _comparisons(self) -> None:
        for predicate, bits in itertools.product((*SIGNED, *UNSIGNED), INTEGERS):
            name = ("u" if predicate in UNSIGNED else "i") + str(bits)
            pairs = list(itertools.product(integers(bits), integers(bits)))
            a, b = (
                np.array(c, np.int64).astype(numpy_type(name)) for c in zip(*pairs, strict=True)
            )
            made = getattr(self._builder, f"create_icmp{predicate}")(
                self._handle(a, name), self._handle(b, name)
            ).data
            self.keep(f"arith.cmpi {predicate.lower()}", [name, name], [a, b], "i1", made)
        for predicate in COMPARED:
            pairs = list(itertools.product(floats(np.float32), repeat=2))
            if predicate not in SAME_OF_NAN:
                pairs = [pair for pair in pairs if not np.isnan(pair).any()]
            a, b = (np.array(column, np.float32) for column in zip(*pairs, strict=True))
            made = getattr(self._builder, f"create_fcmp{predicate}")(
                self._handle(a, "f32"), self._handle(b, "f32")
            ).data
            self.keep(f"arith.cmpf {predicate.lower()}", ["f32", "f32"], [a, b], "i1", made)


if __name__ == "__main__":
    recorder = Recorder()
    recorder.all()
    lines = ",\n".join(json.dumps(one) for one in recorder.kept)
    (HERE / "values.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{len(recorder.kept)} operations of types recorded\n")
