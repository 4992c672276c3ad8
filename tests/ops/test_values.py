"""What rows compute, against Triton's own interpreter, and against what mathematics says.

`values.json` was recorded by `record_values.py` from the interpreter; what it leaves out is here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.kernel import Operation, Scalar, Value
from stretto.ops.operations import OPERATIONS
from stretto.ops.predicates import PREDICATES
from stretto.simulation.kernels.evaluator import Evaluator

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "values.json").read_text(encoding="utf-8")
)
NUMPY = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
APPROXIMATE = 4
"""Units in the last place by which functions may differ that no one rounds exactly."""
EXACT = ("arith.", "math.absf", "math.absi", "math.floor", "math.ceil", "math.precise_sqrt")
INF, NAN = math.inf, math.nan


def computed(row: str, types: list[str], result: str, operands: list[Any]) -> Any:
    """What the evaluator makes of arrays."""
    name, _, predicate = row.partition(" ")
    attributes = {"predicate": predicate} if predicate else {}
    operation = Operation(
        name,
        tuple(Value(Scalar(type)) for type in types),
        (Value(Scalar(result)),),
        attributes,
    )
    kept = [a.astype(np.float32) if a.dtype == np.float16 else a for a in operands]
    (made,) = Evaluator((1, 1, 1), (0, 0, 0)).apply(operation, kept)
    return np.asarray(made).astype(NUMPY[result])


def from_bits(bits: list[str], type: str) -> Any:
    """Numbers by their bits."""
    if type == "i1":
        return np.array([n == "1" for n in bits])
    whole = np.array([int(n, 16) for n in bits], np.uint64)
    width = np.dtype(NUMPY[type]).itemsize
    return whole.astype(f"u{width}").view(NUMPY[type])


@pytest.mark.parametrize(
    "case", RECORDED, ids=lambda c: f"{c['row']} {' '.join(c['types'])} -> {c['result']}"
)
def test_a_row_computes_what_tritons_interpreter_does(case: dict[str, Any]) -> None:
    operands = [from_bits(b, t) for b, t in zip(case["operands"], case["types"], strict=True)]
    wanted = from_bits(case["values"], case["result"])
    made = computed(case["row"], case["types"], case["result"], operands)
    exact = case["row"].startswith(EXACT) or wanted.dtype.kind != "f"
    with np.errstate(all="ignore"):
        same(made, wanted, 0 if exact else APPROXIMATE)


def same(made: Any, wanted: Any, last_places: int) -> None:
    """Equal: none where none is, zeros of one sign, numbers within some last places."""
    assert made.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(made, wanted)
        return
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    kept = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(made[kept]), np.signbit(wanted[kept]))
    infinite = kept & np.isinf(wanted)
    np.testing.assert_array_equal(made[infinite], wanted[infinite])
    finite = np.isfinite(wanted)
    size = np.abs(wanted[finite])
    step = np.where(size > 0, size - np.nextafter(size, np.zeros_like(size)), 0)
    assert np.all(np.abs(made[finite] - wanted[finite]) <= last_places * step)


def test_most_rows_that_the_interpreter_has_are_recorded() -> None:
    """So that nobody can shorten the file unseen."""
    rows = {case["row"].partition(" ")[0] for case in RECORDED}
    assert len(rows) == 54
    assert len(RECORDED) > 200
    assert sum(len(case["values"]) for case in RECORDED) > 10000
    assert rows <= set(OPERATIONS)


# What the interpreter has not, or has in another way ------------------------------------------

SIGNED_TRUTHS = [
    ("arith.extsi", "i1", "i32", [True, False], [-1, 0]),
    ("arith.extui", "i1", "i32", [True, False], [1, 0]),
    ("arith.sitofp", "i1", "f32", [True, False], [-1.0, 0.0]),
    ("arith.uitofp", "i1", "f32", [True, False], [1.0, 0.0]),
    ("arith.trunci", "i32", "i1", [2, 3, -1, 0], [False, True, True, False]),
]


@pytest.mark.parametrize(("row", "before", "after", "given", "wanted"), SIGNED_TRUTHS)
def test_a_truth_with_a_sign_is_minus_one(
    row: str, before: str, after: str, given: list[Any], wanted: list[Any]
) -> None:
    made = computed(row, [before], after, [np.array(given, NUMPY[before])])
    np.testing.assert_array_equal(made, np.array(wanted, NUMPY[after]))


BITS = {
    "arith.addi": [0, 1, 1, 0],
    "arith.subi": [0, 1, 1, 0],
    "arith.muli": [0, 0, 0, 1],
    "arith.maxsi": [0, 0, 0, 1],
    "arith.minsi": [0, 1, 1, 1],
    "arith.maxui": [0, 1, 1, 1],
    "arith.minui": [0, 0, 0, 1],
    "arith.cmpi slt": [0, 0, 1, 0],
    "arith.cmpi ult": [0, 1, 0, 0],
}


@pytest.mark.parametrize("row", BITS)
def test_truths_are_integers_of_one_bit(row: str) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    made = computed(row, ["i1", "i1"], "i1", [a, b])
    np.testing.assert_array_equal(made, np.array(BITS[row], np.bool_))


F32 = ["f32", "f32", "f32", "f32"]
KNOWN: list[tuple[str, str, list[float], float]] = [
    ("arith.maxnumf", "f32", [NAN, 2.0], 2.0),
    ("arith.maxnumf", "f32", [-0.0, 0.0], 0.0),
    ("arith.minnumf", "f32", [2.0, NAN], 2.0),
    ("arith.minnumf", "f32", [0.0, -0.0], -0.0),
    ("arith.negf", "f32", [0.0], -0.0),
    ("math.fma", "f32", [1 + 2**-12, 1 + 2**-12, -(1 + 2**-11)], 2**-24),
    ("math.fma", "f64", [1 + 2**-27, 1 + 2**-27, -(1 + 2**-26)], 2**-54),
    ("math.tan", "f32", [1.0], math.tan(1)),
    ("math.sinh", "f32", [-1.5], math.sinh(-1.5)),
    ("math.cosh", "f32", [1.5], math.cosh(1.5)),
    ("math.tanh", "f32", [0.7], math.tanh(0.7)),
    ("math.tanh", "f32", [INF], 1.0),
    ("math.asin", "f32", [0.3], math.asin(0.3)),
    ("math.acos", "f32", [0.3], math.acos(0.3)),
    ("math.acos", "f32", [1.5], NAN),
    ("math.atan", "f32", [-INF], -math.pi / 2),
    ("math.atan2", "f32", [-0.0, -1.0], -math.pi),
    ("math.asinh", "f32", [2.0], math.asinh(2)),
    ("math.acosh", "f32", [2.0], math.acosh(2)),
    ("math.atanh", "f32", [0.5], math.atanh(0.5)),
    ("math.expm1", "f32", [1e-6], math.expm1(1e-6)),
    ("math.log1p", "f32", [1e-6], math.log1p(1e-6)),
    ("math.log10", "f32", [1000.0], 3.0),
    ("math.cbrt", "f32", [-27.0], -3.0),
    ("math.erfc", "f32", [3.0], math.erfc(3)),
    ("math.powf", "f32", [2.0, -0.5], 2**-0.5),
    ("math.powf", "f32", [-2.0, 3.0], -8.0),
    ("math.powf", "f32", [-2.0, 0.5], NAN),
    ("math.powf", "f32", [NAN, 0.0], 1.0),
    ("math.round", "f32", [-2.5], -3.0),
    ("math.round", "f32", [0.49999997], 0.0),
    ("math.roundeven", "f32", [2.5], 2.0),
    ("math.trunc", "f32", [-0.5], -0.0),
    ("math.copysign", "f32", [3.0, -0.0], -3.0),
    ("libdevice.exp10", "f32", [2.0], 100.0),
    ("libdevice.sinpi", "f32", [0.5], 1.0),
    ("libdevice.cospi", "f32", [1.0], -1.0),
    ("libdevice.hypot", "f32", [3.0, -4.0], 5.0),
    ("libdevice.hypot", "f32", [INF, NAN], INF),
    ("libdevice.rhypot", "f32", [3.0, 4.0], 0.2),
    ("libdevice.norm3d", "f32", [2.0, 3.0, 6.0], 7.0),
    ("libdevice.norm4d", "f32", [1.0, 1.0, 1.0, 1.0], 2.0),
    ("libdevice.rcbrt", "f32", [8.0], 0.5),
    ("libdevice.erfinv", "f32", [0.5], 0.4769362762044699),
    ("libdevice.erfinv", "f32", [-1.0], -INF),
    ("libdevice.erfcinv", "f32", [0.01], 1.8213863677184496),
    ("libdevice.erfcx", "f32", [2.0], 0.2553956763105058),
    ("libdevice.erfcx", "f32", [30.0], 0.018795888861416751),
    ("libdevice.normcdf", "f32", [1.0], 0.8413447460685429),
    ("libdevice.normcdfinv", "f32", [0.975], 1.959963984540054),
    ("libdevice.lgamma", "f32", [0.5], math.log(math.pi) / 2),
    ("libdevice.tgamma", "f32", [5.0], 24.0),
    ("libdevice.tgamma", "f32", [-1.0], NAN),
    ("libdevice.j0", "f32", [1.0], 0.7651976865579666),
    ("libdevice.j1", "f32", [1.0], 0.44005058574493355),
    ("libdevice.y0", "f32", [1.0], 0.08825696421567698),
    ("libdevice.y1", "f32", [1.0], -0.7812128213002887),
    ("libdevice.y0", "f32", [0.0], -INF),
    ("libdevice.cyl_bessel_i0", "f32", [1.0], 1.2660658777520084),
    ("libdevice.cyl_bessel_i1", "f32", [1.0], 0.5651591039924851),
    ("libdevice.saturatef", "f32", [1.5], 1.0),
    ("libdevice.saturatef", "f32", [NAN], 0.0),
    ("libdevice.fdim", "f32", [3.0, 5.0], 0.0),
    ("libdevice.nextafter", "f32", [1.0, 2.0], 1 + 2**-23),
    ("libdevice.remainder", "f32", [5.0, 3.0], -1.0),
    ("libdevice.logb", "f32", [10.0], 3.0),
    ("libdevice.rcp_rn", "f32", [3.0], 1 / 3),
    ("libdevice.fast_dividef", "f32", [1.0, 3.0], 1 / 3),
]


@pytest.mark.parametrize(("row", "type", "given", "wanted"), KNOWN)
def test_functions_are_those_of_mathematics(
    row: str, type: str, given: list[float], wanted: float
) -> None:
    arrays = [np.array([number], NUMPY[type]) for number in given]
    made = computed(row, [type] * len(given), type, arrays)
    with np.errstate(all="ignore"):
        same(made, np.array([wanted], NUMPY[type]), APPROXIMATE)


THIRD, GREATEST = np.float32(1 / 3), np.finfo(np.float32).max
ROUNDED: dict[str, tuple[list[float], float, list[Any]]] = {
    # a / 3 lies between two floats
    "libdevice.div_rd": ([1.0, -1.0], 3.0, [THIRD - 2**-25, -THIRD]),
    "libdevice.div_ru": ([1.0, -1.0], 3.0, [THIRD, -THIRD + 2**-25]),
    "libdevice.div_rz": (
        [1.0, -1.0],
        3.0,
        [THIRD - 2**-25, 2**-25 - THIRD],
    ),
    "libdevice.add_rd": ([1.0, 1.0], -(2.0**-40), [1 - 2**-24, 1 - 2**-24]),
    "libdevice.add_ru": ([1.0, -1.0], 2.0**-40, [1 + 2**-23, -1 + 2**-24]),
    "libdevice.mul_rz": (
        [3.4e38, -3.4e38],
        10.0,
        [GREATEST, -GREATEST],
    ),
    "libdevice.mul_ru": ([3.4e38, -3.4e38], 10.0, [INF, -GREATEST]),
}


@pytest.mark.parametrize("row", ROUNDED)
def test_roundings_go_the_way_they_say(row: str) -> None:
    given, other, wanted = ROUNDED[row]
    arrays = [np.array(given, np.float32), np.full(2, other, np.float32)]
    made = computed(row, ["f32", "f32"], "f32", arrays)
    np.testing.assert_array_equal(made, np.array(wanted, np.float32))


LEAST, MOST = -(2**31), 2**31 - 1
BYTES = [[0x03020100], [0x07060504], [0x5140]]
WHOLE: list[tuple[str, list[str], str, list[Any], list[int]]] = [
    ("arith.fptosi", ["f32"], "i32", [[3e9, -3e9, NAN, -1.9]], [MOST, LEAST, 0, -1]),
    ("arith.fptoui", ["f32"], "i32", [[3e9, -3e9, 5e9, 1.9]], [3_000_000_000 - 2**32, 0, -1, 1]),
    ("arith.fptosi", ["f64"], "i64", [[1e19, NAN]], [2**63 - 1, -(2**63)]),
    ("arith.mulhisi", ["i32", "i32"], "i32", [[LEAST, -1], [LEAST, 1]], [2**30, -1]),
    ("arith.floordivsi", ["i32", "i32"], "i32", [[-7, 7, LEAST], [2, -2, 2]], [-4, -4, LEAST // 2]),
    ("arith.ceildivsi", ["i32", "i32"], "i32", [[-7, 7, LEAST], [2, 2, 3]], [-3, 4, -715827882]),
    ("arith.ceildivui", ["i32", "i32"], "i32", [[-1, 7], [2, 2]], [LEAST, 4]),
    (
        "arith.divsi",
        ["i32", "i32"],
        "i32",
        [[LEAST, -7, MOST], [-1, 2, -2]],
        [LEAST, -3, -(2**30) + 1],
    ),
    ("arith.shli", ["i32", "i32"], "i32", [[1, 1, 1], [31, 32, 100]], [LEAST, 0, 0]),
    ("arith.shrsi", ["i32", "i32"], "i32", [[-8, 8], [40, 40]], [-1, 0]),
    ("arith.shrui", ["i32", "i32"], "i32", [[-8, -1], [32, 31]], [0, 1]),
    ("math.ctpop", ["i32"], "i32", [[-1, 5]], [32, 2]),
    ("math.ctlz", ["i32"], "i32", [[0, 1, -1]], [32, 31, 0]),
    ("math.cttz", ["i32"], "i32", [[0, 8, LEAST]], [32, 3, 31]),
    ("math.ipowi", ["i32", "i32"], "i32", [[3, -2, 2, -1], [4, 3, -1, -3]], [81, -8, 0, -1]),
    ("math.isnan", ["f32"], "i1", [[NAN, INF, 0.0]], [1, 0, 0]),
    ("math.isinf", ["f32"], "i1", [[NAN, -INF, 0.0]], [0, 1, 0]),
    ("math.isfinite", ["f32"], "i1", [[NAN, INF, 0.0]], [0, 0, 1]),
    ("libdevice.clz", ["i32"], "i32", [[1, 0]], [31, 32]),
    ("libdevice.popc", ["i64"], "i32", [[-1]], [64]),
    ("libdevice.ffs", ["i32"], "i32", [[0, 12]], [0, 3]),
    ("libdevice.brev", ["i32"], "i32", [[1, LEAST]], [LEAST, 1]),
    (
        "libdevice.byte_perm",
        ["i32"] * 3,
        "i32",
        [[0x03020100], [0x07060504], [0x5140]],
        [0x05010400],
    ),
    ("libdevice.mul24", ["i32", "i32"], "i32", [[-3, 0x800000], [5, 2]], [-15, -0x1000000]),
    ("libdevice.unsigned_mul24", ["i32", "i32"], "i32", [[-1], [1]], [0xFFFFFF]),
    ("libdevice.sad", ["i32"] * 3, "i32", [[3, 9], [9, 3], [1, 1]], [7, 7]),
    ("libdevice.hadd", ["i32", "i32"], "i32", [[MOST, -1], [MOST, 0]], [MOST, -1]),
    ("libdevice.rhadd", ["i32", "i32"], "i32", [[MOST, -1], [MOST, 0]], [MOST, 0]),
    ("libdevice.unsigned_hadd", ["i32", "i32"], "i32", [[-1], [-1]], [-1]),
    ("libdevice.float2int_ru", ["f32"], "i32", [[1.1, -1.1]], [2, -1]),
    ("libdevice.float2int_rd", ["f32"], "i32", [[1.1, -1.1]], [1, -2]),
    ("libdevice.float2int_rn", ["f32"], "i32", [[2.5, -3.5]], [2, -4]),
    ("libdevice.float2uint_rz", ["f32"], "i32", [[4e9, -1.0]], [4_000_000_000 - 2**32, 0]),
    ("libdevice.llrint", ["f32"], "i64", [[2.5, 1e10]], [2, 10_000_000_000]),
    ("libdevice.llround", ["f32"], "i64", [[2.5, -2.5]], [3, -3]),
    ("libdevice.ilogb", ["f32"], "i32", [[8.0, 0.75]], [3, -1]),
    ("libdevice.signbit", ["f32"], "i32", [[-0.0, 0.0]], [1, 0]),
    ("libdevice.double2hiint", ["f64"], "i32", [[1.0]], [0x3FF00000]),
    ("libdevice.double2loint", ["f64"], "i32", [[1 + 2**-52]], [1]),
]


@pytest.mark.parametrize(("row", "types", "result", "given", "wanted"), WHOLE)
def test_integers_are_to_the_bit(
    row: str, types: list[str], result: str, given: list[Any], wanted: list[int]
) -> None:
    arrays = [np.array(g, NUMPY[t]) for g, t in zip(given, types, strict=True)]
    made = computed(row, types, result, arrays)
    np.testing.assert_array_equal(made, np.array(wanted, NUMPY[result]))


MIXED: list[tuple[str, list[str], str, list[Any], list[float]]] = [
    ("math.fpowi", ["f32", "i32"], "f32", [[2.0, -3.0], [-1, 3]], [0.5, -27.0]),
    ("libdevice.ldexp", ["f32", "i32"], "f32", [[0.75, 1.0], [4, -130]], [12.0, 2.0**-130]),
    ("libdevice.jn", ["i32", "f32"], "f32", [[2], [1.0]], [0.1149034849319005]),
    ("libdevice.yn", ["i32", "f32"], "f32", [[2], [1.0]], [-1.6506826068162543]),
    ("libdevice.int2float_rz", ["i32"], "f32", [[2**24 + 3]], [2.0**24 + 2]),
    ("libdevice.int2float_ru", ["i32"], "f32", [[2**24 + 1]], [2.0**24 + 2]),
    ("libdevice.uint2float_rn", ["i32"], "f32", [[-1]], [2.0**32]),
    ("libdevice.double2float_rd", ["f64"], "f32", [[0.1]], [float(np.float32(0.1)) - 2**-27]),
    ("libdevice.int_as_float", ["i32"], "f32", [[0x3F800000]], [1.0]),
    ("libdevice.hiloint2double", ["i32", "i32"], "f64", [[0x3FF00000], [0]], [1.0]),
    ("libdevice.rcp64h", ["f64"], "f64", [[4.0]], [0.25]),
]


@pytest.mark.parametrize(("row", "types", "result", "given", "wanted"), MIXED)
def test_mixed_types(
    row: str, types: list[str], result: str, given: list[Any], wanted: list[float]
) -> None:
    arrays = [np.array(g, NUMPY[t]) for g, t in zip(given, types, strict=True)]
    made = computed(row, types, result, arrays)
    same(made, np.array(wanted, NUMPY[result]), APPROXIMATE)


# Every row ------------------------------------------------------------------------------------

SAMPLES = {"f": "f32", "g": "f64", "i": "i32", "j": "i64", "c": "i1", "x": "f32", "y": "i32"}


@pytest.mark.parametrize("name", [row.name for row in OPERATIONS.values() if row.elementwise])
def test_every_row_is_computed(name: str) -> None:
    """Of zeros, ones and some more: a number of its type comes out, and nobody stops."""
    row = OPERATIONS[name]
    letters = [SAMPLES.get(one, one) for one in row.types.partition(";")[0].split() if one != "->"]
    if "narrower" in row.types:
        letters.reverse()
    *types, result = letters
    arrays = [np.array([0, 1, 1, 2, 5]).astype(NUMPY[type]) for type in types]
    predicates = PREDICATES.get(name)
    for spelled in [f"{name} {one}" for one in predicates] if predicates else [name]:
        made = computed(spelled, types, result, arrays)
        assert made.shape == (5,)
        assert made.dtype == NUMPY[result]
